//! The optimizer, which decides what a learning rate means.

use std::str::FromStr;

use serde::Serialize;

use crate::Error;

/// What takes the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Optimizer {
    /// SGD, with momentum or without: a step is as long as the gradient says.
    Sgd,
    /// Adam and its like, which divide by a running scale: a constant factor cancels.
    Adam,
}

impl FromStr for Optimizer {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name.to_lowercase().as_str() {
            "sgd" => Ok(Optimizer::Sgd),
            "adam" | "adamw" => Ok(Optimizer::Adam),
            _ => Err(Error::Invalid(format!(
                "`{name}` is no optimizer known here: give sgd, or adam for all that divide by \
                 their own scale"
            ))),
        }
    }
}
