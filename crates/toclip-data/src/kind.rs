//! What a file is, by its first bytes: names lie, and a message should say what was found.

use crate::{Error, Result};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The kinds of file that are read, and the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Npy,
    Zip,
    Gzip,
    Parquet,
    /// Known, and not read here: what it is, in words.
    Other(&'static str),
    Empty,
    /// Anything else, which may be text.
    Text,
}

/// First bytes and what they mean.
const MAGIC: [(&[u8], Kind); 18] = [
    (b"\x93NUMPY", Kind::Npy),
    (b"PK\x03\x04", Kind::Zip),
    (b"PK\x05\x06", Kind::Zip),
    (b"\x1f\x8b", Kind::Gzip),
    (b"PAR1", Kind::Parquet),
    (b"\x89PNG", Kind::Other("a PNG image")),
    (b"\xff\xd8\xff", Kind::Other("a JPEG image")),
    (b"GIF8", Kind::Other("a GIF image")),
    (b"%PDF", Kind::Other("a PDF document")),
    (b"\x89HDF", Kind::Other("an HDF5 file")),
    (b"MATLAB 5.0", Kind::Other("a MATLAB file")),
    (b"ARROW1", Kind::Other("an Arrow (Feather) file")),
    (b"SQLite format 3", Kind::Other("an SQLite database")),
    (b"BZh", Kind::Other("a bzip2 archive")),
    (b"\xfd7zXZ", Kind::Other("an xz archive")),
    (b"\x28\xb5\x2f\xfd", Kind::Other("a Zstandard archive")),
    (b"\x80\x04\x95", Kind::Other("a Python pickle")),
    (b"\x7fELF", Kind::Other("a program")),
];

impl Kind {
    /// Reads the first bytes of the file.
    pub fn of(path: &Path) -> Result<Self> {
        let mut start = Vec::new();
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        file.take(64).read_to_end(&mut start).map_err(|e| Error::io(path, e))?;
        Ok(Self::of_bytes(&start))
    }

    /// The kind of something that starts like this.
    pub fn of_bytes(start: &[u8]) -> Self {
        if start.is_empty() {
            return Kind::Empty;
        }
        if let Some((_, kind)) = MAGIC.iter().find(|(magic, _)| start.starts_with(magic)) {
            return *kind;
        }
        // A failed download is often the server's page of excuses.
        let text = start.trim_ascii_start().to_ascii_lowercase();
        if text.starts_with(b"<!doctype html") || text.starts_with(b"<html") {
            return Kind::Other("a web page (a failed download?)");
        }
        Kind::Text
    }

    /// The kind of the file, where text that holds control characters is binary after all.
    pub fn of_checked(path: &Path) -> Result<Self> {
        match Self::of(path)? {
            Kind::Text if looks_binary(path)? => Ok(Kind::Other("an unknown binary format")),
            kind => Ok(kind),
        }
    }

    /// What it is, in words.
    pub fn words(self) -> &'static str {
        match self {
            Kind::Npy => "a NumPy array",
            Kind::Zip => "a zip archive",
            Kind::Gzip => "a gzip archive",
            Kind::Parquet => "a Parquet table",
            Kind::Other(words) => words,
            Kind::Empty => "an empty file",
            Kind::Text => "a text or an unknown format",
        }
    }
}

/// Control characters do not occur in text; zeros do in UTF-16.
fn looks_binary(path: &Path) -> Result<bool> {
    let mut start = Vec::new();
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    file.take(4096).read_to_end(&mut start).map_err(|e| Error::io(path, e))?;
    Ok(start.iter().any(|b| matches!(b, 0..=8 | 14..=26)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides() {
        for (start, kind) in [
            (&b"\x93NUMPY\x01\x00"[..], Kind::Npy),
            (b"PK\x03\x04", Kind::Zip),
            (b"\x1f\x8b\x08", Kind::Gzip),
            (b"\x89PNG\r\n", Kind::Other("a PNG image")),
            (b"\n <!DOCTYPE HTML>", Kind::Other("a web page (a failed download?)")),
            (b"", Kind::Empty),
            (b"1,2\n", Kind::Text),
            (b"PK", Kind::Text),
        ] {
            assert_eq!(Kind::of_bytes(start), kind);
        }
    }
}
