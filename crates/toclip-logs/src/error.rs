//! The error type of the crate.

use crate::{Format, Hint};

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a log could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The log could not be read.
    #[error("cannot read the log: {0}")]
    Io(#[from] std::io::Error),
    /// The file is empty.
    #[error("the log is empty")]
    Empty,
    /// The folder has no logs.
    #[error(
        "no training log in this folder; looked for TensorBoard event files \
         (events.out.tfevents.*), W&B runs (run-*.wandb), the MLflow file store (mlruns), \
         trainer_state.json, Lightning's metrics.csv, and files *.jsonl, *.csv, *.log, *.txt with a \
         gradient norm"
    )]
    NoLogs,
    /// The content is not a log in a supported format.
    #[error("{0}")]
    NotALog(String),
    /// A column that the caller named does not exist.
    #[error("unknown column `{name}`; {}", crate::names::known_columns(name, known))]
    UnknownColumn {
        /// The name given.
        name: String,
        /// The names in the log.
        known: Vec<String>,
    },
    /// Several columns have the part of a name that the caller gave.
    #[error(
        "several columns match `{name}`: {}; give more of the name",
        crate::names::list(matching)
    )]
    AmbiguousColumn {
        /// The part given.
        name: String,
        /// The names that have it.
        matching: Vec<String>,
    },
    /// The log has rows, but no gradient norm.
    #[error("no gradient norm in this {format} log: {why}")]
    NoNorm {
        /// The format.
        format: Format,
        /// The columns found instead, and how to log the norm.
        why: String,
        /// The option that would make the log usable.
        hint: Option<Hint>,
    },
    /// An option has an invalid value.
    #[error("{0}")]
    Invalid(String),
    /// An estimator refused the numbers.
    #[error(transparent)]
    Estimate(#[from] toclip::Error),
}

impl Error {
    /// The option that would make the log usable.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Error::NoNorm { hint, .. } => *hint,
            _ => None,
        }
    }
}
