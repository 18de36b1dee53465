//! The error type of the crate, and helpers that build it.

use std::path::{Path, PathBuf};

/// The result of every function in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// An error in data: the place, the problem, and the allowed values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened, read or written.
    ///
    /// The cause is part of the message and therefore not a `source()`, which would repeat it.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// One cell or one line of a table is wrong.
    #[error("{}, line {line}, column {column}: {message}", path.display())]
    Cell {
        /// The file.
        path: PathBuf,
        /// The line in the file, from 1 (NPY, NPZ and Parquet: the row).
        line: u64,
        /// The field of the line, from 1.
        column: usize,
        /// The problem, and the allowed values.
        message: String,
    },
    /// The content of the file is wrong.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem, and the allowed values.
        message: String,
    },
    /// An argument is wrong.
    #[error("{0}")]
    Invalid(String),
    /// The theory rejected the data.
    #[error(transparent)]
    Theory(#[from] toclip::Error),
}

impl Error {
    pub(crate) fn file(path: &Path, message: impl Into<String>) -> Self {
        Error::File { path: path.into(), message: message.into() }
    }

    /// Adds the file to an error that does not name it.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        match self {
            Error::Invalid(message) => Error::file(path, message),
            Error::Theory(source) => Error::file(path, source.to_string()),
            known => known,
        }
    }
}

/// Returns an error from the function: of a cell with `bail!(at path, line, column, "…")`, of a file
/// with `bail!(in path, "…")`, else with `bail!("…")`.
macro_rules! bail {
    (at $path:expr, $line:expr, $column:expr, $($message:tt)+) => {
        return Err($crate::Error::Cell {
            path: $path.into(),
            line: $line,
            column: $column,
            message: format!($($message)+),
        })
    };
    (in $path:expr, $($message:tt)+) => {
        return Err($crate::Error::file($path, format!($($message)+)))
    };
    ($($message:tt)+) => {
        return Err($crate::Error::Invalid(format!($($message)+)))
    };
}
pub(crate) use bail;

/// Adds the path to an error of the operating system.
pub(crate) trait AtPath<T> {
    fn at(self, path: &Path) -> Result<T>;
}

impl<T> AtPath<T> for std::io::Result<T> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|cause| Error::Io { path: path.into(), cause })
    }
}
