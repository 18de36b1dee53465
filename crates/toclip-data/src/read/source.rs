//! Where a table is: in a file, which is opened for every pass, or in memory.

use crate::Result;
use crate::error::{AtPath, bail};
use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::path::{Path, PathBuf};

/// A reader that can go back.
pub(crate) trait ReadSeek: Read + Seek {}

impl<R: Read + Seek> ReadSeek for R {}

/// A file, or bytes with a name.
#[derive(Clone)]
pub(crate) struct Source<'a> {
    /// The path, or for bytes the name in messages.
    pub path: PathBuf,
    bytes: Option<&'a [u8]>,
}

impl<'a> Source<'a> {
    pub fn file(path: &Path) -> Self {
        Self { path: path.into(), bytes: None }
    }

    pub fn bytes(name: &str, bytes: &'a [u8]) -> Self {
        Self { path: name.into(), bytes: Some(bytes) }
    }

    /// Whether there is no file.
    #[cfg(feature = "parquet")]
    pub fn in_memory(&self) -> bool {
        self.bytes.is_some()
    }

    /// Starts at the first byte.
    pub fn open(&self) -> Result<Box<dyn ReadSeek + 'a>> {
        match self.bytes {
            Some(bytes) => Ok(Box::new(Cursor::new(bytes))),
            None => Ok(Box::new(File::open(&self.path).at(&self.path)?)),
        }
    }

    /// The first 4096 bytes, from which the format is known.
    pub fn first_bytes(&self) -> Result<Vec<u8>> {
        if self.bytes.is_none() && std::fs::metadata(&self.path).at(&self.path)?.is_dir() {
            bail!(in &self.path, "this is a folder; expected a file");
        }
        let mut start = Vec::new();
        self.open()?.take(4096).read_to_end(&mut start).at(&self.path)?;
        Ok(start)
    }
}
