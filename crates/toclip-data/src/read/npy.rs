//! NumPy arrays (NPY): the header, and the numbers row by row.
//!
//! The header is a Python dictionary with three known keys, so it is parsed here: the crate for it
//! brings a grammar of all Python literals, which took 25 seconds to build.

use super::source::{ReadSeek, Source};
use super::table::{RowVisitor, Table};
use crate::error::{AtPath, bail};
use crate::{Error, Result};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// The shape of an array, and how a number is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub rows: usize,
    pub width: usize,
    #[cfg_attr(not(feature = "fit"), expect(dead_code, reason = "for arrays of an NPZ file"))]
    pub dimensions: usize,
    /// Whether the array is stored column by column. With one column, the two orders are the same.
    pub by_column: bool,
    /// NumPy's letter for the type: `f`, `i`, `u` or `b`.
    kind: u8,
    /// The bytes of a number.
    size: usize,
    big_endian: bool,
}

impl Header {
    /// Reads the header; `name` is what to call the array in a message.
    pub fn read(path: &Path, name: &str, reader: &mut dyn Read) -> Result<Self> {
        let damaged = |what: &str| Error::file(path, format!("the header of {name} {what}"));
        let text = header_text(reader).map_err(|e| damaged(&format!("is not readable: {e}")))?;
        let entry = |key: &str| {
            let (_, after) = text.split_once(&format!("'{key}'"))?;
            Some(after.trim_start().strip_prefix(':')?.trim_start())
        };
        let missing = |key: &str| damaged(&format!("has no valid {key}"));
        let descr = entry("descr").ok_or_else(|| missing("descr"))?;
        let Some((descr, _)) = descr.strip_prefix('\'').and_then(|d| d.split_once('\'')) else {
            bail!(in path, "{name} has a structured type; save one field of it");
        };
        let (kind, size, big_endian) = match *descr.as_bytes() {
            [order @ (b'<' | b'>' | b'|' | b'='), kind, size]
                if matches!(
                    (kind, size),
                    (b'f', b'4' | b'8') | (b'i' | b'u', b'1' | b'2' | b'4' | b'8') | (b'b', b'1')
                ) =>
            {
                (kind, usize::from(size - b'0'), order == b'>')
            }
            _ => bail!(in path, "{name} has numbers of type {descr}; convert with .astype('f8')"),
        };
        let by_column =
            entry("fortran_order").ok_or_else(|| missing("fortran_order"))?.starts_with("True");
        let shape = entry("shape").and_then(shape).ok_or_else(|| missing("shape"))?;
        let (rows, width) = match shape[..] {
            [rows] => (rows, 1),
            [rows, width] => (rows, width),
            _ => bail!(in path, "{name} has {} dimensions; expected 1 or 2", shape.len()),
        };
        if rows == 0 || width == 0 {
            bail!(in path, "{name} is empty ({rows} x {width})");
        }
        let by_column = by_column && width > 1;
        Ok(Header { rows, width, dimensions: shape.len(), by_column, kind, size, big_endian })
    }

    /// Passes on the rows that follow, stored row by row.
    pub fn each_row(
        &self,
        path: &Path,
        name: &str,
        reader: &mut dyn Read,
        visit: RowVisitor<'_>,
    ) -> Result<()> {
        let mut bytes = vec![0; self.width * self.size];
        let mut values = Vec::with_capacity(self.width);
        for row in 1..=self.rows {
            if let Err(e) = reader.read_exact(&mut bytes) {
                bail!(in path, "{name} ends in row {row} of {} ({e})", self.rows);
            }
            values.clear();
            values.extend(bytes.chunks_exact(self.size).map(|bytes| self.number(bytes)));
            visit(&values)?;
        }
        Ok(())
    }

    /// Passes on rows that are stored column by column from `start` on: reads a block of rows at a
    /// time, with a seek for each column.
    fn each_row_of_columns(
        &self,
        path: &Path,
        start: u64,
        file: &mut dyn ReadSeek,
        visit: RowVisitor<'_>,
    ) -> Result<()> {
        let Header { rows, width, size, .. } = *self;
        // About 16 MiB: reading then takes longer than seeking.
        let block = ((1 << 21) / width).clamp(1, rows);
        let mut bytes = vec![0; block * size];
        let mut values = vec![0.0; block * width];
        for first in (0..rows).step_by(block) {
            let count = block.min(rows - first);
            let part = &mut bytes[..count * size];
            for column in 0..width {
                let place = start + ((column * rows + first) * size) as u64;
                file.seek(SeekFrom::Start(place)).and_then(|_| file.read_exact(part)).at(path)?;
                for (i, stored) in part.chunks_exact(size).enumerate() {
                    values[i * width + column] = self.number(stored);
                }
            }
            values.chunks_exact(width).take(count).try_for_each(&mut *visit)?;
        }
        Ok(())
    }

    /// A number from its bytes; 8-byte integers above 2^53 are rounded to the nearest double.
    fn number(&self, stored: &[u8]) -> f64 {
        let mut bytes = [0; 8];
        let used = &mut bytes[..self.size];
        used.copy_from_slice(stored);
        if self.big_endian {
            used.reverse();
        }
        let [a, b, c, d, ..] = bytes;
        match (self.kind, self.size) {
            (b'f', 8) => f64::from_le_bytes(bytes),
            (b'f', _) => f64::from(f32::from_le_bytes([a, b, c, d])),
            (b'i', 1) => f64::from(a as i8),
            (b'i', 2) => f64::from(i16::from_le_bytes([a, b])),
            (b'i', 4) => f64::from(i32::from_le_bytes([a, b, c, d])),
            (b'i', _) => i64::from_le_bytes(bytes) as f64,
            (b'b', _) => f64::from(u8::from(a != 0)),
            _ => u64::from_le_bytes(bytes) as f64,
        }
    }
}

/// The dictionary, in any version of the format, with single quotes.
fn header_text(reader: &mut dyn Read) -> io::Result<String> {
    let mut start = [0; 8];
    reader.read_exact(&mut start)?;
    // Version 1 has two bytes for the length, later versions have four.
    let length_bytes = match start {
        [0x93, b'N', b'U', b'M', b'P', b'Y', 1, _] => 2,
        [0x93, b'N', b'U', b'M', b'P', b'Y', 2 | 3, _] => 4,
        _ => return Err(io::Error::other("not an NPY file of version 1, 2 or 3")),
    };
    let mut length = [0; 4];
    reader.read_exact(&mut length[..length_bytes])?;
    let mut text = Vec::new();
    reader.take(u64::from(u32::from_le_bytes(length))).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).replace('"', "'"))
}

/// The numbers of a tuple: `(3,)`, `(3, 4)`, `()`. Python 2 wrote `(3L, 4L)`.
fn shape(tuple: &str) -> Option<Vec<usize>> {
    let (sizes, _) = tuple.strip_prefix('(')?.split_once(')')?;
    let sizes = sizes.split(',').map(|size| size.trim().trim_end_matches('L'));
    sizes.filter(|size| !size.is_empty()).map(|size| size.parse().ok()).collect()
}

pub(super) fn open(source: Source<'_>) -> Result<Table<'_>> {
    let path = &source.path;
    let mut reader = BufReader::new(source.open()?);
    let header = Header::read(path, "the array", &mut reader)?;
    let start = reader.stream_position().at(path)?;
    // A damaged header can claim any size: compare before allocating memory for it.
    let Header { rows, width, size, .. } = header;
    let there = reader.seek(SeekFrom::End(0)).at(path)?.saturating_sub(start);
    let needed = rows.checked_mul(width).and_then(|n| n.checked_mul(size));
    if needed.is_none_or(|n| n as u64 > there) {
        bail!(in path, "the header promises {rows} x {width} numbers of {size} bytes, but only \
              {there} bytes follow");
    }
    // Single precision has a rounding error of its own.
    let single = (header.kind, size) == (b'f', 4);
    let rounding = if single { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let read_rows = Box::new(move |source: &Source<'_>, visit: RowVisitor<'_>| {
        let (path, mut file) = (&source.path, source.open()?);
        if header.by_column {
            return header.each_row_of_columns(path, start, &mut *file, visit);
        }
        file.seek(SeekFrom::Start(start)).at(path)?;
        header.each_row(path, "the array", &mut BufReader::new(file), visit)
    });
    Ok(Table { source, width, names: Vec::new(), rounding, read_rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;
    use crate::testing::messages;
    use tempfile::TempDir;

    /// An NPY file, version 1.0, written out by hand after NumPy's format specification.
    fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> (TempDir, Result<Matrix>) {
        let fortran = if fortran { "True" } else { "False" };
        let mut header =
            format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}");
        while (10 + header.len() + 1) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("k.npy");
        std::fs::write(&path, bytes).unwrap();
        let read = Matrix::read(&path);
        (dir, read)
    }

    fn bytes<const N: usize, T>(values: &[T], to: impl Fn(&T) -> [u8; N]) -> Vec<u8> {
        values.iter().flat_map(to).collect()
    }

    #[test]
    fn c_and_fortran_order() {
        let data = bytes(&[1.0_f64, 2.0, 3.0, 4.0, 5.0, 6.0], |v| v.to_le_bytes());
        let c = npy("'<f8'", false, "(2, 3)", &data).1.unwrap();
        assert_eq!((c.rows(), c.cols(), c.row(1)), (2, 3, &[4.0, 5.0, 6.0][..]));
        let f = npy("'<f8'", true, "(2, 3)", &data).1.unwrap();
        assert_eq!((f.row(0), f.row(1)), (&[1.0, 3.0, 5.0][..], &[2.0, 4.0, 6.0][..]));
        let flat = npy("'<f8'", false, "(6,)", &data).1.unwrap();
        assert_eq!((flat.rows(), flat.cols()), (6, 1));
    }

    #[test]
    fn every_type_of_number() {
        let numbers = [
            ("'<f4'", bytes(&[1.0_f32, 2.0], |v| v.to_le_bytes())),
            ("'>f8'", bytes(&[1.0_f64, 2.0], |v| v.to_be_bytes())),
            ("'<i4'", bytes(&[1_i32, 2], |v| v.to_le_bytes())),
            ("'<i8'", bytes(&[1_i64, 2], |v| v.to_le_bytes())),
            ("'>u2'", bytes(&[1_u16, 2], |v| v.to_be_bytes())),
            ("'|u1'", vec![1, 2]),
            ("'|i1'", vec![1, 2]),
        ];
        for (descr, data) in numbers {
            assert_eq!(npy(descr, false, "(1, 2)", &data).1.unwrap().data(), [1.0, 2.0], "{descr}");
        }
        let yes = npy("'|b1'", false, "(2,)", &[0, 1]).1.unwrap();
        assert_eq!(yes.data(), [0.0, 1.0]);
    }

    #[test]
    fn every_version_and_spelling_of_the_header() {
        let data = bytes(&[1.0_f64, 2.0], |v| v.to_le_bytes());
        for (version, header) in [
            (1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"),
            (2, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"),
            (3, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n"),
            (1, "{\"shape\":(2L,),\"fortran_order\":False,\"descr\":\"<f8\"}"),
        ] {
            let mut file = vec![0x93, b'N', b'U', b'M', b'P', b'Y', version, 0];
            let length = (header.len() as u32).to_le_bytes();
            file.extend(if version == 1 { &length[..2] } else { &length[..] });
            file.extend(header.bytes().chain(data.iter().copied()));
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("k.npy");
            std::fs::write(&path, file).unwrap();
            assert_eq!(Matrix::read(&path).unwrap().data(), [1.0, 2.0], "{version} {header}");
        }
    }

    #[test]
    fn single_precision_is_known() {
        let single = npy("'<f4'", false, "(1,)", &1.0_f32.to_le_bytes()).1.unwrap();
        assert_eq!(single.rounding, f64::from(f32::EPSILON));
    }

    #[test]
    fn unsupported_and_damaged_files() {
        let two = bytes(&[1.0_f64, 2.0], |v| v.to_le_bytes());
        let nan = bytes(&[1.0, f64::NAN], |v| v.to_le_bytes());
        let said: Vec<String> = [
            ("'<c16'", "(1,)", &two[..]),
            ("'<f2'", "(2,)", &two),
            ("[('a', '<f8')]", "(2,)", &two),
            ("'<f8'", "(1, 1, 2)", &two),
            ("'<f8'", "()", &two),
            ("'<f8'", "(0, 3)", &[]),
            ("'<f8'", "(3,)", &two),
            ("'<f8'", "(1152921504606846976, 8)", &two),
            ("'<f8'", "(2", &two),
            ("'<f8'", "(-1,)", &two),
            ("'<f8'", "(2,)", &nan),
        ]
        .map(|(descr, shape, data)| {
            let (dir, result) = npy(descr, false, shape, data);
            messages(dir.path(), [result])
        })
        .into();
        insta::assert_snapshot!(said.join("\n"));
    }
}
