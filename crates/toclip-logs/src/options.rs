//! Options of the advice: facts that the log may lack.

use std::str::FromStr;

use serde::Serialize;

use crate::read::optimizer_kind;
use crate::{Error, Result};

/// Facts about the run that the log may lack.
///
/// | field | default | meaning |
/// |---|---|---|
/// | `clip` | from the log | the current threshold; infinite for no clipping |
/// | `batch_size` | from the log, else unknown | samples per gradient |
/// | `outputs` | 1 | outputs of the model per sample, such as tokens |
/// | `optimizer` | unknown | the optimizer |
/// | `confidence` | 0.95 | of every interval |
///
/// Without a batch size the curves are for very large batches, which is too favourable to clipping; it
/// is then recommended only if it would be for a single sample too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdviceOptions {
    /// The current threshold; infinite for no clipping.
    pub clip: Option<f64>,
    /// Samples per batch.
    pub batch_size: Option<f64>,
    /// Outputs of the model per sample.
    pub outputs: Option<f64>,
    /// The optimizer.
    pub optimizer: Option<OptimizerKind>,
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
        let at_least_one = |x: Option<f64>| x.is_none_or(|x| x >= 1.0 && x.is_finite());
        let number = "a number of at least 1";
        let clip = self.clip.is_none_or(|c| c > 0.0);
        let confidence = (0.5..1.0).contains(&self.confidence);
        for (valid, name, value, expected) in [
            (clip, "threshold", self.clip, "a positive number, or none for no clipping"),
            (at_least_one(self.batch_size), "batch size", self.batch_size, number),
            (at_least_one(self.outputs), "number of outputs", self.outputs, number),
            (confidence, "confidence", Some(self.confidence), "0.5 or more, below 1"),
        ] {
            if !valid {
                let value = value.unwrap_or(f64::NAN);
                return Err(Error::Invalid(format!("invalid {name} {value}; expected {expected}")));
            }
        }
        Ok(())
    }
}

/// The kind of optimizer: whether the scale of the gradient matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OptimizerKind {
    /// SGD, with or without momentum: the length of a step is proportional to the gradient.
    Sgd,
    /// Adam and others that divide by a running scale: a constant factor cancels.
    Adam,
}

impl FromStr for OptimizerKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        optimizer_kind(name).ok_or_else(|| {
            Error::Invalid(format!(
                "unknown optimizer `{name}`; expected sgd, or adam for every optimizer in which the \
                 scale of the gradient cancels (Adam, AdamW, Lion, Muon, Adafactor, …)"
            ))
        })
    }
}
