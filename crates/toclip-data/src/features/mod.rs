//! From raw samples to a least-squares problem with $\Vert K\Vert = 1$.
//!
//! [`Design`] maps a [`SampleSource`](crate::SampleSource) block by block through random features,
//! centres and scales them, and diagonalises their covariance; [`LeastSquares`] finds $\theta^\ast$ and
//! the residuals. The results do not depend on the number of threads: rows are processed in blocks
//! of a fixed size, and sums are taken in the order of the blocks.

mod clipped_moments;
mod clipped_optimum;
mod design;
mod feature_map;
mod least_squares;
mod logistic_regression;
mod one_pass;
mod tall_matrix;

pub use clipped_optimum::{ChanceBias, ClippedOptimum};
pub use design::Design;
pub use least_squares::{LeastSquares, Residuals, Ridge, normal_start};
pub use logistic_regression::{LogisticRegression, LogisticRidge, RidgeReason};
pub use one_pass::OnePass;

use crate::error::bail;
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// The function of $\langle x, a\rangle$ in a random feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activation {
    /// $\tanh$, as in the paper.
    Tanh,
    /// $\max(0, \cdot)$.
    Relu,
}

impl Activation {
    const NAMES: [(&'static str, Activation); 2] =
        [("tanh", Activation::Tanh), ("relu", Activation::Relu)];

    fn apply(self, x: f64) -> f64 {
        match self {
            Activation::Tanh => x.tanh(),
            Activation::Relu => x.max(0.0),
        }
    }
}

/// The features of a model: the inputs themselves, or $f(xA)$ with a standard Gaussian $A$.
///
/// ```
/// use toclip_data::{Activation, Features};
/// let features: Features = "tanh:500".parse()?;
/// assert_eq!(features, Features::Random { activation: Activation::Tanh, count: 500 });
/// assert_eq!("none".parse::<Features>()?.to_string(), "none");
/// # Ok::<(), toclip_data::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Features {
    /// The inputs as they are.
    None,
    /// Random features.
    Random {
        /// $f$.
        activation: Activation,
        /// How many.
        count: usize,
    },
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Features::None => write!(f, "none"),
            Features::Random { activation, count } => {
                let named = Activation::NAMES.iter().find(|(_, known)| known == activation);
                write!(f, "{}:{count}", named.map_or("", |(name, _)| name))
            }
        }
    }
}

impl FromStr for Features {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "none" {
            return Ok(Features::None);
        }
        let (name, count) = text.split_once(':').unwrap_or_default();
        let activation = Activation::NAMES.iter().find(|(known, _)| *known == name);
        match (activation, count.parse()) {
            (Some((_, activation)), Ok(count @ 1..=20_000)) => {
                Ok(Features::Random { activation: *activation, count })
            }
            _ => bail!(
                "unknown features `{text}`; expected none, or tanh:N or relu:N with N from 1 \
                        to 20000"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_named_as_they_are_written() {
        for text in ["tanh:500", "relu:1", "none"] {
            assert_eq!(text.parse::<Features>().unwrap().to_string(), text);
        }
        for text in ["tanh", "tanh:0", "tanh:-1", "relu:99999999", "sigmoid:5", "none:5", ""] {
            assert!(text.parse::<Features>().is_err(), "{text}");
        }
        let wrong = "sigmoid:5".parse::<Features>().unwrap_err();
        insta::assert_snapshot!(
            wrong,
            @"unknown features `sigmoid:5`; expected none, or tanh:N or relu:N with N from 1 to 20000"
        );
    }
}
