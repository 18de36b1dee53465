//! Data for `toclip`: data sets, one reader for each file format, features, least squares, and noise
//! fitted to residuals.
//!
//! [`Matrix::read`] reads a dense matrix from CSV, NPY or Parquet; [`spectrum_from_covariance`],
//! [`spectrum_from_data`] and [`read_spectrum`] give the eigenvalues of $K$. Errors name the file,
//! and line and column where there is one.
//!
//! [`cifar10`] and [`wikitext`] read the data sets of the paper, [`DataSet::locate`] finds them in
//! the cache. A [`SampleSource`] gives samples in blocks, and [`open_samples`] those of any CSV, NPY,
//! NPZ or Parquet file. A [`Design`] makes features of them, [`LeastSquares`] fits,
//! [`LogisticRegression`] fits classes,
//! [`noise_fit::fit_all`] fits noise families to the residuals and compares them, and [`OnePass`]
//! predicts the risk of clipped SGD on them.
//!
//! | cargo feature | default | what needs it |
//! |---|---|---|
//! | `fit` | on | the data sets, features, least squares and noise fits; [`spectrum_from_data`]; eigenvalues by `faer`, which is faster than the method used otherwise |
//! | `parquet` | on | reading Parquet files |
//! | `png` | on | [`cifar10::unpack_package`] |

#[cfg(feature = "fit")]
mod data_sets;
mod eigenvalues;
mod error;
#[cfg(feature = "fit")]
mod features;
mod matrix;
#[cfg(feature = "fit")]
pub mod noise_fit;
mod read;
#[cfg(feature = "fit")]
mod samples;
mod spectrum;
#[cfg(feature = "fit")]
mod statistics;

#[cfg(feature = "fit")]
pub use data_sets::{DataSet, cache_folder, cifar10, sha256, wikitext};
pub use error::{Error, Result};
#[cfg(feature = "fit")]
pub use features::{
    Activation, ChanceBias, ClippedOptimum, Design, Features, LeastSquares, LogisticRegression,
    LogisticRidge, OnePass, Residuals, Ridge, RidgeReason, normal_start,
};
pub use matrix::Matrix;
#[cfg(feature = "fit")]
pub use read::{Target, open_samples};
pub use read::{column_of_bytes, read_column};
#[cfg(feature = "fit")]
pub use samples::{BlockVisitor, SampleBlock, SampleSource, Samples};
#[cfg(feature = "fit")]
pub use spectrum::spectrum_from_data;
pub use spectrum::{SpectrumSource, read_spectrum, resolve_spectrum, spectrum_from_covariance};

#[cfg(test)]
mod testing {
    use super::Result;
    use std::path::Path;

    /// The messages of errors, one a line, without the folder of the files.
    pub fn messages<T>(folder: &Path, results: impl IntoIterator<Item = Result<T>>) -> String {
        let message = |result: Result<T>| result.err().map_or("no error".into(), |e| e.to_string());
        let messages: Vec<String> = results.into_iter().map(message).collect();
        messages.join("\n").replace(&format!("{}/", folder.display()), "")
    }
}
