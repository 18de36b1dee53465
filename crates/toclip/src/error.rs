//! The one error type of the crate.

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong in the theory: each variant says what, where, and what would be right.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter outside its domain.
    #[error("{name} = {value} is not allowed: {expected}")]
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
    /// $\nu$, CSC or CCC was asked for noise of infinite variance.
    #[error(
        "nu, CSC and CCC divide by E[X^2] = 2R + E[noise^2], which is infinite for this noise; \
         mu and m2 are finite and are all that the dynamics need"
    )]
    InfiniteVariance,
    /// Something this noise family does not provide.
    #[error("{family} noise does not provide {what}; implement `Noise::{method}` to use it")]
    NotProvided {
        /// The noise, in words.
        family: String,
        /// What was asked.
        what: &'static str,
        /// The trait method that would provide it.
        method: &'static str,
    },
}

impl Error {
    /// A parameter of this name and value, and what would be right.
    pub fn parameter(name: &'static str, value: f64, expected: &'static str) -> Self {
        Error::Parameter { name, value, expected }
    }
}
