//! What can be wrong with a sweep.

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
    /// What the file says cannot be used: where it is, what is wrong, and what would be right.
    #[error("{0}")]
    Wrong(String),
}
