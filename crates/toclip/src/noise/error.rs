//! What no distribution of the noise is.

use crate::error::plain;

/// Parameters that give no distribution.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoiseError {
    /// The family's own parameter and σ.
    #[error("{family} noise: give `{parameter}` or `sigma`, not both")]
    BothScales {
        /// The family.
        family: &'static str,
        /// Its own parameter.
        parameter: &'static str,
    },
    /// Neither the family's own parameter nor σ.
    #[error("{family} noise needs `{parameter}` (or `sigma`)")]
    NoScale {
        /// The family.
        family: &'static str,
        /// Its own parameter.
        parameter: &'static str,
    },
    /// Lists of a mixture with different lengths.
    #[error(
        "a Gaussian mixture needs as many means and stds as weights, got {weights} weights, \
         {means} means, {stds} stds"
    )]
    MixtureLengths {
        /// The number of weights.
        weights: usize,
        /// The number of means.
        means: usize,
        /// The number of standard deviations.
        stds: usize,
    },
    /// A mixture of nothing.
    #[error("a Gaussian mixture needs at least one component of positive weight")]
    NoWeight,
    /// An empirical distribution of nothing.
    #[error("empirical noise needs at least one residual")]
    NoResiduals,
    /// A residual that is not finite, or too large to be squared.
    #[error("residual number {} is {value}: residuals must be finite, at most 1e150", index + 1)]
    Residual {
        /// Its place in the list, from 0.
        index: usize,
        /// Its value.
        value: f64,
    },
    /// A density that is not normalised.
    #[error(
        "the density of {name} noise integrates to {}, not 1: is it normalised, and is {} its \
         typical scale?", plain(*mass), plain(*scale)
    )]
    NotNormalised {
        /// The name of the noise.
        name: String,
        /// Its integral.
        mass: f64,
        /// The typical scale.
        scale: f64,
    },
}
