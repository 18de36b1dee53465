//! The parts of a policy, in files, in Python and in code: learning rate, threshold and margin of
//! stability.

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use toclip::policy::{
    Compensation, Greedy, Margin, MaxCcc, Online, OpenLoop, Policy, PrivateGreedy, Proportional,
    ScaleEstimate, Scaled, Schedule, Shape,
};
use toclip::spectrum::{Modes, Rescaling};
use toclip::{Optimizer, Problem, Rule, Step};
use toml::Value;

use crate::Mistake;

use crate::KeyError;
use crate::value::read_value;
use crate::value_forms::{
    NumberOrKind, deserialize_by_parse, no_parameters, number_or_kind, serde_by_parse,
};
use toclip_words::{short, unknown};

/// The kinds of a schedule, as [`Shape`] knows them.
const SHAPES: [&str; 6] = ["constant", "cosine", "warmup", "step", "polynomial", "table"];
const CLIP_RULES: [&str; 4] = ["none", "max_ccc", "proportional", "online"];

fn schedule(table: Value) -> Result<Schedule, Mistake> {
    Ok(Schedule::new(read_value(table, Shape::deserialize)?)?)
}

fn constant(value: f64) -> Result<Schedule, Mistake> {
    Ok(Schedule::constant(value)?)
}

/// $\eta$ along time: `0.7`, `{ kind = "cosine", from = 0.7, over = 15.0 }` or `"greedy"`.
#[derive(Debug, Clone, PartialEq)]
pub enum LearningRate {
    /// A function of time.
    Schedule(Schedule),
    /// The rate of fastest descent at every risk.
    Greedy,
}

impl LearningRate {
    const EXPECTED: &str = "a number, at least 0, a schedule such as { kind = \"cosine\", \
                            from = 0.7, over = 15.0 }, or \"greedy\"";

    /// The schedule, unless the rate is greedy.
    pub fn schedule(&self) -> Option<&Schedule> {
        match self {
            LearningRate::Schedule(schedule) => Some(schedule),
            LearningRate::Greedy => None,
        }
    }

    fn parse(value: Value) -> Result<Self, Mistake> {
        no_parameters(&value, &["greedy"])?;
        Ok(match number_or_kind(value, Self::EXPECTED)? {
            NumberOrKind::Number(number) if number >= 0.0 => constant(number)?.into(),
            NumberOrKind::Number(number) => {
                return Err(Mistake::is(short(number), Self::EXPECTED));
            }
            NumberOrKind::Kind(kind, _) if kind == "greedy" => LearningRate::Greedy,
            NumberOrKind::Kind(kind, table) if SHAPES.contains(&&*kind) => schedule(table)?.into(),
            NumberOrKind::Kind(kind, _) => {
                return Err(unknown("kind", &kind, &[&SHAPES[..], &["greedy"]].concat()).into());
            }
        })
    }
}

impl From<Schedule> for LearningRate {
    fn from(schedule: Schedule) -> Self {
        LearningRate::Schedule(schedule)
    }
}

impl Serialize for LearningRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            LearningRate::Schedule(schedule) => schedule.serialize(serializer),
            LearningRate::Greedy => serializer.serialize_str("greedy"),
        }
    }
}

/// How gradients are clipped: `0.9`, `"none"`, `{ kind = "proportional", kappa = 1.345 }`, …
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Clip {
    /// Not at all.
    None,
    /// Where CCC is largest.
    MaxCcc,
    /// At κ standard deviations of the residual.
    Proportional {
        /// κ.
        #[serde(default = "huber")]
        kappa: f64,
        /// How the learning rate makes up for the descent that clipping removes.
        #[serde(default)]
        compensation: Compensation,
    },
    /// The same with a standard deviation estimated from the residuals that were seen.
    Online {
        /// κ.
        #[serde(default = "huber")]
        kappa: f64,
        /// How the learning rate makes up for the descent that clipping removes.
        #[serde(default)]
        compensation: Compensation,
        /// How the standard deviation is estimated.
        #[serde(default)]
        scale: ScaleEstimate,
        /// How many samples the estimate remembers.
        memory: f64,
    },
    /// At a threshold that depends on time alone.
    #[serde(skip)]
    Schedule(Schedule),
}

fn huber() -> f64 {
    Proportional::HUBER
}

impl Clip {
    /// Whether anything is clipped at all.
    pub fn clips(&self) -> bool {
        *self != Clip::None
    }

    fn parse(value: Value) -> Result<Self, Mistake> {
        no_parameters(&value, &["none", "max_ccc"])?;
        const EXPECTED: &str = "a positive number, \"none\" or inf";
        let (kind, table) = match number_or_kind(value, EXPECTED)? {
            NumberOrKind::Number(f64::INFINITY) => return Ok(Clip::None),
            NumberOrKind::Number(number) if number > 0.0 => {
                return Ok(Clip::Schedule(constant(number)?));
            }
            NumberOrKind::Number(number) => {
                return Err(Mistake::is(short(number), EXPECTED));
            }
            NumberOrKind::Kind(kind, table) => (kind, table),
        };
        if SHAPES.contains(&&*kind) {
            return schedule(table).map(Clip::Schedule);
        }
        if Rule::NAMES.contains(&&*kind) {
            return Err(format!(
                "\"{kind}\" is a rule, not a threshold: write rule = \"{kind}\" and the threshold \
                 as clip = 0.9"
            )
            .into());
        }
        if !CLIP_RULES.contains(&&*kind) {
            return Err(unknown("kind", &kind, &[&CLIP_RULES[..], &SHAPES[..]].concat()).into());
        }
        match read_value(table, Clip::deserialize)? {
            Clip::Proportional { kappa, .. } | Clip::Online { kappa, .. }
                if !(kappa > 0.0 && kappa.is_finite()) =>
            {
                Err(format!("`kappa` is {}; expected a positive number", short(kappa)).into())
            }
            clip => Ok(clip),
        }
    }
}

impl Serialize for Clip {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Clip::None => serializer.serialize_str("none"),
            Clip::Schedule(schedule) => schedule.serialize(serializer),
            clip => Clip::serialize(clip, serializer),
        }
    }
}

/// Keeps the learning rate below a share of the stability limit: `0.9`, or
/// `{ kind = "predicted", margin = 0.9, time = 10.0 }`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum StabilityMargin {
    /// A limit that holds whatever happens.
    Certified {
        /// The share of the limit.
        margin: f64,
    },
    /// The limit along the predicted path.
    Predicted {
        /// The share of the limit.
        margin: f64,
        /// Up to this time.
        time: f64,
    },
}

impl StabilityMargin {
    fn parse(value: Value) -> Result<Self, Mistake> {
        match number_or_kind(value, "a number in (0, 1] or a table")? {
            NumberOrKind::Number(margin) => Ok(StabilityMargin::Certified { margin }),
            NumberOrKind::Kind(_, table) => read_value(table, StabilityMargin::deserialize),
        }
    }
}

deserialize_by_parse!(LearningRate, Clip);
serde_by_parse!(StabilityMargin);

/// A whole policy, before it is built for a problem.
///
/// ```
/// use toclip_experiment::PolicySpec;
/// let policy: PolicySpec = toml::from_str("learning_rate = 0.4\nclip = 'max_ccc'\nmargin = 0.9")?;
/// assert!(policy.clip.clips());
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySpec {
    /// $\eta$.
    pub learning_rate: LearningRate,
    /// $c$.
    pub clip: Clip,
    /// The margin below the stability limit that $\eta$ keeps.
    pub margin: Option<StabilityMargin>,
}

/// Whether the step adds the noise of private SGD.
fn is_private(step: &Step<'_>) -> bool {
    step.privacy().is_some_and(|privacy| privacy.noise_multiplier() > 0.0)
}

impl PolicySpec {
    /// Whether thresholds are numbers of the user, and so in the user's units. Rules look at the
    /// residual, which has the same units in all coordinates.
    pub fn has_own_thresholds(&self) -> bool {
        matches!(self.clip, Clip::Schedule(_))
    }

    /// The policy in the units of the user, without its margin.
    ///
    /// # Errors
    /// [`KeyError`] for parts that do not go together.
    pub fn unscaled(&self, step: &Step<'static>) -> Result<Arc<dyn Policy>, KeyError> {
        let fixed = matches!(self.clip, Clip::None | Clip::Schedule(_));
        let plain = fixed && self.margin.is_none();
        if !(plain || step.rule().is_radial()) {
            let key = if fixed { "margin" } else { "clip" };
            let what = "needs one pair of factors for all eigenvalues, which this rule does not \
                        have: use a fixed threshold or a schedule, without a margin";
            return Err(KeyError::new(key, what));
        }
        if *step.rule() == Rule::Normalise && matches!(self.clip, Clip::None | Clip::MaxCcc) {
            let what = "to normalise gradients, give the threshold that they are scaled to, such \
                        as clip = 0.9";
            return Err(KeyError::new("clip", what));
        }
        if is_private(step) && matches!(self.clip, Clip::None | Clip::MaxCcc) {
            let what = "private SGD adds noise in proportion to the threshold: give one, such as \
                        clip = 0.5, or take the schedule of fastest descent, learning_rate = \
                        \"greedy\" with clip = \"max_ccc\"";
            return Err(KeyError::new("clip", what));
        }
        let eta = match (&self.learning_rate, &self.clip) {
            (LearningRate::Greedy, Clip::None) => {
                return Ok(Arc::new(Greedy::unclipped(step.clone())));
            }
            (LearningRate::Greedy, Clip::MaxCcc) => {
                return Ok(Arc::new(Greedy::clipped(step.clone())));
            }
            (LearningRate::Greedy, _) => {
                let what = "the greedy learning rate needs clip = \"none\" or clip = \"max_ccc\"";
                return Err(KeyError::new("learning_rate", what));
            }
            (LearningRate::Schedule(eta), _) => eta.clone(),
        };
        let unlimited = matches!(eta.shape(), Shape::Constant { value } if value.is_infinite());
        if unlimited && !matches!(self.margin, Some(StabilityMargin::Predicted { .. })) {
            let expected =
                "a finite number, or a margin of the kind \"predicted\", which limits it";
            return Err(KeyError::new("learning_rate", Mistake::is("inf", expected)));
        }
        let step = step.clone();
        Ok(match &self.clip {
            Clip::None => Arc::new(OpenLoop::unclipped(eta)),
            Clip::Schedule(clip) => Arc::new(OpenLoop::new(eta, clip.clone())),
            Clip::MaxCcc => Arc::new(MaxCcc::new(eta, step)),
            Clip::Proportional { kappa, compensation } => Arc::new(
                Proportional::new(*kappa, eta, step, *compensation)
                    .map_err(|e| KeyError::new("clip", e))?,
            ),
            Clip::Online { kappa, compensation, scale, memory } => {
                let known = Proportional::new(*kappa, eta, step, *compensation);
                let online = known.and_then(|known| Online::new(known, *scale, *memory));
                Arc::new(online.map_err(|e| KeyError::new("clip", e))?)
            }
        })
    }

    /// Refuses policies that are known for plain SGD only.
    ///
    /// # Errors
    /// [`KeyError`] for a greedy rate or a margin together with momentum.
    pub fn check_optimizer(&self, optimizer: &Optimizer) -> Result<(), KeyError> {
        let (key, what) = match self {
            _ if *optimizer == Optimizer::Sgd => return Ok(()),
            PolicySpec { learning_rate: LearningRate::Greedy, .. } => (
                "learning_rate",
                "the greedy rate is that of plain SGD; with momentum give a number or a schedule",
            ),
            PolicySpec { margin: Some(_), .. } => {
                ("margin", "the limits are those of plain SGD; with momentum leave it out")
            }
            _ => return Ok(()),
        };
        Err(KeyError::new(key, what))
    }

    /// The policy in the coordinates of the theory, where $\Vert K\Vert = 1$.
    ///
    /// # Errors
    /// [`KeyError`] for parts that do not go together, or not with this problem.
    pub fn build(
        &self,
        modes: &Modes,
        step: &Step<'static>,
        rescaling: &Rescaling,
    ) -> Result<Arc<dyn Policy>, KeyError> {
        if is_private(step) && self.margin.is_some() {
            let what = "the limits do not count the noise of private SGD; leave the margin out";
            return Err(KeyError::new("margin", what));
        }
        let mut policy = match (&self.learning_rate, &self.clip) {
            (LearningRate::Greedy, Clip::MaxCcc) if is_private(step) => {
                let greedy = PrivateGreedy::new(step.clone(), modes.ambient_dim());
                Arc::new(greedy.map_err(|e| KeyError::new("learning_rate", e))?)
            }
            _ => self.unscaled(step)?,
        };
        if !rescaling.is_identity() {
            let greedy = self.learning_rate == LearningRate::Greedy;
            let rate = if greedy { 1.0 } else { rescaling.learning_rate(1.0) };
            let threshold = if self.has_own_thresholds() { rescaling.threshold(1.0) } else { 1.0 };
            policy = Arc::new(Scaled::new(policy, rate, threshold));
        }
        if self.margin.is_none() {
            return Ok(policy);
        }
        let refuse = |e: toclip::Error| KeyError::new("margin", e);
        let problem = Problem::new(modes.clone(), step.clone(), policy.clone()).map_err(refuse);
        let capped = match self.margin {
            None => return Ok(policy),
            Some(StabilityMargin::Certified { margin }) => Margin::certified(&problem?, margin),
            Some(StabilityMargin::Predicted { margin, time }) => {
                Margin::predicted(&problem?, margin, time)
            }
        };
        Ok(Arc::new(capped.map_err(refuse)?))
    }
}
