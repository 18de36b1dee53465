//! A data matrix, and what is refused of one.

use crate::error::{Error, Result};
use crate::sim::Isa;
use crate::sim::row::inner;

/// $(x_k, b_k)$, and the optimum and covariance that the risk is measured with.
///
/// Scale the data so that $\Vert K\Vert = 1$, as everywhere
/// ([`Rescaling`](crate::spectrum::Rescaling) says what changes with it).
#[derive(Debug, Clone, PartialEq)]
pub struct StreamData {
    /// $x_k$, row by row, `targets.len()` rows of `start.len()` numbers.
    pub features: Vec<f64>,
    /// $b_k$.
    pub targets: Vec<f64>,
    /// $\theta_0$.
    pub start: Vec<f64>,
    /// $\theta^\ast$, e.g. by least squares.
    pub optimum: Vec<f64>,
    /// $K$, row by row, symmetric; used only where the risk is saved or the policy asks for it.
    pub covariance: Vec<f64>,
    /// $d = \mathrm{Tr}\thinspace K/\Vert K\Vert $: time is $t = k/d$.
    pub dim: f64,
}

/// Data that C-SGD cannot run on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A part of another size than the others.
    #[error(
        "{name} has {found} numbers, but with {rows} targets and {coordinates} coordinates of start it \
         must have {expected}"
    )]
    Size {
        /// The part.
        name: &'static str,
        /// Its size.
        found: usize,
        /// The number of targets.
        rows: usize,
        /// The number of coordinates of the start.
        coordinates: usize,
        /// What its size should be.
        expected: &'static str,
    },
    /// No rows or no columns.
    #[error("C-SGD on data needs at least one row and column")]
    Empty,
    /// NaN or infinity.
    #[error("number {number} of {name} is {value}; all must be finite")]
    NotFinite {
        /// The part.
        name: &'static str,
        /// The place of the number in it, from one.
        number: usize,
        /// The number.
        value: f64,
    },
    /// Groups of a rule that do not have the coordinates of the data.
    #[error(
        "groups of sizes {sizes:?} must together have all {coordinates} coordinates of the data"
    )]
    Groups {
        /// The sizes of the groups.
        sizes: Vec<u64>,
        /// The number of coordinates.
        coordinates: usize,
    },
    /// A target that is no class.
    #[error("label {label}: labels must be 0 or 1")]
    Label {
        /// The target.
        label: f64,
    },
    /// A model whose labels are not classes.
    #[error("{model} has no classes: use a model of labels 0 and 1")]
    NoClasses {
        /// The model.
        model: String,
    },
    /// Features or parameters whose products overflow.
    #[error("the logits overflow: rescale the features")]
    Overflow,
    /// Parameters of another number of coordinates.
    #[error("{found} coordinates for {expected} features")]
    Coordinates {
        /// Their number.
        found: usize,
        /// The number of features.
        expected: usize,
    },
    /// Measures of a model, of least squares.
    #[error("loss and error rate are those of a model: use `Stream::with_model`")]
    NoModel,
}

impl StreamData {
    pub(super) fn check(&self) -> Result<()> {
        self.check_sizes().map_err(Error::Data)?;
        if !(self.dim.is_finite() && self.dim > 0.0) {
            return Err(Error::parameter("dim", self.dim, "give Tr K/||K||, finite and positive"));
        }
        Ok(())
    }

    fn check_sizes(&self) -> std::result::Result<(), DataError> {
        let (n, p) = (self.targets.len(), self.start.len());
        let sizes = [
            ("features", self.features.len(), n.checked_mul(p), "targets times start"),
            ("optimum", self.optimum.len(), Some(p), "as many as start"),
            ("covariance", self.covariance.len(), p.checked_mul(p), "start times start"),
        ];
        for (name, found, expected, why) in sizes {
            if Some(found) != expected {
                return Err(DataError::Size {
                    name,
                    found,
                    rows: n,
                    coordinates: p,
                    expected: why,
                });
            }
        }
        if n == 0 || p == 0 {
            return Err(DataError::Empty);
        }
        let parts = [
            ("features", &self.features),
            ("targets", &self.targets),
            ("start", &self.start),
            ("optimum", &self.optimum),
            ("covariance", &self.covariance),
        ];
        for (name, values) in parts {
            if let Some(i) = values.iter().position(|v| !v.is_finite()) {
                return Err(DataError::NotFinite { name, number: i + 1, value: values[i] });
            }
        }
        Ok(())
    }

    pub(super) fn row(&self, k: usize) -> &[f64] {
        let p = self.start.len();
        &self.features[k * p..][..p]
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.features.chunks_exact(self.start.len())
    }

    /// $R$ and $D$ at $\theta$.
    pub(super) fn measure(&self, isa: Isa, theta: &[f64], scratch: &mut Vec<f64>) -> [f64; 2] {
        scratch.clear();
        scratch.extend(theta.iter().zip(&self.optimum).map(|(a, b)| a - b));
        let rows = self.covariance.chunks_exact(theta.len());
        let twice: f64 = rows.zip(&*scratch).map(|(k, v)| v * inner(isa, k, scratch)).sum();
        // Rounding, or a covariance that is not quite positive, must not make a risk negative.
        [(0.5 * twice).max(0.0), inner(isa, scratch, scratch)]
    }
}
