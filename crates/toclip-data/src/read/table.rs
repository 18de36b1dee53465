//! Rows of numbers in a file.

use super::format::FileFormat;
use super::source::Source;
use super::{csv, npy};
use crate::error::bail;
use crate::{Error, Matrix, Result};
use toclip_words::did_you_mean;

/// Receives one row after the other.
pub(super) type RowVisitor<'a> = &'a mut dyn FnMut(&[f64]) -> Result<()>;

/// The reader of a format: passes on all rows of the file in order, as often as asked.
pub(super) type RowReader = Box<dyn Fn(&Source<'_>, RowVisitor<'_>) -> Result<()> + Sync>;

/// A file of rows of numbers.
pub(crate) struct Table<'a> {
    pub source: Source<'a>,
    /// The numbers in a row.
    pub width: usize,
    /// The names of the columns; empty where the file has none.
    pub names: Vec<String>,
    /// The relative rounding error of the numbers.
    pub rounding: f64,
    pub(super) read_rows: RowReader,
}

impl<'a> Table<'a> {
    /// Opens a CSV, NPY or Parquet table, by its content.
    pub fn open(source: Source<'a>) -> Result<Self> {
        let start = source.first_bytes()?;
        let path = &source.path;
        match FileFormat::of_table(&start) {
            FileFormat::Npy => npy::open(source),
            FileFormat::Text => csv::open(source, csv::delimiter(&start)),
            #[cfg(feature = "parquet")]
            FileFormat::Parquet => super::parquet::open(source),
            #[cfg(not(feature = "parquet"))]
            FileFormat::Parquet => {
                bail!(in path, "this is a Parquet table, which this build cannot read: it was \
                      compiled without the feature `parquet`")
            }
            FileFormat::Zip => {
                bail!(in path, "this is a zip archive; save one array of it with numpy.save as .npy")
            }
            FileFormat::Empty => bail!(in path, "the file is empty"),
            other => {
                bail!(in path, "this is {}; expected a CSV, NPY or Parquet file", other.describe())
            }
        }
    }

    /// Passes on all rows in order, each of `width` finite numbers.
    pub fn each_row(&self, visit: RowVisitor<'_>) -> Result<()> {
        let (path, mut row) = (&self.source.path, 0);
        (self.read_rows)(&self.source, &mut |values| {
            row += 1;
            if values.len() != self.width {
                return Err(self.changed());
            }
            if let Some(i) = values.iter().position(|v| !v.is_finite()) {
                bail!(at path, row, i + 1, "{} is not allowed; all numbers must be finite",
                    values[i]);
            }
            visit(values)
        })?;
        if row == 0 {
            bail!(in path, "the file has no rows of numbers");
        }
        Ok(())
    }

    pub fn changed(&self) -> Error {
        Error::file(&self.source.path, "the file has changed since it was opened")
    }

    /// The index of the column of this name or, where no column has it, of this position from 1.
    pub fn column(&self, column: &str) -> Result<usize> {
        let (path, names) = (&self.source.path, &self.names);
        let mut named = (0..names.len()).filter(|i| names[*i] == column);
        match (named.next(), named.next()) {
            (Some(first), Some(second)) => bail!(in path,
                "columns {} and {} are both called `{column}`; give the position of the column",
                first + 1, second + 1
            ),
            (Some(only), None) => return Ok(only),
            (None, _) => {}
        }
        match column.parse::<usize>() {
            Ok(position) if (1..=self.width).contains(&position) => Ok(position - 1),
            Ok(position) => bail!(in path, "unknown column {position}; {}", self.columns()),
            Err(_) => {
                let hint = did_you_mean(column, names.iter().map(String::as_str));
                bail!(in path, "unknown column `{column}`; {}{hint}", self.columns())
            }
        }
    }

    /// The numbers of the column of this name or position; for `None` those of the only column, or
    /// of the only row.
    pub fn read_column(&self, column: Option<&str>) -> Result<Vec<f64>> {
        let index = column.map(|column| self.column(column)).transpose()?;
        let matrix = Matrix::from_table(self)?;
        let (rows, cols) = (matrix.rows(), matrix.cols());
        match index {
            Some(index) => Ok((0..rows).map(|i| matrix.row(i)[index]).collect()),
            None if rows == 1 || cols == 1 => Ok(matrix.into_data()),
            None => {
                bail!(in &self.source.path, "expected one column, but the file has {rows} rows \
                          and {cols} columns; {}", self.columns())
            }
        }
    }

    /// The columns for a message: their names, at most twelve, or their number.
    fn columns(&self) -> String {
        if self.names.is_empty() {
            return format!("the columns have no names, only positions from 1 to {}", self.width);
        }
        let shown = self.names[..self.names.len().min(12)].join(", ");
        let more = if self.names.len() > 12 { ", ..." } else { "" };
        format!("the columns are {shown}{more}, in positions 1 to {}", self.width)
    }
}
