//! The error type of the crate.

use std::path::{Path, PathBuf};

/// The result of every function in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// An error in a model or a text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is not what a model needs.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem, and the allowed values.
        message: String,
    },
    /// An argument is wrong for this model.
    #[error("{0}")]
    Invalid(String),
    /// The inference crate failed, which no input should cause.
    #[error("the model could not be computed: {0}")]
    Compute(#[from] candle_core::Error),
}

impl Error {
    pub(crate) fn file(path: &Path, message: impl Into<String>) -> Self {
        Error::File { path: path.into(), message: message.into() }
    }
}

/// Returns an error from the function: of a file with `bail!(in path, "…")`, else with `bail!("…")`.
macro_rules! bail {
    (in $path:expr, $($message:tt)+) => {
        return Err($crate::Error::file($path, format!($($message)+)))
    };
    ($($message:tt)+) => {
        return Err($crate::Error::Invalid(format!($($message)+)))
    };
}
pub(crate) use bail;

/// The bytes of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|source| Error::Io { path: path.into(), source })
}
