//! What is minimised: the squared error, or the loss of another model.

use super::Model;
use std::sync::Arc;

/// The loss that is minimised.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Objective {
    /// The squared error of a linear model; labels have additive [noise](crate::noise).
    #[default]
    LeastSquares,
    /// The loss of a generalised linear model.
    Model(Arc<dyn Model>),
}

impl Objective {
    /// The generalised linear model; `None` for least squares.
    pub fn model(&self) -> Option<&dyn Model> {
        match self {
            Objective::LeastSquares => None,
            Objective::Model(model) => Some(&**model),
        }
    }
}
