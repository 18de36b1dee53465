//! The format of a file, by its first bytes: file names can be wrong.

/// The formats that are read, and the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileFormat {
    Npy,
    Zip,
    Gzip,
    Parquet,
    /// Known and not supported: a description.
    Unsupported(&'static str),
    Empty,
    /// Anything else: plain text or unknown.
    Text,
}

use FileFormat::Unsupported;

const MAGIC: [(&[u8], FileFormat); 18] = [
    (b"\x93NUMPY", FileFormat::Npy),
    (b"PK\x03\x04", FileFormat::Zip),
    (b"PK\x05\x06", FileFormat::Zip),
    (b"\x1f\x8b", FileFormat::Gzip),
    (b"PAR1", FileFormat::Parquet),
    (b"\x89PNG", Unsupported("a PNG image")),
    (b"\xff\xd8\xff", Unsupported("a JPEG image")),
    (b"GIF8", Unsupported("a GIF image")),
    (b"%PDF", Unsupported("a PDF document")),
    (b"\x89HDF", Unsupported("an HDF5 file")),
    (b"MATLAB 5.0", Unsupported("a MATLAB file")),
    (b"ARROW1", Unsupported("an Arrow (Feather) file")),
    (b"SQLite format 3", Unsupported("an SQLite database")),
    (b"BZh", Unsupported("a bzip2 archive")),
    (b"\xfd7zXZ", Unsupported("an xz archive")),
    (b"\x28\xb5\x2f\xfd", Unsupported("a Zstandard archive")),
    (b"\x80\x04\x95", Unsupported("a Python pickle")),
    (b"\x7fELF", Unsupported("a program")),
];

impl FileFormat {
    /// The format of a table that starts with these bytes: text with control characters is binary.
    pub fn of_table(start: &[u8]) -> Self {
        match Self::of_bytes(start) {
            // Control characters do not occur in tables; zeros do in UTF-16.
            FileFormat::Text if start.iter().any(|b| matches!(b, 0..=8 | 14..=26)) => {
                Unsupported("an unknown binary format")
            }
            format => format,
        }
    }

    /// The format of content that starts with these bytes.
    pub fn of_bytes(start: &[u8]) -> Self {
        if start.is_empty() {
            return FileFormat::Empty;
        }
        if let Some((_, format)) = MAGIC.iter().find(|(magic, _)| start.starts_with(magic)) {
            return *format;
        }
        // A failed download is often an HTML error page.
        let text = start.trim_ascii_start();
        let starts_with =
            |tag: &[u8]| text.get(..tag.len()).is_some_and(|t| t.eq_ignore_ascii_case(tag));
        if starts_with(b"<!doctype html") || starts_with(b"<html") {
            return Unsupported("a web page (a failed download?)");
        }
        FileFormat::Text
    }

    /// A noun phrase for messages.
    pub fn describe(self) -> &'static str {
        match self {
            FileFormat::Npy => "a NumPy array",
            FileFormat::Zip => "a zip archive",
            FileFormat::Gzip => "a gzip archive",
            FileFormat::Parquet => "a Parquet table",
            Unsupported(what) => what,
            FileFormat::Empty => "an empty file",
            FileFormat::Text => "a text file or an unknown format",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides() {
        for (start, format) in [
            (&b"\x93NUMPY\x01\x00"[..], FileFormat::Npy),
            (b"PK\x03\x04", FileFormat::Zip),
            (b"\x1f\x8b\x08", FileFormat::Gzip),
            (b"\x89PNG\r\n", Unsupported("a PNG image")),
            (b"\n <!DOCTYPE HTML>", Unsupported("a web page (a failed download?)")),
            (b"", FileFormat::Empty),
            (b"1,2\n", FileFormat::Text),
            (b"PK", FileFormat::Text),
        ] {
            assert_eq!(FileFormat::of_bytes(start), format);
        }
    }
}
