//! Data for `toclip`: matrices, spectra, samples and known data sets from files, features, least
//! squares, and noise fitted to residuals.
//!
//! [`Matrix::read`] takes a dense matrix from CSV or NPY; [`spectrum_from_covariance`],
//! [`spectrum_from_data`] and [`read_spectrum`] make it the eigenvalues of $K$. What is wrong with a
//! file is said with its name, and with line and column where there is one.
//!
//! [`cifar10`] and [`wikitext`] read the data sets of the paper, [`DataSet::locate`] finds them in
//! the cache; a [`Source`] gives samples in blocks, [`open_source`] those of any CSV, NPY, NPZ or
//! Parquet file. A [`Design`] makes features of them, [`LeastSquares`] fits,
//! [`noise_fit::fit_all`] fits families of noise to the residuals and compares them, and [`OnePass`]
//! says what the risk of clipped SGD will do on them.

mod archive;
mod cache;
mod checksum;
pub mod cifar10;
mod csv_file;
mod error;
mod features;
mod kind;
mod matrix;
pub mod noise_fit;
mod npy_file;
mod open;
mod source;
mod spectrum;
pub mod wikitext;

pub use cache::{DataSet, cache_folder};
pub use checksum::sha256;
pub use error::{Error, Result};
pub use features::{
    Activation, Chance, Design, Destination, Features, LeastSquares, OnePass, Residuals, Ridge,
};
pub use matrix::Matrix;
pub use open::{Target, open_source};
pub use source::{Block, Samples, Source};
pub use spectrum::{
    SpectrumSource, read_spectrum, resolve_spectrum, spectrum_from_covariance, spectrum_from_data,
};

use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Writes a file and waits until it is on the disk.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|e| Error::io(path, e))
}
