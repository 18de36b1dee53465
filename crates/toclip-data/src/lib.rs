//! Data for `toclip`: matrices and spectra from files, and noise fitted to residuals.
//!
//! [`Matrix::read`] takes a dense matrix from CSV or NPY; [`spectrum_from_covariance`],
//! [`spectrum_from_data`] and [`read_spectrum`] make it the eigenvalues of $K$. What is wrong with a
//! file is said with its name, and with line and column where there is one.
//!
//! [`noise_fit::fit_all`] fits families of noise to residuals and compares them.

mod csv_file;
mod error;
mod features;
mod matrix;
pub mod noise_fit;
mod npy_file;
mod source;
mod spectrum;

pub use error::{Error, Result};
pub use features::{
    Activation, Design, Destination, Features, LeastSquares, OnePass, Residuals, Ridge,
};
pub use matrix::Matrix;
pub use source::{Block, Samples, Source};
pub use spectrum::{
    SpectrumSource, read_spectrum, resolve_spectrum, spectrum_from_covariance, spectrum_from_data,
};
