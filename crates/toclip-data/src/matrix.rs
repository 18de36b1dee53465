//! A dense matrix and where it comes from.

use crate::kind::Kind;
use crate::{Error, Result, csv_file, npy_file};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// A dense matrix of finite `f64`, row by row.
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
    /// The relative spacing of the numbers it was stored in: single precision has a rounding of
    /// its own, which is not the user's fault.
    pub(crate) rounding: f64,
}

impl Matrix {
    /// The `rows` × `cols` matrix with the entries `data`, row by row.
    ///
    /// # Errors
    /// [`Error::Invalid`] where there are not `rows * cols` entries, none at all, or one that is
    /// not finite.
    pub fn new(rows: usize, cols: usize, data: Vec<f64>) -> Result<Self> {
        if rows.checked_mul(cols) != Some(data.len()) {
            let count = data.len();
            return Err(Error::Invalid(format!("{count} entries do not fill {rows} x {cols}")));
        }
        if data.is_empty() {
            return Err(Error::Invalid(format!("the matrix is empty ({rows} x {cols})")));
        }
        if let Some(i) = data.iter().position(|v| !v.is_finite()) {
            let (row, col) = (i / cols + 1, i % cols + 1);
            return Err(Error::Invalid(format!(
                "the entry in row {row}, column {col} is {}; all must be finite",
                data[i]
            )));
        }
        Ok(Self { rows, cols, data, rounding: f64::EPSILON })
    }

    /// Reads a matrix from a CSV or NPY file (told apart by their content, not their name).
    ///
    /// - CSV: numbers separated by commas, lines of equal length, `#` comments, blank lines
    ///   ignored. A first line without any number is a header, and so is one whose numbers only count
    ///   columns that have no name (`0,1,2,y`).
    /// - NPY: booleans, integers, or floats of 4 or 8 bytes; either byte order, C or Fortran order;
    ///   one dimension (a column) or two.
    ///
    /// ```no_run
    /// let k = toclip_data::Matrix::read("covariance.npy")?;
    /// println!("{} x {}", k.rows(), k.cols());
    /// # Ok::<(), toclip_data::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::File`] or, with line and column, [`Error::Cell`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let reader = || File::open(path).map(BufReader::new).map_err(|e| Error::io(path, e));
        match Kind::of_checked(path)? {
            Kind::Npy => npy_file::read(path, reader()?),
            Kind::Text => csv_file::read(path, reader()?),
            Kind::Zip => Err(Error::file(
                path,
                "this is a zip archive (.npz?); save the one array with numpy.save as .npy",
            )),
            Kind::Empty => Err(Error::file(path, "the file is empty")),
            other => {
                let what = other.words();
                Err(Error::file(path, format!("this is {what}; give the numbers as CSV or NPY")))
            }
        }
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
    /// If there is no such row, as a slice would.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// All entries, row by row.
    pub fn data(&self) -> &[f64] {
        &self.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_values_are_checked() {
        let message = |r, c, data| Matrix::new(r, c, data).unwrap_err().to_string();
        assert!(message(2, 2, vec![1.0; 3]).contains("3 entries do not fill 2 x 2"));
        assert!(message(0, 5, vec![]).contains("empty"));
        assert!(message(usize::MAX, 2, vec![]).contains("do not fill"));
        let nan = message(2, 2, vec![1.0, 1.0, f64::NAN, 1.0]);
        assert!(nan.contains("row 2, column 1 is NaN"), "{nan}");
    }

    #[test]
    fn missing_files_and_archives_are_named() {
        let missing = Matrix::read("no/such/file.csv").unwrap_err();
        assert!(matches!(missing, Error::Io { .. }));
        assert!(missing.to_string().starts_with("no/such/file.csv: "));
        // A chain of causes must not repeat what the message has.
        assert!(std::error::Error::source(&missing).is_none());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("k.npz");
        std::fs::write(&path, b"PK\x03\x04rest").unwrap();
        assert!(Matrix::read(&path).unwrap_err().to_string().contains("zip archive"));
        assert!(matches!(Matrix::read(dir.path()).unwrap_err(), Error::Io { .. }));
        let path = dir.path().join("k.csv");
        for (bytes, part) in [
            (&b"PAR1\x15\x04"[..], "this is a Parquet table; give the numbers as CSV or NPY"),
            (b"\x1f\x8b\x08", "this is a gzip archive; give"),
            (b"1\x00,\x002\x00", "this is an unknown binary format; give"),
            (b"", "the file is empty"),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let said = Matrix::read(&path).unwrap_err().to_string();
            assert!(said.contains("k.csv: ") && said.contains(part), "{said}");
        }
    }
}
