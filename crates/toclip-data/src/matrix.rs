//! A dense matrix, in memory or read from a file.

use crate::Result;
use crate::error::bail;
use crate::read::{Source, Table};
use std::path::Path;

/// A dense matrix of finite numbers, row by row.
///
/// ```
/// let m = toclip_data::Matrix::new(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(m.row(1), [4.0, 5.0, 6.0]);
/// # Ok::<(), toclip_data::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
    /// The relative rounding error of the numbers: larger if they were stored in single precision.
    pub(crate) rounding: f64,
}

impl Matrix {
    /// The `rows` × `cols` matrix with the entries `data`, row by row.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) unless there are `rows * cols` entries, at least one,
    /// all of them finite.
    pub fn new(rows: usize, cols: usize, data: Vec<f64>) -> Result<Self> {
        if rows.checked_mul(cols) != Some(data.len()) {
            bail!("{} entries do not fill {rows} x {cols}", data.len());
        }
        if data.is_empty() {
            bail!("the matrix is empty ({rows} x {cols})");
        }
        if let Some(i) = data.iter().position(|v| !v.is_finite()) {
            let (row, col) = (i / cols + 1, i % cols + 1);
            bail!("the entry in row {row}, column {col} is {}; all must be finite", data[i]);
        }
        Ok(Self { rows, cols, data, rounding: f64::EPSILON })
    }

    /// Reads a matrix from a CSV, NPY or Parquet file, by its content, not its name.
    ///
    /// - CSV: numbers separated by commas, lines of equal length, `#` comments, blank lines
    ///   ignored. A first line without any number is a header, and so is one whose numbers only count
    ///   columns that have no name (`0,1,2,y`).
    /// - NPY: booleans, integers, or floats of 4 or 8 bytes; either byte order, C or Fortran order;
    ///   one dimension (a column) or two.
    /// - Parquet: columns of numbers or booleans, uncompressed or with Snappy or gzip.
    ///
    /// ```no_run
    /// let k = toclip_data::Matrix::read("covariance.npy")?;
    /// println!("{} x {}", k.rows(), k.cols());
    /// # Ok::<(), toclip_data::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::File`](crate::Error::File) or, with line and
    /// column, [`Error::Cell`](crate::Error::Cell).
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_table(&Table::open(Source::file(path.as_ref()))?)
    }

    pub(crate) fn from_table(table: &Table<'_>) -> Result<Self> {
        let mut data = Vec::new();
        table.each_row(&mut |row| {
            data.extend_from_slice(row);
            Ok(())
        })?;
        let rows = data.len() / table.width;
        Ok(Self { rows, cols: table.width, data, rounding: table.rounding })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row `i`, from 0.
    ///
    /// # Panics
    /// If `i` is out of range, like a slice.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// All entries, row by row.
    pub fn data(&self) -> &[f64] {
        &self.data
    }

    /// The same, without a copy.
    pub fn into_data(self) -> Vec<f64> {
        self.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use crate::testing::messages;

    #[test]
    fn shapes_and_values_are_checked() {
        let cases = [
            (2, 2, vec![1.0; 3]),
            (0, 5, vec![]),
            (usize::MAX, 2, vec![]),
            (2, 2, vec![1.0, 1.0, f64::NAN, 1.0]),
        ];
        let results = cases.map(|(rows, cols, data)| Matrix::new(rows, cols, data));
        insta::assert_snapshot!(messages(Path::new(""), results));
    }

    #[test]
    fn files_that_are_not_matrices() {
        let missing = Matrix::read("no/such/file.csv").unwrap_err();
        assert!(matches!(missing, Error::Io { .. }));
        // A chain of causes must not repeat the message.
        assert!(std::error::Error::source(&missing).is_none());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("k.csv");
        let files: [&[u8]; 6] = [
            b"PK\x03\x04rest",
            b"PAR1\x15\x04",
            b"\x1f\x8b\x08",
            b"1\x00,\x002\x00",
            b"",
            b"\x89PNG\r\n\x1a\n",
        ];
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            Matrix::read(&path)
        };
        insta::assert_snapshot!(messages(dir.path(), files.map(read)));
    }
}
