//! Errors of reading and running an experiment.

use std::io;
use std::path::PathBuf;

use crate::Mistake;

/// The result of reading or running an experiment.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an experiment cannot be read or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read the experiment {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A value that cannot be used: file and line if it is from a file, the key, the mistake, and the values
    /// that are allowed.
    #[error("{0}")]
    Wrong(String),
    /// A deterministic method failed.
    #[error("{method}")]
    Solve {
        /// The method, as people call it.
        method: &'static str,
        /// Why.
        source: toclip::Error,
    },
    /// An ensemble cannot be run.
    #[error(transparent)]
    Core(#[from] toclip::Error),
    /// A finished run could not be saved.
    #[error(transparent)]
    Save(Box<dyn std::error::Error + Send + Sync>),
}

/// A value that cannot be used, by its key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", mistake.about(key))]
pub struct KeyError {
    /// The key in experiment files, such as `clip`.
    pub key: &'static str,
    /// What is wrong with it.
    pub mistake: Mistake,
}

impl KeyError {
    pub(crate) fn new(key: &'static str, mistake: impl Into<Mistake>) -> Self {
        KeyError { key, mistake: mistake.into() }
    }
}

impl Error {
    /// The error and its causes on one line.
    pub fn sentence(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text += &format!(": {error}");
            cause = error.source();
        }
        text
    }
}
