//! The one error type of the crate.

use std::path::{Path, PathBuf};

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// What can be wrong with data: each variant says where, what, and what would be right.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened or read.
    ///
    /// The message has the cause in it, so the cause is no `source()`: a chain would say it twice.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// One cell of a table, or one line of it, is wrong.
    #[error("{}, line {line}, column {column}: {message}", path.display())]
    Cell {
        /// The file.
        path: PathBuf,
        /// The line in the file, from 1 (NPY, NPZ and Parquet: the row).
        line: u64,
        /// The field of the line, from 1.
        column: usize,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// The file as a whole is not what was asked for.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// The matrix is not what was asked for.
    #[error("{0}")]
    Invalid(String),
    /// The theory refused the spectrum.
    #[error(transparent)]
    Theory(#[from] toclip::Error),
}

impl Error {
    pub(crate) fn io(path: &Path, cause: std::io::Error) -> Self {
        Error::Io { path: path.into(), cause }
    }

    pub(crate) fn file(path: &Path, message: impl Into<String>) -> Self {
        Error::File { path: path.into(), message: message.into() }
    }

    pub(crate) fn cell(path: &Path, line: u64, column: usize, message: impl Into<String>) -> Self {
        Error::Cell { path: path.into(), line, column, message: message.into() }
    }

    /// Names the file in a message that does not know it.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        match self {
            Error::Invalid(message) => Error::file(path, message),
            Error::Theory(source) => Error::file(path, source.to_string()),
            known => known,
        }
    }
}
