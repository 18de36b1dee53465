//! The parts of a step beside its policy: groups of coordinates, momentum, and the noise of private SGD.

use serde::{Deserialize, Serialize};
use toclip::privacy::Privacy;
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::{Group, Groups, Memory, Momentum, OnSkip, Optimizer, Rule, Step};
use toml::Value;

use crate::Mistake;

use crate::value::read_value;
use crate::value_forms::{deserialize_by_parse, serde_by_parse, table_with};
use crate::{KeyError, RuleChoice};
use toclip_words::short;

/// The parts of a step beside its policy: rule, groups, momentum and private noise.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrainingChoice {
    /// How the gradient is changed.
    pub rule: RuleChoice,
    /// The groups of coordinates that are clipped one by one; none for all together.
    pub groups: GroupsChoice,
    /// How steps remember gradients.
    pub momentum: Option<MomentumChoice>,
    /// The noise of private SGD.
    pub privacy: Option<PrivacyChoice>,
}

/// A [`TrainingChoice`] built for a noise and a spectrum.
#[derive(Debug)]
pub struct BuiltTraining {
    /// Eigenvalues and start in the coordinates of the theory, with the groups if there are any.
    pub modes: Modes,
    /// The step with its rule and its private noise.
    pub step: Step<'static>,
    /// What is done with the reshaped gradient.
    pub optimizer: Optimizer,
}

impl TrainingChoice {
    /// How the gradient is changed: the rule, or clipping per group.
    ///
    /// # Errors
    /// [`KeyError`] for groups that are impossible, or together with another rule.
    pub fn reshaping(&self) -> Result<Rule, KeyError> {
        if self.groups.is_empty() {
            return Ok(self.rule.0.clone());
        }
        if !self.rule.is_clip() {
            return Err(KeyError::new("groups", "groups are clipped; leave `rule` out"));
        }
        self.groups.to_core().map(Rule::PerGroup).map_err(|e| KeyError::new("groups", e))
    }

    /// Builds it for a step that clips.
    ///
    /// # Errors
    /// [`KeyError`] for a part that cannot be built.
    pub fn build(
        &self,
        step: Step<'static>,
        spectrum: &Spectrum,
        start: &Start,
    ) -> Result<BuiltTraining, KeyError> {
        let rule = self.reshaping()?;
        let modes = match &rule {
            Rule::PerGroup(groups) => Modes::grouped(spectrum, start, &groups.sizes())
                .map_err(|e| KeyError::new("groups", e))?,
            _ => Modes::new(spectrum, start).map_err(|e| KeyError::new("start", e))?,
        };
        let mut step = step.with_rule(rule).map_err(|e| KeyError::new("rule", e))?;
        if let Some(privacy) = self.privacy {
            let privacy = privacy.to_core().map_err(|e| KeyError::new("privacy", e))?;
            step = step.with_privacy(privacy).map_err(|e| KeyError::new("privacy", e))?;
        }
        if self.momentum.is_some_and(|m| m.on_skip.is_some()) && *step.rule() != Rule::Skip {
            let what = "`on_skip` is for the rule skip: with other rules every step is made";
            return Err(KeyError::new("momentum", what));
        }
        let momentum = self.momentum.map(MomentumChoice::to_core).transpose();
        let momentum = momentum.map_err(|e| KeyError::new("momentum", e))?;
        if momentum.is_some() && !(step.rule().is_radial() && step.privacy().is_none()) {
            let what = "only with rules that keep the direction of the gradient, and without privacy; \
                        leave it out";
            return Err(KeyError::new("momentum", what));
        }
        let optimizer = momentum.map_or(Optimizer::Sgd, Optimizer::Momentum);
        Ok(BuiltTraining { modes, step, optimizer })
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
    on_skip: Option<OnSkip>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Convention {
    #[default]
    HeavyBall,
    Average,
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
    pub fn to_core(self) -> Result<Momentum, Mistake> {
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
        let on_skip = self.on_skip.unwrap_or_default();
        Ok(momentum?.on_skip(on_skip))
    }

    fn parse(value: Value) -> Result<Self, Mistake> {
        const EXPECTED: &str = "beta as a number from 0 to 1, or a table such as { kind = \
                                \"average\", delta = 2.0 }";
        let is_number = |value: &Value| value.is_float() || value.is_integer();
        let table = table_with("beta", value, is_number, EXPECTED)?;
        let momentum = read_value(table, MomentumChoice::deserialize)?;
        momentum.to_core().map(|_| momentum)
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
    pub fn to_core(self) -> Result<Privacy, Mistake> {
        Privacy::new(self.noise_multiplier).map_err(|_| {
            let given = short(self.noise_multiplier);
            format!("`noise_multiplier` is {given}; expected a finite number, at least 0").into()
        })
    }

    fn parse(value: Value) -> Result<Self, Mistake> {
        if !value.is_table() {
            return Err(Mistake::is(value, "{ noise_multiplier = 1.0 }"));
        }
        let privacy = read_value(value, PrivacyChoice::deserialize)?;
        privacy.to_core().map(|_| privacy)
    }
}

/// `groups = [{ size = 100 }, { size = 400, ratio = 0.5 }]`: coordinates in the order of the
/// eigenvalues, each group clipped at `ratio` times the threshold.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct GroupsChoice(Vec<Group>);

impl GroupsChoice {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the theory takes.
    ///
    /// # Errors
    /// A sentence for an empty group or an impossible ratio.
    pub fn to_core(&self) -> Result<Groups, Mistake> {
        Ok(Groups::new(&self.0)?)
    }

    fn parse(value: Value) -> Result<Self, Mistake> {
        if !value.is_array() {
            let expected = "a list of groups such as [{ size = 100 }, { size = 400, ratio = 0.5 }]";
            return Err(Mistake::is(value, expected));
        }
        let groups = GroupsChoice(read_value(value, Vec::deserialize)?);
        groups.to_core().map(|_| groups)
    }
}

serde_by_parse!(MomentumChoice, PrivacyChoice);
deserialize_by_parse!(GroupsChoice);
