//! The model of a classification: `model = { kind = "logistic", flips = 0.1 }`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toclip::model::{Huber, Logistic, Model};
use toclip::noise::Noise;
use toml::Value;

use crate::value_forms::{serde_by_parse, table_with};
use crate::words::deserialize;

/// Why a model takes no noise.
pub(crate) const NO_NOISE: &str = "this model has random labels of its own; to flip some, write \
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
    fn parse(value: Value) -> Result<Self, String> {
        const EXPECTED: &str = "a table such as { kind = \"logistic\", flips = 0.1 }";
        let table = table_with("kind", value, Value::is_str, EXPECTED)?;
        let choice = deserialize(table, ModelChoice::deserialize)?;
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
    pub fn build(&self, noise: Option<Arc<dyn Noise>>) -> Result<Arc<dyn Model>, String> {
        let says = |error: toclip::Error| error.to_string();
        if noise.is_some() && !self.has_noise() {
            return Err(NO_NOISE.into());
        }
        Ok(match *self {
            ModelChoice::Logistic { flips } => Arc::new(Logistic::new(flips).map_err(says)?),
            ModelChoice::Huber { delta } => {
                let noise = noise.ok_or("Huber regression needs the key `noise`")?;
                Arc::new(Huber::new(noise, delta).map_err(says)?)
            }
        })
    }
}

serde_by_parse!(ModelChoice);
