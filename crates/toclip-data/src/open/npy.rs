//! Rows of a NumPy array.

use super::table::{Table, finite};
use crate::npy_file::check_length;
use crate::{Error, Result};
use npyz::{DType, Endianness, NpyHeader, Order, TypeChar};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// An array of numbers: its shape, and how a number is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub rows: usize,
    pub width: usize,
    pub dimensions: usize,
    pub fortran: bool,
    kind: TypeChar,
    size: usize,
    big: bool,
}

impl Layout {
    /// Reads the header; `name` is what to call the array in a message.
    pub fn read(path: &Path, name: &str, reader: &mut dyn Read) -> Result<(Self, NpyHeader)> {
        let header = NpyHeader::from_reader(reader)
            .map_err(|e| Error::file(path, format!("the header of {name} is not readable: {e}")))?;
        let (rows, width) = match *header.shape() {
            [rows] => (rows, 1),
            [rows, width] => (rows, width),
            ref shape => {
                let found = shape.len();
                let message = format!("{name} has {found} dimensions, not 1 or 2");
                return Err(Error::file(path, message));
            }
        };
        if rows == 0 || width == 0 {
            return Err(Error::file(path, format!("{name} is empty ({rows} x {width})")));
        }
        // A damaged header can claim any width, and a row must fit in memory.
        if width > 1 << 26 {
            return Err(Error::file(path, format!("{name} claims {width} numbers in a row")));
        }
        let refused = || {
            let descr = header.dtype().descr();
            let message = format!("{name} has numbers of type {descr}; convert with .astype('f8')");
            Error::file(path, message)
        };
        let DType::Plain(plain) = header.dtype() else { return Err(refused()) };
        let (kind, size) = (plain.type_char(), plain.size_field());
        let known = match kind {
            TypeChar::Float => matches!(size, 4 | 8),
            TypeChar::Int | TypeChar::Uint => matches!(size, 1 | 2 | 4 | 8),
            TypeChar::Bool => size == 1,
            _ => false,
        };
        if !known {
            return Err(refused());
        }
        let layout = Layout {
            rows: rows as usize,
            width: width as usize,
            dimensions: header.shape().len(),
            fortran: header.order() == Order::Fortran,
            kind,
            size: size as usize,
            big: plain.endianness() == Endianness::Big,
        };
        Ok((layout, header))
    }

    /// Hands over the rows that follow in C order.
    pub fn each(
        &self,
        path: &Path,
        name: &str,
        reader: &mut dyn Read,
        row: &mut dyn FnMut(&[f64]) -> Result<()>,
    ) -> Result<()> {
        let mut bytes = vec![0; self.width * self.size];
        let mut values = Vec::with_capacity(self.width);
        for i in 0..self.rows {
            reader.read_exact(&mut bytes).map_err(|e| {
                let rows = self.rows;
                Error::file(path, format!("{name} ends in row {} of {rows} ({e})", i + 1))
            })?;
            values.clear();
            values.extend(bytes.chunks_exact(self.size).map(|bytes| self.number(bytes)));
            finite(path, i, &values)?;
            row(&values)?;
        }
        Ok(())
    }

    /// A number from its bytes; 8-byte integers above 2^53 are rounded to the nearest `f64`.
    fn number(&self, stored: &[u8]) -> f64 {
        let mut bytes = [0; 8];
        let bytes_of = &mut bytes[..self.size];
        bytes_of.copy_from_slice(stored);
        if self.big {
            bytes_of.reverse();
        }
        let [a, b, c, d, ..] = bytes;
        match (self.kind, self.size) {
            (TypeChar::Float, 8) => f64::from_le_bytes(bytes),
            (TypeChar::Float, _) => f64::from(f32::from_le_bytes([a, b, c, d])),
            (TypeChar::Int, 1) => f64::from(a as i8),
            (TypeChar::Int, 2) => f64::from(i16::from_le_bytes([a, b])),
            (TypeChar::Int, 4) => f64::from(i32::from_le_bytes([a, b, c, d])),
            (TypeChar::Int, _) => i64::from_le_bytes(bytes) as f64,
            (TypeChar::Bool, _) => f64::from(u8::from(a != 0)),
            _ => u64::from_le_bytes(bytes) as f64,
        }
    }
}

/// An NPY file.
pub(super) struct Npy {
    path: PathBuf,
    layout: Layout,
    /// Where the numbers start.
    start: u64,
}

impl Npy {
    pub fn open(path: &Path) -> Result<Self> {
        let mut reader = open(path)?;
        let (layout, header) = Layout::read(path, "the array", &mut reader)?;
        check_length(path, &mut reader, &header, layout.rows as u64, layout.width as u64)?;
        let start = reader.stream_position().map_err(|e| Error::io(path, e))?;
        Ok(Self { path: path.into(), layout, start })
    }

    /// Rows of an array stored column by column: a few rows at a time, a seek for each column.
    fn each_of_columns(&self, row: &mut dyn FnMut(&[f64]) -> Result<()>) -> Result<()> {
        let Layout { rows, width, size, .. } = self.layout;
        // About 16 MiB, so that a seek brings more than it costs.
        let some = ((1 << 21) / width).clamp(1, rows);
        let mut file = File::open(&self.path).map_err(|e| Error::io(&self.path, e))?;
        let mut bytes = vec![0; some * size];
        let mut values = vec![0.0; some * width];
        for first in (0..rows).step_by(some) {
            let count = some.min(rows - first);
            for column in 0..width {
                let place = self.start + ((column * rows + first) * size) as u64;
                let part = &mut bytes[..count * size];
                file.seek(SeekFrom::Start(place))
                    .and_then(|_| file.read_exact(part))
                    .map_err(|e| Error::io(&self.path, e))?;
                for (i, stored) in part.chunks_exact(size).enumerate() {
                    values[i * width + column] = self.layout.number(stored);
                }
            }
            for (i, values) in values.chunks_exact(width).take(count).enumerate() {
                finite(&self.path, first + i, values)?;
                row(values)?;
            }
        }
        Ok(())
    }
}

fn open(path: &Path) -> Result<BufReader<File>> {
    Ok(BufReader::new(File::open(path).map_err(|e| Error::io(path, e))?))
}

impl Table for Npy {
    fn path(&self) -> &Path {
        &self.path
    }

    fn width(&self) -> usize {
        self.layout.width
    }

    fn each(&self, row: &mut dyn FnMut(&[f64]) -> Result<()>) -> Result<()> {
        // With one column the two orders are the same.
        if self.layout.fortran && self.layout.width > 1 {
            return self.each_of_columns(row);
        }
        let mut reader = open(&self.path)?;
        reader.seek(SeekFrom::Start(self.start)).map_err(|e| Error::io(&self.path, e))?;
        self.layout.each(&self.path, "the array", &mut reader, row)
    }
}
