//! Tables: columns of one length, written as CSV or Parquet.
//!
//! This is the one CSV writer of the command. Numbers have the fewest digits that read back as the
//! same number. A missing value, NaN included, is an empty cell of the CSV and a null of the Parquet.

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::files;
use toclip_words::exact;

/// Columns side by side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    pub(super) columns: Vec<TableColumn>,
}

/// A column with its name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TableColumn {
    pub name: Cow<'static, str>,
    pub values: ColumnValues,
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ColumnValues {
    /// Strings.
    Text(Vec<Cow<'static, str>>),
    /// Numbers; `None` is missing.
    Numbers(Vec<Option<f64>>),
    /// Counts; `None` is missing.
    Counts(Vec<Option<u64>>),
}

impl Table {
    /// Adds a column of strings.
    #[must_use]
    pub fn text<T: Into<Cow<'static, str>>>(
        self,
        name: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        self.with(name, ColumnValues::Text(values.into_iter().map(Into::into).collect()))
    }

    /// Adds a column of numbers, plain or optional; NaN is missing.
    #[must_use]
    pub fn numbers<T: Into<Option<f64>>>(
        self,
        name: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let values = values.into_iter().map(|v| v.into().filter(|v| !v.is_nan())).collect();
        self.with(name, ColumnValues::Numbers(values))
    }

    /// Adds a column of counts, plain or optional.
    #[must_use]
    pub fn counts<T: Into<Option<u64>>>(
        self,
        name: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        self.with(name, ColumnValues::Counts(values.into_iter().map(Into::into).collect()))
    }

    fn with(mut self, name: impl Into<Cow<'static, str>>, values: ColumnValues) -> Self {
        self.columns.push(TableColumn { name: name.into(), values });
        self
    }

    /// The number of rows: that of the longest column. Shorter ones end in missing values.
    pub fn rows(&self) -> usize {
        self.columns.iter().map(|column| column.values.len()).max().unwrap_or(0)
    }

    /// The bytes of a CSV file: a header and rows.
    pub fn csv(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write_csv(&mut bytes, true)?;
        Ok(bytes)
    }

    /// Writes the table in every format of this build: `STEM.csv`, and with the feature `parquet` also
    /// `STEM.parquet` with these pairs of metadata. Returns the files.
    pub fn write(&self, stem: &Path, metadata: &[(&str, String)]) -> Result<Vec<PathBuf>> {
        #[cfg(not(feature = "parquet"))]
        let _ = metadata;
        let formats = vec![
            ("csv", self.csv()?),
            #[cfg(feature = "parquet")]
            ("parquet", self.parquet(metadata)?),
        ];
        files::write_formats(stem, formats)
    }

    /// Writes rows as CSV, after the header if `header` says so: a long table is written block by
    /// block, the header with the first.
    pub fn write_csv(&self, to: impl Write, header: bool) -> Result<()> {
        let write = || -> Result<(), csv::Error> {
            let mut out = csv::Writer::from_writer(to);
            if header {
                out.write_record(self.columns.iter().map(|column| column.name.as_bytes()))?;
            }
            for row in 0..self.rows() {
                for column in &self.columns {
                    out.write_field(column.values.cell(row).as_bytes())?;
                }
                out.write_record(None::<&[u8]>)?;
            }
            Ok(out.flush()?)
        };
        write().context("cannot write the CSV table")
    }
}

/// Columns of numbers, with their names.
impl<N: Into<Cow<'static, str>>, V: AsRef<[f64]>> FromIterator<(N, V)> for Table {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(columns: I) -> Self {
        let add = |table: Table, (name, values): (N, V)| {
            table.numbers(name, values.as_ref().iter().copied())
        };
        columns.into_iter().fold(Table::default(), add)
    }
}

impl ColumnValues {
    fn len(&self) -> usize {
        match self {
            ColumnValues::Text(values) => values.len(),
            ColumnValues::Numbers(values) => values.len(),
            ColumnValues::Counts(values) => values.len(),
        }
    }

    fn cell(&self, row: usize) -> Cow<'_, str> {
        let cell = match self {
            ColumnValues::Text(values) => {
                return values.get(row).map(|v| (**v).into()).unwrap_or_default();
            }
            ColumnValues::Numbers(values) => values.get(row).copied().flatten().map(exact),
            ColumnValues::Counts(values) => {
                values.get(row).copied().flatten().map(|v| v.to_string())
            }
        };
        cell.unwrap_or_default().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_bit_for_bit_and_missing_ones_are_empty() {
        let numbers = [0.1 + 0.2, 1e-300, 5e-324, f64::INFINITY, 1e16, -0.0];
        let mut values: Vec<Option<f64>> = numbers.iter().copied().map(Some).collect();
        values.extend([None, Some(f64::NAN)]);
        let table = Table::default()
            .text("method", ["ode"; 8])
            .numbers("x, y", values)
            .counts("n", (0..8).map(|n| (n % 2 == 0).then_some(n)))
            .numbers("short", [1.0]);
        let bytes = table.csv().unwrap();
        let mut reader = csv::Reader::from_reader(bytes.as_slice());
        assert_eq!(reader.headers().unwrap(), vec!["method", "x, y", "n", "short"]);
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 8);
        for (row, number) in rows.iter().zip(numbers) {
            assert_eq!(row[1].parse::<f64>().unwrap().to_bits(), number.to_bits());
        }
        assert_eq!((&rows[6][1], &rows[7][1], &rows[1][2], &rows[1][3]), ("", "", "", ""));
    }

    #[test]
    fn blocks_make_the_same_file_as_the_whole() {
        let whole = Table::default().numbers("x", [1.0, 2.0, 3.0]);
        let mut bytes = Vec::new();
        Table::default().numbers("x", [1.0, 2.0]).write_csv(&mut bytes, true).unwrap();
        Table::default().numbers("x", [3.0]).write_csv(&mut bytes, false).unwrap();
        assert_eq!(bytes, whole.csv().unwrap());
    }
}
