//! The error type of the crate: what several rooms refuse, and the errors of each room.

use crate::factors::combination::StepError;
use crate::noise::NoiseError;
use crate::rule::groups::GroupError;
use crate::spectrum::{SpectrumError, StartError};

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Errors of this crate: each says what is wrong, where, and what is allowed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter outside its domain.
    #[error("{name} = {} is not allowed: {expected}", plain(*value))]
    Parameter {
        /// The parameter's name, as the user writes it.
        name: &'static str,
        /// The offending value.
        value: f64,
        /// What would be right.
        expected: &'static str,
    },
    /// Inputs that contradict each other or have no meaning together.
    #[error("{0}")]
    Invalid(String),
    /// Parts of a problem that do not go together.
    #[error(transparent)]
    Combination(crate::problem::Combination),
    /// Data that C-SGD cannot run on.
    #[error(transparent)]
    Data(crate::dynamics::DataError),
    /// Times that no path can be saved at.
    #[error(transparent)]
    Times(crate::dynamics::TimesError),
    /// Runs without statistics, and threads that do not start.
    #[error(transparent)]
    Ensemble(crate::ensemble::EnsembleError),
    /// A rate of convergence that cannot be measured.
    #[error(transparent)]
    Convergence(crate::convergence::ConvergenceError),
    /// A question that a generalised linear model has no answer to.
    #[error(transparent)]
    Model(crate::model::ModelError),
    /// An equation that needs more steps than are made.
    #[error("{most} {unit} only reached t = {t} of {last}; {remedy}")]
    TooManySteps {
        /// The number of steps.
        most: u64,
        /// What was counted.
        unit: &'static str,
        /// The time that was reached.
        t: f64,
        /// The last time that was asked for.
        last: f64,
        /// How to need fewer.
        remedy: &'static str,
    },
    /// An instruction set that this machine does not have.
    #[error("this machine does not have {set:?}; it has {available:?}")]
    MissingInstructions {
        /// The one that was asked for.
        set: crate::dynamics::InstructionSet,
        /// Those that it has.
        available: Vec<crate::dynamics::InstructionSet>,
    },
    /// $\nu$, CSC or CCC of noise of infinite variance.
    #[error(
        "nu, CSC and CCC divide by E[X^2] = 2R + E[noise^2], which is infinite for this noise; \
         mu and m2 are finite and are all that the dynamics need"
    )]
    InfiniteVariance,
    /// Something this noise family does not provide.
    #[error("{family} noise does not provide {what}; implement `Noise::{method}` to use it")]
    NotProvided {
        /// The name of the noise.
        family: String,
        /// The missing quantity.
        what: &'static str,
        /// The trait method that would provide it.
        method: &'static str,
    },
    /// A range that ends before it begins.
    #[error("{what} needs ranges low ≤ high, with a finite largest threshold")]
    EmptyRange {
        /// What was asked for.
        what: &'static str,
    },
    /// A distribution of the noise that is none.
    #[error(transparent)]
    Noise(#[from] NoiseError),
    /// Groups of coordinates that are none.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// A combination of noise, batch, rule and privacy without a theory.
    #[error(transparent)]
    Step(#[from] StepError),
    /// Eigenvalues that no covariance has.
    #[error(transparent)]
    Spectrum(#[from] SpectrumError),
    /// A start that does not fit the spectrum.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// The value as it was given, without the hundreds of zeros of a very large or small one.
pub(crate) fn plain(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || size.is_infinite() || (1e-6..1e16).contains(&size) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

impl Error {
    /// A parameter of this name and value, and what would be right.
    pub fn parameter(name: &'static str, value: f64, expected: &'static str) -> Self {
        Error::Parameter { name, value, expected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_briefly() {
        let says = |value| Error::parameter("sigma", value, "must be positive").to_string();
        assert_eq!(says(-1.5), "sigma = -1.5 is not allowed: must be positive");
        assert_eq!(says(1e308), "sigma = 1e308 is not allowed: must be positive");
        assert_eq!(says(-2.5e-300), "sigma = -2.5e-300 is not allowed: must be positive");
        assert_eq!(says(1e9), "sigma = 1000000000 is not allowed: must be positive");
        assert_eq!(says(f64::INFINITY), "sigma = inf is not allowed: must be positive");
        assert_eq!(says(f64::NAN), "sigma = NaN is not allowed: must be positive");
    }
}
