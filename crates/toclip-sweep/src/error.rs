//! Errors of reading a sweep.

use std::io;
use std::path::PathBuf;

/// The result of reading a sweep.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a sweep cannot be read or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read the sweep {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A mistake in the file: the place, the mistake, and the values that are allowed.
    #[error("{0}")]
    Wrong(String),
}
