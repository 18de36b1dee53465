//! A file of progress that one process at a time writes to.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::plot::write::write_whole;

/// Opens the file and reads it whole; a new one begins with `header`. `command` is what another
/// process that holds it would be.
pub fn open(path: &Path, header: &[u8], command: &str) -> Result<(File, Vec<u8>)> {
    if !path.exists() {
        write_whole(path, header)?;
    }
    let name = path.display();
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .with_context(|| format!("cannot open {name}"))?;
    // Where a file system has no locks, there is nothing to look at.
    if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        bail!("another {command} is writing to {name}; wait for it or give another --out");
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    Ok((file, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_has_its_header_an_old_one_keeps_its_own_and_one_writer_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("progress");
        let (held, bytes) = open(&path, b"first", "toclip run").unwrap();
        assert_eq!(bytes, b"first");
        let refused = open(&path, b"second", "toclip run").unwrap_err().to_string();
        assert!(refused.starts_with("another toclip run is writing to"), "{refused}");
        drop(held);
        assert_eq!(open(&path, b"second", "toclip run").unwrap().1, b"first");
    }
}
