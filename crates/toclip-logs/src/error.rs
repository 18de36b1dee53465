//! The one error type of the crate.

use crate::Format;

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a log gave no gradient norms: each variant says what was wrong and what would be right.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The log could not be read.
    #[error("cannot read the log: {0}")]
    Io(#[from] std::io::Error),
    /// There is nothing in the file.
    #[error("the log is empty")]
    Empty,
    /// The bytes are no log that is known.
    #[error("{0}")]
    NotALog(String),
    /// A column that was asked for is not there.
    #[error("there is no column `{name}`; {have}")]
    NoColumn {
        /// The column asked for.
        name: String,
        /// The columns there are, in words.
        have: String,
    },
    /// The log holds rows, but no gradient norm.
    #[error("no gradient norm in this {format} log: {why}")]
    NoNorm {
        /// What the log was read as.
        format: Format,
        /// What was looked for, what was there, and how to log the norm.
        why: String,
    },
    /// An option has an impossible value.
    #[error("{0}")]
    Invalid(String),
    /// The theory refused the numbers.
    #[error(transparent)]
    Theory(#[from] toclip::Error),
}
