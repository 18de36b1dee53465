//! Other files that an experiment names: eigenvalues and residuals. Without the feature `files` they are
//! refused.

#[cfg(feature = "files")]
pub use from_disk::*;
#[cfg(not(feature = "files"))]
pub use refused::*;

#[cfg(feature = "files")]
mod from_disk {
    use std::path::Path;

    use toclip::noise::Empirical;
    use toclip_data::Matrix;
    pub use toclip_data::{SpectrumSource, resolve_spectrum};

    /// The residuals in a file.
    pub fn residuals(path: &Path) -> Result<Empirical, String> {
        let matrix = Matrix::read(path).map_err(|error| error.to_string())?;
        if matrix.rows() > 1 && matrix.cols() > 1 {
            return Err(format!(
                "{}: residuals are one row or one column of numbers, but the file holds a {} x {} \
                 table",
                path.display(),
                matrix.rows(),
                matrix.cols()
            ));
        }
        Empirical::new(matrix.data()).map_err(|error| error.to_string())
    }
}

#[cfg(not(feature = "files"))]
mod refused {
    use std::fmt;
    use std::path::Path;

    use toclip::noise::Empirical;
    use toclip::spectrum::{Spectrum, SpectrumSpec};

    /// The file that a spectrum was read from; never made here.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum SpectrumSource {
        /// A covariance of this many rows and columns.
        Covariance(usize),
        /// A covariance of this many rows and columns with nothing beside the diagonal.
        Diagonal(usize),
    }

    impl fmt::Display for SpectrumSource {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a covariance")
        }
    }

    /// The spectrum, unless it is in a file.
    pub fn resolve_spectrum(
        spec: &SpectrumSpec,
        _folder: impl AsRef<Path>,
    ) -> Result<(Spectrum, Option<SpectrumSource>), String> {
        if let SpectrumSpec::File { path } = spec {
            return Err(format!("cannot read the file {path} here; give the eigenvalues instead"));
        }
        spec.build().map(|spectrum| (spectrum, None)).map_err(|error| error.to_string())
    }

    /// Refuses to read a file.
    pub fn residuals(path: &Path) -> Result<Empirical, String> {
        Err(format!("cannot read the file {} here; give the residuals instead", path.display()))
    }
}
