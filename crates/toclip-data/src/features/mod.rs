//! From raw samples to a least-squares problem with $\Vert K\Vert = 1$.
//!
//! [`Design`] maps a [`Source`](crate::Source) block by block through random features, centres and
//! scales them, and diagonalises their covariance; [`LeastSquares`] finds $\theta^\ast$ and what is
//! left of the targets. Both give the same bits for any number of threads: rows are worked on in
//! pieces of a fixed size, and sums are taken in the order of the pieces.

mod chance;
mod design;
mod destination;
mod least_squares;
mod map;
mod one_pass;
mod pieces;
mod smooth;

pub use chance::Chance;
pub use design::Design;
pub use destination::Destination;
pub use least_squares::{LeastSquares, Residuals, Ridge};
pub use one_pass::OnePass;

use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// What a random feature does to $\langle x, a\rangle$.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activation {
    /// $\tanh$, as in the paper.
    Tanh,
    /// $\max(0, \cdot)$.
    Relu,
}

impl Activation {
    fn apply(self, x: f64) -> f64 {
        match self {
            Activation::Tanh => x.tanh(),
            Activation::Relu => x.max(0.0),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Activation::Tanh => "tanh",
            Activation::Relu => "relu",
        }
    }
}

/// Which features a model sees: the inputs themselves, or $f(xA)$ with a standard Gaussian $A$.
///
/// ```
/// use toclip_data::{Activation, Features};
/// let features: Features = "tanh:500".parse()?;
/// assert_eq!(features, Features::Random { activation: Activation::Tanh, count: 500 });
/// assert_eq!("none".parse::<Features>()?.to_string(), "none");
/// # Ok::<(), toclip_data::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
            Features::Random { activation, count } => write!(f, "{}:{count}", activation.name()),
        }
    }
}

impl FromStr for Features {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::Invalid(format!(
                "`{text}` names no features; write tanh:500, relu:500 (any number), or none"
            ))
        };
        if text == "none" {
            return Ok(Features::None);
        }
        let (name, count) = text.split_once(':').ok_or_else(wrong)?;
        let activation =
            [Activation::Tanh, Activation::Relu].into_iter().find(|a| a.name() == name);
        let count = count.parse().ok().filter(|count| (1..=20_000).contains(count));
        match (activation, count) {
            (Some(activation), Some(count)) => Ok(Features::Random { activation, count }),
            _ => Err(wrong()),
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
            let message = text.parse::<Features>().unwrap_err().to_string();
            assert!(message.contains("write tanh:500"), "{message}");
        }
    }
}
