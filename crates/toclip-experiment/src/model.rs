//! The model of a classification: `model = { kind = "logistic", flips = 0.1 }`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toclip::model::{Huber, Logistic, Model};
use toclip::noise::Noise;
use toclip::policy::{Schedule, Shape};
use toml::Value;

use crate::{Clip, Experiment, KeyError, Method, Mistake};

use crate::value::read_value;
use crate::value_forms::{serde_by_parse, table_with};

/// Why a model takes no noise.
const NO_NOISE: &str = "this model has random labels of its own; to flip some, write \
     `model = { kind = \"logistic\", flips = 0.1 }`";

/// A generalised linear model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ModelChoice {
    /// Logistic regression.
    Logistic {
        /// The share of the labels that are flipped.
        #[serde(default)]
        flips: f64,
    },
    /// Huber regression on targets with noise.
    Huber {
        /// The corner of the loss.
        delta: f64,
    },
}

impl ModelChoice {
    fn parse(value: Value) -> Result<Self, Mistake> {
        const EXPECTED: &str = "a table such as { kind = \"logistic\", flips = 0.1 }";
        let table = table_with("kind", value, Value::is_str, EXPECTED)?;
        let choice = read_value(table, ModelChoice::deserialize)?;
        // A noise stands in for that of the file, which does not matter here.
        let noise = choice.has_noise().then(|| Arc::new(toclip::noise::NoNoise) as Arc<dyn Noise>);
        choice.build(noise).map(|_| choice)
    }

    /// Whether targets have the noise of the file.
    pub fn has_noise(&self) -> bool {
        matches!(self, ModelChoice::Huber { .. })
    }

    /// The model of the theory; Huber regression needs a noise, and logistic regression has none.
    ///
    /// # Errors
    /// A sentence for parameters out of range, for Huber regression without a noise, and for a noise
    /// that the model does not have.
    pub fn build(&self, noise: Option<Arc<dyn Noise>>) -> Result<Arc<dyn Model>, Mistake> {
        if noise.is_some() && !self.has_noise() {
            return Err(NO_NOISE.into());
        }
        Ok(match *self {
            ModelChoice::Logistic { flips } => Arc::new(Logistic::new(flips)?),
            ModelChoice::Huber { delta } => {
                let noise = noise.ok_or("Huber regression needs the key `noise`")?;
                Arc::new(Huber::new(noise, delta)?)
            }
        })
    }
}

/// The methods for generalised linear models.
pub(crate) const METHODS: [Method; 3] = [Method::Ode, Method::Unclipped, Method::Sgd];

/// Refuses what does not go with the model of an experiment.
pub(crate) fn check_model(experiment: &Experiment) -> Result<(), KeyError> {
    let Some(model) = &experiment.model else { return Ok(()) };
    if let Some(method) = experiment.methods.iter().find(|m| !METHODS.contains(m)) {
        let names = METHODS.map(|m| format!("\"{}\"", m.key())).join(", ");
        let what = format!(
            "\"{}\" is for least squares; generalised linear models have {names}",
            method.key()
        );
        return Err(KeyError::new("methods", what));
    }
    let rate = experiment.learning_rate.schedule().map(Schedule::shape);
    if matches!(rate, Some(Shape::Constant { value }) if value.is_infinite()) {
        return Err(KeyError::new("learning_rate", Mistake::is("inf", "a finite number")));
    }
    if rate.is_none() {
        let what = "\"greedy\" follows the risk of least squares; give a number or a schedule";
        return Err(KeyError::new("learning_rate", what));
    }
    if !matches!(experiment.clip, Clip::None | Clip::Schedule(_)) {
        let what =
            "this rule follows the risk of least squares; give a number, a schedule or \"none\"";
        return Err(KeyError::new("clip", what));
    }
    match (model.has_noise(), experiment.noise.is_of_model()) {
        (true, true) => Err(KeyError::new(
            "model",
            "Huber regression needs the noise of its targets; for example \
             `noise = { family = \"student_t\", df = 2.0, scale = 0.5 }`",
        )),
        (false, false) => Err(KeyError::new("noise", NO_NOISE)),
        _ => Ok(()),
    }
}

serde_by_parse!(ModelChoice);
