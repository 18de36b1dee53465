//! The data sets of the paper, and where they are kept.

pub(crate) mod archive;
mod cache;
mod checksum;
pub mod cifar10;
pub mod wikitext;

pub use cache::{DataSet, cache_folder};
pub use checksum::sha256;

use crate::Result;
use crate::error::AtPath;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Writes a file and waits until it is on the disk.
fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().at(path)
}
