//! Rows of a CSV file.

use super::table::Table;
use crate::csv_file::Rows;
use crate::{Error, Result};
use std::fs::File;
use std::path::{Path, PathBuf};

pub(super) struct Csv {
    path: PathBuf,
    width: usize,
    names: Option<Vec<String>>,
}

impl Csv {
    pub fn open(path: &Path) -> Result<Self> {
        let mut rows = Rows::new(path, file(path)?);
        if !rows.next(&mut Vec::new())? {
            return Err(Error::file(path, "there are no rows of numbers in the file"));
        }
        Ok(Self { path: path.into(), width: rows.cols(), names: rows.into_names() })
    }
}

fn file(path: &Path) -> Result<File> {
    File::open(path).map_err(|e| Error::io(path, e))
}

impl Table for Csv {
    fn path(&self) -> &Path {
        &self.path
    }

    fn width(&self) -> usize {
        self.width
    }

    fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    fn each(&self, row: &mut dyn FnMut(&[f64]) -> Result<()>) -> Result<()> {
        let mut rows = Rows::new(&self.path, file(&self.path)?);
        let mut values = Vec::with_capacity(self.width);
        while rows.next(&mut values)? {
            // Another file may have taken its place since it was opened.
            if values.len() != self.width {
                let message = "the file has changed since it was opened";
                return Err(Error::file(&self.path, message));
            }
            row(&values)?;
            values.clear();
        }
        Ok(())
    }
}
