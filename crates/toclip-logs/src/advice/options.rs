//! What the user can say in addition to the log.

use std::str::FromStr;

use serde::Serialize;

use crate::{Error, Result};

/// What the user can say in addition to the log.
///
/// | field | default | meaning |
/// |---|---|---|
/// | `clip` | from the log | the clipping in force |
/// | `batch_size` | from the log, else unknown | samples per gradient |
/// | `outputs` | 1 | outputs of the model per sample, such as tokens |
/// | `optimizer` | unknown | the optimizer |
/// | `confidence` | 0.95 | of every interval |
///
/// Without a batch size the curves are for very large batches, which is too favourable to clipping; it
/// is then recommended only if it would be for a single sample too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdviceOptions {
    /// The clipping in force.
    pub clip: Option<Clipping>,
    /// Samples per batch.
    pub batch_size: Option<f64>,
    /// Outputs of the model per sample.
    pub outputs: Option<f64>,
    /// The optimizer.
    pub optimizer: Option<Optimizer>,
    /// The confidence of every interval.
    pub confidence: f64,
}

impl Default for AdviceOptions {
    fn default() -> Self {
        Self { clip: None, batch_size: None, outputs: None, optimizer: None, confidence: 0.95 }
    }
}

impl AdviceOptions {
    /// Checks every value, which [`advise`](crate::advise()) does too.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a value that is out of range.
    pub fn check(&self) -> Result<()> {
        let check =
            |name: &str, value: Option<f64>, valid: fn(f64) -> bool, expected: &str| match value
                .filter(|value| !valid(*value))
            {
                Some(value) => {
                    Err(Error::Invalid(format!("invalid {name} {value}; expected {expected}")))
                }
                None => Ok(()),
            };
        let clip = self.clip.map(Clipping::threshold);
        check("threshold", clip, |c| c > 0.0, "a positive number, or none for no clipping")?;
        let at_least_one = |x: f64| x >= 1.0 && x.is_finite();
        check("batch size", self.batch_size, at_least_one, "a number of at least 1")?;
        check("number of outputs", self.outputs, at_least_one, "a number of at least 1")?;
        let confidence = Some(self.confidence);
        check("confidence", confidence, |p| (0.5..1.0).contains(&p), "0.5 or more, below 1")
    }
}

/// The clipping in force.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clipping {
    /// No clipping; written `none` or `inf`.
    None,
    /// Clipping at this threshold.
    At(f64),
}

impl Clipping {
    /// The threshold; infinite for no clipping.
    pub fn threshold(self) -> f64 {
        match self {
            Clipping::None => f64::INFINITY,
            Clipping::At(threshold) => threshold,
        }
    }
}

impl From<f64> for Clipping {
    fn from(threshold: f64) -> Self {
        if threshold == f64::INFINITY { Clipping::None } else { Clipping::At(threshold) }
    }
}

impl FromStr for Clipping {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match (text.trim().to_lowercase().as_str(), text.trim().parse::<f64>()) {
            ("none", _) => Ok(Clipping::None),
            (_, Ok(threshold)) => Ok(threshold.into()),
            _ => {
                let expected = "expected a positive number, or none for no clipping";
                Err(Error::Invalid(format!("invalid threshold `{text}`; {expected}")))
            }
        }
    }
}

/// The optimizer, which decides what a learning rate means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Optimizer {
    /// SGD, with or without momentum: the length of a step is proportional to the gradient.
    Sgd,
    /// Adam and others that divide by a running scale: a constant factor cancels.
    Adam,
}

impl FromStr for Optimizer {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name.to_lowercase().as_str() {
            "sgd" => Ok(Optimizer::Sgd),
            "adam" | "adamw" => Ok(Optimizer::Adam),
            _ => Err(Error::Invalid(format!(
                "unknown optimizer `{name}`; expected sgd, or adam for every optimizer that divides \
                 by a running scale of the gradient"
            ))),
        }
    }
}
