//! Least squares: $\theta^\ast$ and its residuals.

use super::Design;
use super::tall_matrix::times;
use crate::Result;
use crate::error::bail;
use crate::statistics::mean_and_deviation;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::fmt;

/// The ridge for a singular $K$, as a share of $\Vert K\Vert $: far below every direction that one
/// pass of SGD can learn, far above rounding errors.
const RIDGE: f64 = 1e-6;

/// $\rho$, added to $K$ before it is inverted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ridge {
    /// $\rho/\Vert K\Vert $.
    pub value: f64,
    /// How many directions have no variance, which is why there is a ridge unless it was requested.
    pub without_variance: usize,
}

impl fmt::Display for Ridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a ridge of {:e} ||K||", self.value)?;
        match self.without_variance {
            0 => Ok(()),
            1 => write!(f, ", because K is singular in one direction"),
            n => write!(f, ", because K is singular in {n} directions"),
        }
    }
}

/// $\theta^\ast = (K + \rho I)^{-1} \frac1n \sum_k b_k x_k$: least squares without intercept.
#[derive(Debug, Clone, PartialEq)]
pub struct LeastSquares {
    /// $\theta^\ast$.
    pub optimum: Vec<f64>,
    /// $\rho$; `None` where $K$ was inverted as it is.
    pub ridge: Option<Ridge>,
}

/// $\epsilon_k = b_k - \langle x_k, \theta^\ast\rangle$: the noise of the theory.
#[derive(Debug, Clone, PartialEq)]
pub struct Residuals {
    /// $\epsilon_k$.
    pub values: Vec<f64>,
    /// $\frac1n\sum_k \epsilon_k^2$.
    pub mse: f64,
    /// The standard deviation of $\epsilon_k$.
    pub sigma: f64,
    /// The share of samples whose class has the sign of the prediction, for classes -1 and +1.
    pub accuracy: Option<f64>,
}

impl LeastSquares {
    /// Fits the targets; with a ridge of this share of $\Vert K\Vert $, or, for `None`, with one
    /// only where $K$ is singular.
    ///
    /// ```
    /// use toclip_data::{Design, Features, LeastSquares, Matrix, Samples};
    /// // The second column repeats the first: only their sum is known.
    /// let x = Matrix::new(3, 2, vec![1., 1., 2., 2., 4., 4.])?;
    /// let design = Design::new(&Samples::new(x, vec![1., 2., 4.])?, Features::None, 1)?;
    /// let fit = LeastSquares::new(&design, None)?;
    /// assert_eq!(fit.ridge.map(|r| r.without_variance), Some(1));
    /// assert!(fit.residuals(&design)?.mse < 1e-10);
    /// # Ok::<(), toclip_data::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a ridge that is not positive, and without one for no more samples
    /// than features: then $\theta^\ast$ fits every target and leaves no noise.
    pub fn new(design: &Design, ridge: Option<f64>) -> Result<Self> {
        let (n, p) = (design.rows(), design.cols());
        if ridge.is_some_and(|r| !(r > 0.0 && r.is_finite())) {
            bail!("the ridge must be a positive share of ||K||, for example 1e-3");
        }
        if n <= p && ridge.is_none() {
            bail!(
                "{}: with {n} samples and {p} features, least squares fits every target and leaves \
                   no noise; use more samples, fewer features, or a ridge",
                design.name()
            );
        }
        let lambda = design.eigenvalues();
        let negligible = n.max(p) as f64 * f64::EPSILON;
        let without_variance = lambda.iter().filter(|l| **l <= negligible).count();
        let ridge = match ridge {
            Some(value) => Some(Ridge { value, without_variance }),
            None => (without_variance > 0).then_some(Ridge { value: RIDGE, without_variance }),
        };
        let rho = ridge.map_or(0.0, |r| r.value);
        let moment = design.project(&design.mean_of(design.targets()));
        let along: Vec<f64> = moment.iter().zip(lambda).map(|(m, l)| m / (l + rho)).collect();
        Ok(LeastSquares { optimum: design.lift(&along), ridge })
    }

    /// The residuals of samples: those of the fit, or others.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for samples with another number of features.
    pub fn residuals(&self, design: &Design) -> Result<Residuals> {
        if design.cols() != self.optimum.len() {
            let fitted = self.optimum.len();
            bail!("the samples have {} features, but the fit has {fitted}", design.cols());
        }
        let n = design.rows() as f64;
        let predicted = times(design.features(), &self.optimum);
        let pairs = predicted.iter().zip(design.targets());
        let offset = design.target_mean();
        let accuracy = design.binary.then(|| {
            let right = |(y, b): &(&f64, &f64)| (*y + offset) * (*b + offset) > 0.0;
            pairs.clone().filter(right).count() as f64 / n
        });
        let values: Vec<f64> = pairs.map(|(y, b)| b - y).collect();
        let mse = values.iter().map(|e| e * e).sum::<f64>() / n;
        let (_, sigma) = mean_and_deviation(&values);
        Ok(Residuals { values, mse, sigma, accuracy })
    }
}

/// $\theta_0 = \theta^\ast + $ `spread` $\cdot N(0, I)$, drawn from `seed`.
pub fn normal_start(optimum: &[f64], spread: f64, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // The features are drawn from the first stream.
    rng.set_stream(1);
    let draw = |rng: &mut ChaCha8Rng| -> f64 { StandardNormal.sample(rng) };
    optimum.iter().map(|t| t + spread * draw(&mut rng)).collect()
}
