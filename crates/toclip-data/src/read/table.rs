//! Rows of numbers in a file, and how they become samples.

use super::format::FileFormat;
use super::{csv, npy};
use crate::error::bail;
use crate::samples::{Block, SampleSource};
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use toclip::did_you_mean;

/// Receives one row after the other.
pub(super) type RowVisitor<'a> = &'a mut dyn FnMut(&[f64]) -> Result<()>;

/// The reader of a format: passes on all rows of the file in order, as often as asked.
pub(super) type RowReader = Box<dyn Fn(&Path, RowVisitor<'_>) -> Result<()> + Sync>;

/// A file of rows of numbers.
pub(crate) struct Table {
    pub path: PathBuf,
    /// The numbers in a row.
    pub width: usize,
    /// The names of the columns; empty where the file has none.
    pub names: Vec<String>,
    /// The relative rounding error of the numbers.
    pub rounding: f64,
    pub(super) read_rows: RowReader,
}

impl Table {
    /// Opens a CSV, NPY or Parquet file, by its content.
    pub fn open(path: &Path) -> Result<Self> {
        match FileFormat::of_table(path)? {
            FileFormat::Npy => npy::open(path),
            FileFormat::Text => csv::open(path),
            #[cfg(feature = "parquet")]
            FileFormat::Parquet => super::parquet::open(path),
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
        let mut row = 0;
        (self.read_rows)(&self.path, &mut |values| {
            row += 1;
            if values.len() != self.width {
                return Err(self.changed());
            }
            if let Some(i) = values.iter().position(|v| !v.is_finite()) {
                bail!(
                    at & self.path,
                    row,
                    i + 1,
                    "{} is not allowed; all numbers must be finite",
                    values[i]
                );
            }
            visit(values)
        })?;
        if row == 0 {
            bail!(in &self.path, "the file has no rows of numbers");
        }
        Ok(())
    }

    fn changed(&self) -> Error {
        Error::file(&self.path, "the file has changed since it was opened")
    }

    /// The index of the column of this name or, where no column has it, of this position from 1.
    pub fn column(&self, column: &str) -> Result<usize> {
        let (path, names) = (&self.path, &self.names);
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
            Ok(position) => bail!(in path, "there is no column {position}; {}", self.columns()),
            Err(_) => {
                let hint = did_you_mean(column, names.iter().map(String::as_str));
                bail!(in path, "there is no column `{column}`; {}{hint}", self.columns())
            }
        }
    }

    /// The columns for a message: their names, at most twelve, or their number.
    pub fn columns(&self) -> String {
        if self.names.is_empty() {
            return format!("the columns have no names, only positions from 1 to {}", self.width);
        }
        let shown = self.names[..self.names.len().min(12)].join(", ");
        let more = if self.names.len() > 12 { ", ..." } else { "" };
        format!("the columns are {shown}{more}, in positions 1 to {}", self.width)
    }
}

/// Where the targets of a table are.
pub(super) enum Targets {
    /// In this column, from 0.
    Column(usize),
    /// In memory.
    Values(Vec<f64>),
}

/// A table with targets.
pub(super) struct TableSamples {
    table: Table,
    targets: Targets,
    rows: usize,
    cols: usize,
}

impl TableSamples {
    /// Reads the table once to check it and to count its rows.
    pub fn new(table: Table, targets: Targets) -> Result<Self> {
        let path = &table.path;
        let cols = table.width - usize::from(matches!(targets, Targets::Column(_)));
        if cols == 0 {
            bail!(in path, "the only column is the target; samples also need features");
        }
        let mut rows = 0;
        table.each_row(&mut |_| {
            rows += 1;
            Ok(())
        })?;
        if let Targets::Values(targets) = &targets
            && targets.len() != rows
        {
            bail!(in path, "{rows} rows of features but {} targets", targets.len());
        }
        Ok(Self { table, targets, rows, cols })
    }
}

impl SampleSource for TableSamples {
    fn rows(&self) -> usize {
        self.rows
    }

    fn cols(&self) -> usize {
        self.cols
    }

    fn name(&self) -> String {
        self.table.path.display().to_string()
    }

    fn visit(&self, size: usize, visit: &mut dyn FnMut(Block<'_>) -> Result<()>) -> Result<()> {
        let (size, cols) = (size.clamp(1, self.rows), self.cols);
        let (mut features, mut targets) = (Vec::with_capacity(size * cols), Vec::new());
        let mut done = 0;
        self.table.each_row(&mut |row| {
            match &self.targets {
                _ if done == self.rows => return Err(self.table.changed()),
                Targets::Column(at) => {
                    features.extend_from_slice(&row[..*at]);
                    features.extend_from_slice(&row[at + 1..]);
                    targets.push(row[*at]);
                }
                Targets::Values(all) => {
                    features.extend_from_slice(row);
                    targets.push(all[done]);
                }
            }
            done += 1;
            if targets.len() == size || done == self.rows {
                visit(Block { features: &features, targets: &targets, cols })?;
                features.clear();
                targets.clear();
            }
            Ok(())
        })?;
        if done < self.rows { Err(self.table.changed()) } else { Ok(()) }
    }
}
