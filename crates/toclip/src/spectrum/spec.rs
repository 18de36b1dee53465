//! A spectrum as it is written in a file.

use super::{Block, Spectrum, SpectrumError};
use crate::error::Result;

/// $K$ as an experiment names it: `{ kind = "power_law", dim = 500, exponent = 0.2 }`.
///
/// ```
/// use toclip::spectrum::SpectrumSpec;
/// let spec: SpectrumSpec = toml::from_str("kind = 'power_law'\ndim = 500\nexponent = 0.2")?;
/// assert_eq!(spec.build()?.len(), 500);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum SpectrumSpec {
    /// [`Spectrum::isotropic`].
    Isotropic {
        /// Ambient dimension.
        dim: u64,
    },
    /// [`Spectrum::power_law`].
    PowerLaw {
        /// Ambient dimension.
        dim: u64,
        /// $a$ in $\lambda_j = j^{-a}$.
        exponent: f64,
    },
    /// [`Spectrum::from_eigenvalues`].
    Eigenvalues {
        /// $\lambda_i$, in any order.
        values: Vec<f64>,
    },
    /// [`Spectrum::from_blocks`].
    Blocks {
        /// $(\lambda_b, n_b)$, in any order.
        blocks: Vec<Block>,
    },
    /// [`Spectrum::marchenko_pastur`].
    MarchenkoPastur {
        /// Ambient dimension.
        dim: u64,
        /// $\gamma$ = dim/samples.
        aspect: f64,
    },
    /// Eigenvalues or a covariance in a file. This crate reads no files: `toclip_data` does.
    File {
        /// Where the file is.
        path: String,
    },
}

impl SpectrumSpec {
    /// The spectrum $\lambda_i$ that the specification names.
    ///
    /// ```
    /// use toclip::spectrum::SpectrumSpec;
    /// assert_eq!(SpectrumSpec::Isotropic { dim: 7 }.build()?.intrinsic_dim(), 7.0);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the constructor named, and [`SpectrumError`] for [`SpectrumSpec::File`].
    pub fn build(&self) -> Result<Spectrum> {
        match self {
            Self::Isotropic { dim } => Spectrum::isotropic(*dim),
            Self::PowerLaw { dim, exponent } => Spectrum::power_law(*dim, *exponent),
            Self::Eigenvalues { values } => Spectrum::from_eigenvalues(values),
            Self::Blocks { blocks } => Spectrum::from_blocks(blocks),
            Self::MarchenkoPastur { dim, aspect } => Spectrum::marchenko_pastur(*dim, *aspect),
            Self::File { path } => Err(SpectrumError::File { path: path.clone() }.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> std::result::Result<SpectrumSpec, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn every_kind_is_read_and_written() {
        for text in [
            "kind = 'isotropic'\ndim = 3",
            "kind = 'power_law'\ndim = 3\nexponent = 0.5",
            "kind = 'eigenvalues'\nvalues = [1.0, 0.5]",
            "kind = 'blocks'\nblocks = [{ value = 1.0, multiplicity = 4 }]",
            "kind = 'marchenko_pastur'\ndim = 10\naspect = 2.0",
            "kind = 'file'\npath = 'k.npy'",
        ] {
            let spec = parse(text).unwrap();
            assert_eq!(parse(&toml::to_string(&spec).unwrap()).unwrap(), spec);
            let json = serde_json::to_string(&spec).unwrap();
            assert_eq!(serde_json::from_str::<SpectrumSpec>(&json).unwrap(), spec);
            assert_eq!(spec.build().is_err(), matches!(spec, SpectrumSpec::File { .. }));
        }
    }

    #[test]
    fn unknown_names_are_refused_by_name() {
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert!(message("kind = 'isotropic'\ndim = 3\ndims = 4").contains("`dims`"));
        assert!(message("kind = 'flat'").contains("marchenko_pastur"));
        assert!(message("kind = 'blocks'\nblocks = [{ value = 1.0, n = 4 }]").contains("`n`"));
        assert!(message("kind = 'isotropic'\ndim = -3").contains("-3"));
    }
}
