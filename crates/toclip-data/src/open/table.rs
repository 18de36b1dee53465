//! Rows of numbers, and how they become samples.

use crate::source::{Block, Source};
use crate::{Error, Result};
use std::path::Path;

/// A file of rows that can be read again and again; each format has one.
pub(super) trait Table: Sync {
    fn path(&self) -> &Path;

    /// The numbers in a row.
    fn width(&self) -> usize;

    /// The names of the columns, where there are any.
    fn names(&self) -> Option<&[String]> {
        None
    }

    /// Hands over all rows in order, each of `width` finite numbers.
    fn each(&self, row: &mut dyn FnMut(&[f64]) -> Result<()>) -> Result<()>;
}

/// An error for the first number of a row (from 0) that is not finite.
pub(super) fn finite(path: &Path, row: usize, values: &[f64]) -> Result<()> {
    match values.iter().position(|v| !v.is_finite()) {
        None => Ok(()),
        Some(i) => {
            let message = format!("{} is not allowed; all numbers must be finite", values[i]);
            Err(Error::cell(path, row as u64 + 1, i + 1, message))
        }
    }
}

/// Where the targets of a table are.
pub(super) enum Targets {
    /// In this column, from 0.
    Column(usize),
    /// Here.
    Apart(Vec<f64>),
}

/// A table with targets.
pub(super) struct TableSource {
    table: Box<dyn Table>,
    targets: Targets,
    rows: usize,
    cols: usize,
}

impl TableSource {
    /// Reads the table once, so that it is known to be right and how many rows it has.
    pub fn new(table: Box<dyn Table>, targets: Targets) -> Result<Self> {
        let cols = match targets {
            Targets::Column(_) => table.width() - 1,
            Targets::Apart(_) => table.width(),
        };
        let path = table.path();
        if cols == 0 {
            let message = "there is one column, the target; a sample also needs features";
            return Err(Error::file(path, message));
        }
        let mut rows = 0;
        table.each(&mut |_| {
            rows += 1;
            Ok(())
        })?;
        if rows == 0 {
            return Err(Error::file(path, "there are no rows of numbers in the file"));
        }
        if let Targets::Apart(targets) = &targets
            && targets.len() != rows
        {
            let count = targets.len();
            let message =
                format!("{rows} rows of features but {count} targets; each sample needs one");
            return Err(Error::file(path, message));
        }
        Ok(Self { table, targets, rows, cols })
    }
}

impl Source for TableSource {
    fn rows(&self) -> usize {
        self.rows
    }

    fn cols(&self) -> usize {
        self.cols
    }

    fn name(&self) -> String {
        self.table.path().display().to_string()
    }

    fn visit(&self, size: usize, visit: &mut dyn FnMut(Block<'_>) -> Result<()>) -> Result<()> {
        let (size, cols) = (size.clamp(1, self.rows), self.cols);
        let changed = || Error::file(self.table.path(), "the file has changed since it was opened");
        let (mut features, mut targets) = (Vec::with_capacity(size * cols), Vec::new());
        let mut done = 0;
        self.table.each(&mut |row| {
            if done == self.rows {
                return Err(changed());
            }
            match &self.targets {
                Targets::Column(at) => {
                    features.extend_from_slice(&row[..*at]);
                    features.extend_from_slice(&row[at + 1..]);
                    targets.push(row[*at]);
                }
                Targets::Apart(all) => {
                    features.extend_from_slice(row);
                    targets.push(all[done]);
                }
            }
            done += 1;
            if targets.len() == size {
                visit(Block { features: &features, targets: &targets, cols })?;
                features.clear();
                targets.clear();
            }
            Ok(())
        })?;
        if done < self.rows {
            return Err(changed());
        }
        match targets.is_empty() {
            true => Ok(()),
            false => visit(Block { features: &features, targets: &targets, cols }),
        }
    }
}
