//! Samples from the user's own files, in blocks.

mod csv;
mod npy;
mod npz;
mod parquet;
mod table;
mod target;

pub use target::Target;

use crate::kind::Kind;
use crate::source::Source;
use crate::{Error, Matrix, Result};
use std::path::Path;
use table::{Table, TableSource, Targets};

/// Samples $(x_k, b_k)$ from a CSV, NPY, NPZ or Parquet file (told apart by their content, not
/// their name), read in blocks: the file may be larger than the memory.
///
/// - CSV: as in [`Matrix::read`]; names of columns in the first line are optional.
/// - NPY: two dimensions, any type of number; booleans are 0 and 1.
/// - NPZ: the features `X` and the targets `y`, or the array that `target` names; compressed or not. The last
///   column is the target only of an array that is alone.
/// - Parquet: columns of numbers or booleans, uncompressed or with Snappy or gzip.
///
/// One pass is made at once, so that what is wrong with the file is said here, with row and column.
///
/// ```no_run
/// use toclip_data::{Source, Target, open_source};
/// let samples = open_source("houses.csv", &Target::Column("price".into()))?;
/// println!("{}: {} x {}", samples.name(), samples.rows(), samples.cols());
/// # Ok::<(), toclip_data::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`], [`Error::File`] or, with line and column, [`Error::Cell`].
pub fn open_source(path: impl AsRef<Path>, target: &Target) -> Result<Box<dyn Source>> {
    let path = path.as_ref();
    let metadata = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    if metadata.is_dir() {
        return Err(Error::file(path, "this is a folder; give a CSV, NPY, NPZ or Parquet file"));
    }
    let table: Box<dyn Table> = match Kind::of_checked(path)? {
        Kind::Npy => Box::new(npy::Npy::open(path)?),
        Kind::Zip => {
            let (features, targets) = npz::open(path, target)?;
            if let Some(targets) = targets {
                return Ok(Box::new(TableSource::new(features, Targets::Apart(targets))?));
            }
            features
        }
        Kind::Parquet => Box::new(parquet::Parquet::open(path)?),
        Kind::Text => Box::new(csv::Csv::open(path)?),
        Kind::Empty => return Err(Error::file(path, "the file is empty")),
        other => return Err(unknown(path, other.words())),
    };
    let targets = match target {
        Target::File(file) => Targets::Apart(targets_from(file)?),
        Target::Array(name) => {
            let message = format!("there is no array {name:?}: only an NPZ file has named arrays");
            return Err(Error::file(path, message));
        }
        Target::Last => Targets::Column(table.width() - 1),
        Target::Column(name) => Targets::Column(target::find(path, table.as_ref(), name)?),
    };
    Ok(Box::new(TableSource::new(table, targets)?))
}

fn unknown(path: &Path, what: &str) -> Error {
    Error::file(path, format!("this is {what}; samples are read from CSV, NPY, NPZ or Parquet"))
}

/// Targets in a file of their own: one number a sample, so they always fit in memory.
fn targets_from(path: &Path) -> Result<Vec<f64>> {
    let matrix = Matrix::read(path)?;
    let (rows, cols) = (matrix.rows(), matrix.cols());
    if rows > 1 && cols > 1 {
        let message = format!("targets are one row or one column, and this is {rows} x {cols}");
        return Err(Error::file(path, message));
    }
    Ok(matrix.data().to_vec())
}

#[cfg(test)]
mod tests;
