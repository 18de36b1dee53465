//! Numbers from files: one reader a format, chosen by content.

mod csv;
mod format;
mod npy;
#[cfg(feature = "fit")]
mod npz;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "fit")]
mod samples;
mod source;
mod table;

#[cfg(feature = "fit")]
pub(crate) use format::FileFormat;
#[cfg(feature = "fit")]
pub use samples::{Target, open_samples};
pub(crate) use source::Source;
pub(crate) use table::Table;

use crate::Result;
use std::path::Path;

/// One column of a CSV, NPY or Parquet file, by its name or, if no column has this name, by its
/// position from 1. `None` takes the only column, or the only row.
///
/// ```no_run
/// let residuals = toclip_data::read_column("residuals.csv", Some("residual"))?;
/// # Ok::<(), toclip_data::Error>(())
/// ```
///
/// # Errors
/// Those of [`Matrix::read`](crate::Matrix::read), and [`Error::File`](crate::Error::File) for an unknown column, or for
/// none where there are several.
pub fn read_column(path: impl AsRef<Path>, column: Option<&str>) -> Result<Vec<f64>> {
    Table::open(Source::file(path.as_ref()))?.read_column(column)
}

/// The same for a file in memory; `name` is what messages call it.
///
/// ```
/// let csv = b"step,residual\n1,0.5\n2,-0.25\n";
/// assert_eq!(toclip_data::column_of_bytes("the file", csv, Some("residual"))?, [0.5, -0.25]);
/// # Ok::<(), toclip_data::Error>(())
/// ```
///
/// # Errors
/// Those of [`read_column`].
pub fn column_of_bytes(name: &str, bytes: &[u8], column: Option<&str>) -> Result<Vec<f64>> {
    Table::open(Source::bytes(name, bytes))?.read_column(column)
}

#[cfg(feature = "fit")]
#[cfg(test)]
mod tests;
