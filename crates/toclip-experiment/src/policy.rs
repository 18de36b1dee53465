//! The learning rate, the threshold and the margin of stability: what a policy is made of, in files,
//! in Python and in code.
//!
//! The types are read from a value in one of several forms, told apart by hand: serde's untagged
//! enums can only say that no form fits, not which key is wrong.

use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toclip::schedule::{
    Compensation, Greedy, Margin, MaxCcc, Online, OpenLoop, Policy, PrivateGreedy, Proportional,
    ScaleEstimate, Scaled, Schedule, Shape,
};
use toclip::spectrum::{Modes, Rescaling};
use toclip::{Momentum, Rule, Step};
use toml::Value;

use crate::words::{about, deserialize, short, unknown};

/// The kinds of a schedule, as [`Shape`] knows them.
const SHAPES: [&str; 6] = ["constant", "cosine", "warmup", "step", "polynomial", "table"];
const CLIP_RULES: [&str; 4] = ["none", "max_ccc", "proportional", "online"];

/// A value that is a number, or is of a kind: a table with the key `kind`, or the name of a kind
/// alone, which stands for the table without further keys.
enum Form {
    Number(f64),
    Kind(String, Value),
}

/// Reads a number, the string `"inf"`, the name of a kind or a table with a kind; `expected` says
/// what the value may be.
fn form(value: Value, expected: &str) -> Result<Form, String> {
    match value {
        Value::Float(number) => Ok(Form::Number(number)),
        Value::Integer(number) => Ok(Form::Number(number as f64)),
        Value::String(word) if word == "inf" => Ok(Form::Number(f64::INFINITY)),
        Value::String(word) => {
            let table = toml::Table::from_iter([("kind".to_owned(), word.clone().into())]);
            Ok(Form::Kind(word, table.into()))
        }
        Value::Table(table) => match table.get("kind").and_then(Value::as_str) {
            Some(kind) => Ok(Form::Kind(kind.to_owned(), table.into())),
            None => Err("the key `kind` is missing".into()),
        },
        other => Err(format!("is {other}; expected {expected}")),
    }
}

/// Refuses further keys in a table whose kind has no parameters: serde overlooks them.
pub(crate) fn no_parameters(value: &Value, kinds: &[&str]) -> Result<(), String> {
    let (Some(kind), Some(table)) = (value.get("kind").and_then(Value::as_str), value.as_table())
    else {
        return Ok(());
    };
    match table.keys().find(|key| *key != "kind") {
        Some(key) if kinds.contains(&kind) => {
            Err(format!("unknown key `{key}`: \"{kind}\" has no parameters"))
        }
        _ => Ok(()),
    }
}

/// The table that an integer stands for, as the value of `key`, or the table that was given.
pub(crate) fn table_with(key: &str, value: Value, expected: &str) -> Result<Value, String> {
    match value {
        Value::Integer(_) => Ok(toml::Table::from_iter([(key.to_owned(), value)]).into()),
        Value::Table(_) => Ok(value),
        other => Err(format!("is {other}; expected {expected}")),
    }
}

fn schedule(table: Value) -> Result<Schedule, String> {
    Schedule::new(deserialize(table, Shape::deserialize)?).map_err(|error| error.to_string())
}

fn constant(value: f64) -> Result<Schedule, String> {
    Schedule::constant(value).map_err(|error| error.to_string())
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

    fn parse(value: Value) -> Result<Self, String> {
        no_parameters(&value, &["greedy"])?;
        Ok(match form(value, Self::EXPECTED)? {
            Form::Number(number) if number >= 0.0 => constant(number)?.into(),
            Form::Number(number) => {
                return Err(format!("is {}; expected {}", short(number), Self::EXPECTED));
            }
            Form::Kind(kind, _) if kind == "greedy" => LearningRate::Greedy,
            Form::Kind(kind, table) if SHAPES.contains(&&*kind) => schedule(table)?.into(),
            Form::Kind(kind, _) => {
                return Err(unknown("kind", &kind, &[&SHAPES[..], &["greedy"]].concat()));
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
        /// What the learning rate does about the descent that clipping takes.
        #[serde(default)]
        compensation: Compensation,
    },
    /// The same with a standard deviation estimated from the residuals that were seen.
    Online {
        /// κ.
        #[serde(default = "huber")]
        kappa: f64,
        /// What the learning rate does about the descent that clipping takes.
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

    fn parse(value: Value) -> Result<Self, String> {
        no_parameters(&value, &["none", "max_ccc"])?;
        const EXPECTED: &str = "a positive number, \"none\" or inf";
        let (kind, table) = match form(value, EXPECTED)? {
            Form::Number(f64::INFINITY) => return Ok(Clip::None),
            Form::Number(number) if number > 0.0 => return Ok(Clip::Schedule(constant(number)?)),
            Form::Number(number) => {
                return Err(format!("is {}; expected {EXPECTED}", short(number)));
            }
            Form::Kind(kind, table) => (kind, table),
        };
        if SHAPES.contains(&&*kind) {
            return schedule(table).map(Clip::Schedule);
        }
        if Rule::NAMES.contains(&&*kind) {
            return Err(format!(
                "\"{kind}\" is a rule, not a threshold: write rule = \"{kind}\" and the threshold \
                 as clip = 0.9"
            ));
        }
        if !CLIP_RULES.contains(&&*kind) {
            return Err(unknown("kind", &kind, &[&CLIP_RULES[..], &SHAPES[..]].concat()));
        }
        match deserialize(table, Clip::deserialize)? {
            Clip::Proportional { kappa, .. } | Clip::Online { kappa, .. }
                if !(kappa > 0.0 && kappa.is_finite()) =>
            {
                Err(format!("`kappa` is {}; expected a positive number", short(kappa)))
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
    fn parse(value: Value) -> Result<Self, String> {
        match form(value, "a number in (0, 1] or a table")? {
            Form::Number(margin) => Ok(StabilityMargin::Certified { margin }),
            Form::Kind(_, table) => deserialize(table, StabilityMargin::deserialize),
        }
    }
}

impl Serialize for StabilityMargin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StabilityMargin::serialize(self, serializer)
    }
}

macro_rules! deserialize_by_parse {
    ($($name:ty),*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <$name>::parse(toml::Value::deserialize(deserializer)?).map_err(D::Error::custom)
            }
        }
    )*};
}
pub(crate) use deserialize_by_parse;
deserialize_by_parse!(LearningRate, Clip, StabilityMargin);

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
    /// What keeps $\eta$ below the stability limit.
    pub margin: Option<StabilityMargin>,
}

/// A policy that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", about(key, what))]
pub struct PolicyError {
    /// The key in experiment files, such as `clip`.
    pub key: &'static str,
    /// What is wrong with it.
    pub what: String,
}

fn wrong(key: &'static str) -> impl Fn(toclip::Error) -> PolicyError {
    move |error| PolicyError { key, what: error.to_string() }
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
    /// [`PolicyError`] for parts that do not go together.
    pub fn rule(&self, step: &Step<'static>) -> Result<Arc<dyn Policy>, PolicyError> {
        let refuse = |key, what: &str| Err(PolicyError { key, what: what.into() });
        let fixed = matches!(self.clip, Clip::None | Clip::Schedule(_));
        let plain = fixed && self.margin.is_none();
        if !(plain || step.rule().is_radial()) {
            let key = if fixed { "margin" } else { "clip" };
            let what = "needs one pair of factors for all eigenvalues, which this rule does not \
                        have: use a fixed threshold or a schedule, without a margin";
            return refuse(key, what);
        }
        if *step.rule() == Rule::Normalise && matches!(self.clip, Clip::None | Clip::MaxCcc) {
            let what = "to normalise gradients, give the threshold that they are scaled to, such \
                        as clip = 0.9";
            return refuse("clip", what);
        }
        if is_private(step) && matches!(self.clip, Clip::None | Clip::MaxCcc) {
            let what = "private SGD adds noise in proportion to the threshold: give one, such as \
                        clip = 0.5, or take the schedule of fastest descent, learning_rate = \
                        \"greedy\" with clip = \"max_ccc\"";
            return refuse("clip", what);
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
                return refuse("learning_rate", what);
            }
            (LearningRate::Schedule(eta), _) => eta.clone(),
        };
        let unlimited = matches!(eta.shape(), Shape::Constant { value } if value.is_infinite());
        if unlimited && !matches!(self.margin, Some(StabilityMargin::Predicted { .. })) {
            let what = "is inf; expected a finite number, or a margin of the kind \"predicted\", \
                        which limits it";
            return refuse("learning_rate", what);
        }
        let step = step.clone();
        Ok(match &self.clip {
            Clip::None => Arc::new(OpenLoop::unclipped(eta)),
            Clip::Schedule(clip) => Arc::new(OpenLoop::new(eta, clip.clone())),
            Clip::MaxCcc => Arc::new(MaxCcc::new(eta, step)),
            Clip::Proportional { kappa, compensation } => Arc::new(
                Proportional::new(*kappa, eta, step, *compensation).map_err(wrong("clip"))?,
            ),
            Clip::Online { kappa, compensation, scale, memory } => {
                let known = Proportional::new(*kappa, eta, step, *compensation);
                let online = known.and_then(|known| Online::new(known, *scale, *memory));
                Arc::new(online.map_err(wrong("clip"))?)
            }
        })
    }

    /// Refuses what is known for plain SGD only.
    ///
    /// # Errors
    /// [`PolicyError`] for a greedy rate or a margin together with momentum.
    pub fn check_momentum(&self, momentum: Option<Momentum>) -> Result<(), PolicyError> {
        let refuse = |key, what: &str| Err(PolicyError { key, what: what.into() });
        match self {
            _ if momentum.is_none() => Ok(()),
            PolicySpec { learning_rate: LearningRate::Greedy, .. } => refuse(
                "learning_rate",
                "the greedy rate is that of plain SGD; with momentum give a number or a schedule",
            ),
            PolicySpec { margin: Some(_), .. } => {
                refuse("margin", "the limits are those of plain SGD; with momentum leave it out")
            }
            _ => Ok(()),
        }
    }

    /// The policy in the coordinates of the theory, where $\Vert K\Vert = 1$.
    ///
    /// # Errors
    /// [`PolicyError`] for parts that do not go together, or not with this problem.
    pub fn build(
        &self,
        modes: &Modes,
        step: &Step<'static>,
        rescaling: &Rescaling,
    ) -> Result<Arc<dyn Policy>, PolicyError> {
        if is_private(step) && self.margin.is_some() {
            let what = "the limits do not count the noise of private SGD; leave the margin out";
            return Err(PolicyError { key: "margin", what: what.into() });
        }
        let mut policy = match (&self.learning_rate, &self.clip) {
            (LearningRate::Greedy, Clip::MaxCcc) if is_private(step) => {
                let greedy = PrivateGreedy::new(step.clone(), modes.ambient_dim());
                Arc::new(greedy.map_err(wrong("learning_rate"))?)
            }
            _ => self.rule(step)?,
        };
        if !rescaling.is_identity() {
            let greedy = self.learning_rate == LearningRate::Greedy;
            let rate = if greedy { 1.0 } else { rescaling.learning_rate(1.0) };
            let threshold = if self.has_own_thresholds() { rescaling.threshold(1.0) } else { 1.0 };
            policy = Arc::new(Scaled::new(policy, rate, threshold));
        }
        let step = step.clone();
        let capped = match self.margin {
            None => return Ok(policy),
            Some(StabilityMargin::Certified { margin }) => {
                Margin::certified(policy, modes, step, margin)
            }
            Some(StabilityMargin::Predicted { margin, time }) => {
                Margin::predicted(policy, modes, step, margin, time)
            }
        };
        Ok(Arc::new(capped.map_err(wrong("margin"))?))
    }
}
