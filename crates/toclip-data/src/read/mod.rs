//! Numbers from files: one reader a format, chosen by content.

mod csv;
mod format;
mod npy;
mod npz;
#[cfg(feature = "parquet")]
mod parquet;
mod table;

pub(crate) use format::FileFormat;
pub(crate) use table::Table;

use crate::error::bail;
use crate::{Matrix, Result, SampleSource};
use std::path::{Path, PathBuf};
use table::{TableSamples, Targets};

/// Where the targets $b_k$ are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Target {
    /// The last column; in an NPZ file the array `y` (or a similar name), if there is one.
    #[default]
    Last,
    /// The column of this name or, if no column has this name, of this position from 1; in an NPZ
    /// file also the array of this name.
    Column(String),
    /// The array of this name in an NPZ file.
    Array(String),
    /// A separate CSV, NPY or Parquet file with one number for each sample.
    File(PathBuf),
}

impl Target {
    /// The target that a user's string means: a file if it exists, else a column.
    ///
    /// ```
    /// use toclip_data::Target;
    /// assert_eq!(Target::from_word("price"), Target::Column("price".into()));
    /// ```
    pub fn from_word(word: &str) -> Self {
        if Path::new(word).is_file() {
            Target::File(word.into())
        } else {
            Target::Column(word.into())
        }
    }
}

/// Samples $(x_k, b_k)$ from a CSV, NPY, NPZ or Parquet file, by its content, not its name. They are
/// read in blocks: the file may be larger than the memory.
///
/// - CSV: as in [`Matrix::read`]; column names in the first line are optional.
/// - NPY: one or two dimensions, any type of number; booleans are 0 and 1.
/// - NPZ: the features `X` and the targets `y`, or the array that `target` names; compressed or
///   not. The last column is the target only if the file has no other array.
/// - Parquet: columns of numbers or booleans, uncompressed or with Snappy or gzip.
///
/// The file is read once here to find errors, which name row and column.
///
/// ```no_run
/// use toclip_data::{SampleSource, Target, open_samples};
/// let samples = open_samples("houses.csv", &Target::Column("price".into()))?;
/// println!("{}: {} x {}", samples.name(), samples.rows(), samples.cols());
/// # Ok::<(), toclip_data::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`](crate::Error::Io), [`Error::File`](crate::Error::File) or, with line and column,
/// [`Error::Cell`](crate::Error::Cell).
pub fn open_samples(path: impl AsRef<Path>, target: &Target) -> Result<Box<dyn SampleSource>> {
    let path = path.as_ref();
    let (table, array) = match FileFormat::of_table(path)? {
        FileFormat::Zip => npz::open(path, target)?,
        _ => (Table::open(path)?, None),
    };
    let targets = match (array, target) {
        (Some(array), _) => Targets::Values(array),
        (None, Target::Last) => Targets::Column(table.width - 1),
        (None, Target::Column(name)) => {
            if !table.names.contains(name) && looks_like_a_file(name) {
                bail!(in Path::new(name), "no such file, and no column of {} has this name",
                    path.display());
            }
            Targets::Column(table.column(name)?)
        }
        (None, Target::File(file)) => Targets::Values(read_column(file, None)?),
        (None, Target::Array(name)) => {
            bail!(in path, "there is no array `{name}`: only NPZ files have named arrays")
        }
    };
    Ok(Box::new(TableSamples::new(table, targets)?))
}

/// Whether a string that is not a column was meant as a file.
fn looks_like_a_file(word: &str) -> bool {
    let known = ["csv", "tsv", "txt", "npy", "npz", "parquet"];
    let ending = Path::new(word).extension().map(|ending| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| known.iter().any(|known| ending == *known)) || word.contains('/')
}

/// One column of a CSV, NPY or Parquet file, by its name or, if no column has this name, by its
/// position from 1. `None` takes the only column, or the only row.
///
/// ```no_run
/// let residuals = toclip_data::read_column("residuals.csv", Some("residual"))?;
/// # Ok::<(), toclip_data::Error>(())
/// ```
///
/// # Errors
/// Those of [`Matrix::read`], and [`Error::File`](crate::Error::File) for an unknown column, or for
/// none where there are several.
pub fn read_column(path: impl AsRef<Path>, column: Option<&str>) -> Result<Vec<f64>> {
    let table = Table::open(path.as_ref())?;
    let index = column.map(|column| table.column(column)).transpose()?;
    let matrix = Matrix::from_table(&table)?;
    let (rows, cols) = (matrix.rows(), matrix.cols());
    match index {
        Some(index) => Ok((0..rows).map(|i| matrix.row(i)[index]).collect()),
        None if rows == 1 || cols == 1 => Ok(matrix.into_data()),
        None => {
            bail!(in &table.path, "expected one column, but the file has {rows} rows and {cols} \
                      columns; {}", table.columns())
        }
    }
}

#[cfg(test)]
mod tests;
