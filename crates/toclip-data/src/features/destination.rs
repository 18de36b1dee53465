//! Where clipped SGD goes on real data, which is not least squares.

use super::pieces::times;
use super::{Design, LeastSquares};
use crate::{Error, Result};

/// Steps of the iteration; it converges by a factor of ten or so a step on tame data.
const MOST_STEPS: usize = 400;
/// Risk of the last step, as a share of the spread of the targets, at which it has converged.
const CONVERGED: f64 = 1e-20;

/// $\theta_c$, where the mean clipped gradient vanishes:
/// $\sum_k \psi_{c_k}(b_k - \langle x_k, \theta_c\rangle)\thinspace x_k = 0$ with $\psi_c$ clipping at $c$ and
/// $c_k = c\sqrt d/\Vert x_k\Vert $.
///
/// This is Huber's estimate. With noise that is symmetric and independent of the features it is
/// $\theta^\ast$ up to sampling error. Real residuals are neither: clipping moves the point that SGD
/// tends to, by a risk ([`bias`](Self::bias)) that no learning rate takes away. The theory of the
/// paper does not know it; [`OnePass`](super::OnePass) does.
#[derive(Debug, Clone, PartialEq)]
pub struct Destination {
    /// $\theta_c$.
    pub point: Vec<f64>,
    /// $b_k - \langle x_k, \theta_c\rangle$.
    pub residuals: Vec<f64>,
    /// $\frac12(\theta_c-\theta^\ast)^\top K(\theta_c-\theta^\ast)$, the risk that clipping at $c$
    /// leaves for ever.
    pub bias: f64,
    /// The share of samples that are not clipped there.
    pub unclipped: f64,
    /// $c$.
    pub c: f64,
}

impl Destination {
    /// The destination on these samples at the threshold $c$, from $\theta^\ast$ on.
    ///
    /// ```
    /// use toclip_data::{Design, Destination, Features, LeastSquares, Matrix, Samples};
    /// // b = x but for the outermost samples, which are outliers.
    /// let x: Vec<f64> = (-3..=3).map(f64::from).collect();
    /// let b = vec![-9., -2., -1., 0., 1., 2., 9.];
    /// let design =
    ///     Design::new(&Samples::new(Matrix::new(7, 1, x)?, b)?, Features::None, 1)?;
    /// let fit = LeastSquares::new(&design, None)?;
    /// let slope = |theta: &[f64]| theta[0] / design.norm().sqrt();
    /// assert!((slope(&fit.optimum) - 64.0 / 28.0).abs() < 1e-12);
    /// let clipped = Destination::new(&design, &fit, 0.5)?;
    /// assert!((slope(&clipped.point) - 1.2).abs() < 1e-6 && clipped.bias > 0.0);
    /// # Ok::<(), toclip_data::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] for a threshold that is not positive, and where so few samples are left
    /// unclipped that the iteration does not converge.
    pub fn new(design: &Design, fit: &LeastSquares, c: f64) -> Result<Self> {
        if !(c > 0.0) {
            return Err(Error::Invalid(format!("a threshold is positive, not {c}")));
        }
        let bounds = bounds(design, c);
        let rho = fit.ridge.map_or(0.0, |r| r.value).max(f64::EPSILON);
        let spread: f64 =
            design.targets().iter().map(|b| b * b).sum::<f64>() / design.rows() as f64;
        let mut at = State::new(design, &bounds, fit.optimum.clone());
        for _ in 0..MOST_STEPS {
            // With K as metric: the Hessian is K with the clipped samples left out, near μK.
            let along = design.project(&design.mean_of(&at.clipped(&bounds)));
            let lambda = design.eigenvalues();
            let step: Vec<f64> = along.iter().zip(lambda).map(|(g, l)| g / (l + rho)).collect();
            let slope: f64 = along.iter().zip(&step).map(|(g, s)| g * s).sum();
            if 0.5 * slope <= CONVERGED * spread * at.unclipped(&bounds).powi(2) {
                let residuals = at.residuals.clone();
                let gap: Vec<f64> = at.theta.iter().zip(&fit.optimum).map(|(a, b)| a - b).collect();
                let unclipped = at.unclipped(&bounds);
                return Ok(Destination {
                    bias: design.risk(&gap),
                    point: at.theta,
                    residuals,
                    unclipped,
                    c,
                });
            }
            let direction = design.lift(&step);
            let mut length = 1.0 / at.unclipped(&bounds).max(0.01);
            at = loop {
                let theta = at.theta.iter().zip(&direction).map(|(t, s)| t + length * s).collect();
                let next = State::new(design, &bounds, theta);
                // A step of 1 always descends: K bounds the Hessian. Below that it is rounding.
                if next.loss <= at.loss - 0.25 * length * slope || length < 0.5 {
                    break next;
                }
                length *= 0.6;
            };
        }
        Err(Error::Invalid(format!(
            "{}: the point that SGD clipped at {c} tends to was not found: {:.2}% of the samples are \
             left unclipped; take a larger threshold",
            design.name(),
            100.0 * at.unclipped(&bounds)
        )))
    }

    pub(super) fn bounds(&self, design: &Design) -> Vec<f64> {
        bounds(design, self.c)
    }
}

/// $c_k$: clipping the gradient at $c\sqrt d$ is clipping the residual there.
pub(super) fn bounds(design: &Design, c: f64) -> Vec<f64> {
    let root = design.dim().sqrt();
    let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    // A sample that is zero moves nothing, wherever it is clipped.
    let bound = |x: &[f64]| (c * root / norm(x)).min(f64::MAX);
    design.features().chunks_exact(design.cols()).map(bound).collect()
}

/// A point and Huber's loss there.
struct State {
    theta: Vec<f64>,
    residuals: Vec<f64>,
    loss: f64,
}

impl State {
    fn new(design: &Design, bounds: &[f64], theta: Vec<f64>) -> Self {
        let predicted = times(design.features(), &theta);
        let residuals: Vec<f64> =
            design.targets().iter().zip(predicted).map(|(b, y)| b - y).collect();
        let loss = |(e, c): (&f64, &f64)| match e.abs() {
            e if e <= *c => 0.5 * e * e,
            e => c * (e - 0.5 * c),
        };
        let loss = residuals.iter().zip(bounds).map(loss).sum::<f64>() / bounds.len() as f64;
        State { theta, residuals, loss }
    }

    fn clipped(&self, bounds: &[f64]) -> Vec<f64> {
        self.residuals.iter().zip(bounds).map(|(e, c)| e.clamp(-c, *c)).collect()
    }

    fn unclipped(&self, bounds: &[f64]) -> f64 {
        let inside = self.residuals.iter().zip(bounds).filter(|(e, c)| e.abs() <= **c).count();
        inside as f64 / bounds.len() as f64
    }
}
