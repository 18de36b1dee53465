//! What follows after the gradient was reshaped: momentum and the noise of private SGD; and the
//! groups of coordinates that are clipped one by one.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toclip::privacy::Privacy;
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::{Group, Groups, Memory, Momentum, OnSkip, Rule, Step};
use toml::Value;

use crate::RuleChoice;
use crate::policy::{PolicyError, deserialize_by_parse};
use crate::words::{deserialize, short};

/// What a step does besides following a policy: rule, groups, momentum and private noise.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Optimizer {
    /// What is done to the gradient.
    pub rule: RuleChoice,
    /// The groups of coordinates that are clipped one by one; none for all together.
    pub groups: GroupsChoice,
    /// How steps remember gradients.
    pub momentum: Option<MomentumChoice>,
    /// The noise of private SGD.
    pub privacy: Option<PrivacyChoice>,
}

/// What an [`Optimizer`] makes of a noise and a spectrum.
#[derive(Debug)]
pub struct Built {
    /// Eigenvalues and start in the coordinates of the theory, with the groups if there are any.
    pub modes: Modes,
    /// The step with its rule and its private noise.
    pub step: Step<'static>,
    /// How steps remember gradients.
    pub momentum: Option<Momentum>,
}

fn wrong(key: &'static str, what: impl ToString) -> PolicyError {
    PolicyError { key, what: what.to_string() }
}

impl Optimizer {
    /// What is done to the gradient: the rule, or clipping per group.
    ///
    /// # Errors
    /// [`PolicyError`] for groups that are impossible, or together with another rule.
    pub fn reshaping(&self) -> Result<Rule, PolicyError> {
        if self.groups.is_empty() {
            return Ok(self.rule.0.clone());
        }
        if !self.rule.is_clip() {
            return Err(wrong("groups", "groups are clipped; leave `rule` out"));
        }
        self.groups.to_core().map(Rule::PerGroup).map_err(|e| wrong("groups", e))
    }

    /// Builds it for a step that clips.
    ///
    /// # Errors
    /// [`PolicyError`] with the key of what cannot be built.
    pub fn build(
        &self,
        step: Step<'static>,
        spectrum: &Spectrum,
        start: &Start,
    ) -> Result<Built, PolicyError> {
        let rule = self.reshaping()?;
        let modes = match &rule {
            Rule::PerGroup(groups) => {
                Modes::grouped(spectrum, start, &groups.sizes()).map_err(|e| wrong("groups", e))?
            }
            _ => Modes::new(spectrum, start).map_err(|e| wrong("start", e))?,
        };
        let mut step = step.with_rule(rule).map_err(|e| wrong("rule", e))?;
        if let Some(privacy) = self.privacy {
            let privacy = privacy.to_core().map_err(|e| wrong("privacy", e))?;
            step = step.with_privacy(privacy).map_err(|e| wrong("privacy", e))?;
        }
        if self.momentum.is_some_and(|m| m.on_skip.is_some()) && *step.rule() != Rule::Skip {
            let what = "`on_skip` is for the rule skip: with other rules every step is made";
            return Err(wrong("momentum", what));
        }
        let momentum = self.momentum.map(MomentumChoice::to_core).transpose();
        let momentum = momentum.map_err(|e| wrong("momentum", e))?;
        if momentum.is_some() && !(step.rule().is_radial() && step.privacy().is_none()) {
            let what = "is solved and simulated for rules that keep the direction of the gradient, \
                        without privacy; leave it out";
            return Err(wrong("momentum", what));
        }
        Ok(Built { modes, step, momentum })
    }
}

/// `momentum = 0.9`, or `momentum = { kind = "average", delta = 2.0 }`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct MomentumChoice {
    #[serde(default)]
    kind: Convention,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    beta: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delta: Option<f64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    dampening: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    on_skip: Option<Skipped>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Convention {
    #[default]
    HeavyBall,
    Average,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Skipped {
    NotMade,
    ZeroGradient,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(x: &f64) -> bool {
    *x == 0.0
}

impl MomentumChoice {
    /// What the theory takes.
    ///
    /// # Errors
    /// A sentence for parameters out of range, or that do not go together.
    pub fn to_core(self) -> Result<Momentum, String> {
        let memory = match (self.beta, self.delta) {
            (Some(beta), None) => Memory::Beta(beta),
            (None, Some(delta)) => Memory::Delta(delta),
            _ => return Err("give either `beta` or `delta`, which is (1 - beta) d".into()),
        };
        let momentum = match self.kind {
            Convention::HeavyBall => Momentum::heavy_ball(memory)
                .and_then(|momentum| momentum.with_dampening(self.dampening)),
            Convention::Average if self.dampening != 0.0 => {
                return Err("the average has no `dampening`; leave it out".into());
            }
            Convention::Average => Momentum::average(memory),
        };
        let on_skip = match self.on_skip {
            None | Some(Skipped::NotMade) => OnSkip::NotMade,
            Some(Skipped::ZeroGradient) => OnSkip::ZeroGradient,
        };
        momentum.map(|momentum| momentum.on_skip(on_skip)).map_err(|error| error.to_string())
    }

    fn parse(value: Value) -> Result<Self, String> {
        const EXPECTED: &str = "beta as a number from 0 to 1, or a table such as { kind = \
                                \"average\", delta = 2.0 }";
        let table = match value {
            Value::Float(_) | Value::Integer(_) => {
                toml::Table::from_iter([("beta".to_owned(), value)]).into()
            }
            Value::Table(_) => value,
            other => return Err(format!("is {other}; expected {EXPECTED}")),
        };
        let momentum = deserialize(table, MomentumChoice::deserialize)?;
        momentum.to_core().map(|_| momentum)
    }
}

impl Serialize for MomentumChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        MomentumChoice::serialize(self, serializer)
    }
}

/// `privacy = { noise_multiplier = 1.0 }`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct PrivacyChoice {
    /// The standard deviation of the noise on the sum of gradients, in units of the threshold.
    pub noise_multiplier: f64,
}

impl PrivacyChoice {
    /// What the theory takes.
    ///
    /// # Errors
    /// A sentence for a multiplier out of range.
    pub fn to_core(self) -> Result<Privacy, String> {
        Privacy::new(self.noise_multiplier).map_err(|_| {
            let given = short(self.noise_multiplier);
            format!("`noise_multiplier` is {given}; expected a finite number, at least 0")
        })
    }

    fn parse(value: Value) -> Result<Self, String> {
        if !value.is_table() {
            return Err(format!("is {value}; expected {{ noise_multiplier = 1.0 }}"));
        }
        let privacy = deserialize(value, PrivacyChoice::deserialize)?;
        privacy.to_core().map(|_| privacy)
    }
}

impl Serialize for PrivacyChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PrivacyChoice::serialize(self, serializer)
    }
}

/// `groups = [{ size = 100 }, { size = 400, ratio = 0.5 }]`: coordinates in the order of the
/// eigenvalues, each group clipped at `ratio` times the threshold.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct GroupsChoice(Vec<GroupChoice>);

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupChoice {
    size: u64,
    #[serde(default = "one")]
    ratio: f64,
}

fn one() -> f64 {
    1.0
}

impl GroupsChoice {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the theory takes.
    ///
    /// # Errors
    /// A sentence for an empty group or an impossible ratio.
    pub fn to_core(&self) -> Result<Groups, String> {
        let group = |g: &GroupChoice| Group { size: g.size, ratio: g.ratio };
        let groups: Vec<Group> = self.0.iter().map(group).collect();
        Groups::new(&groups).map_err(|error| error.to_string())
    }

    fn parse(value: Value) -> Result<Self, String> {
        if !value.is_array() {
            return Err(format!(
                "is {value}; expected a list of groups such as [{{ size = 100 }}, {{ size = 400, \
                 ratio = 0.5 }}]"
            ));
        }
        let groups = GroupsChoice(deserialize(value, Vec::deserialize)?);
        groups.to_core().map(|_| groups)
    }
}

deserialize_by_parse!(MomentumChoice, PrivacyChoice, GroupsChoice);
