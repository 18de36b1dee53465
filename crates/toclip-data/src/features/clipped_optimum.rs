//! The limit of clipped SGD on real data, and how far from least squares chance alone puts it.

use super::tall_matrix::{sum, times};
use super::{Design, LeastSquares, Residuals};
use crate::Result;
use crate::error::bail;

/// Steps of the iteration; each gains about a factor of ten on well-behaved data.
const MOST_STEPS: usize = 400;
/// Risk of the last step, as a share of the spread of the targets, at which it has converged.
const CONVERGED: f64 = 1e-20;
/// The standard normal quantile of 999 in 1000.
const SELDOM: f64 = 3.0902;

/// $\theta_c$, where the mean clipped gradient vanishes:
/// $\sum_k \psi_{c_k}(b_k - \langle x_k, \theta_c\rangle)\thinspace x_k = 0$ with $\psi_c$ clipping at $c$ and
/// $c_k = c\sqrt d/\Vert x_k\Vert $.
///
/// With a [ridge](LeastSquares::ridge) the sum is $n\rho\thinspace\theta_c$ instead of zero, so that
/// $\theta_\infty = \theta^\ast$: directions that no sample shows belong to neither estimate.
///
/// This is Huber's estimate. With noise that is symmetric and independent of the features it is
/// $\theta^\ast$ up to sampling error. Real residuals are neither: clipping moves the limit of SGD, by
/// a risk ([`bias`](Self::bias)) that no learning rate removes. The theory of the paper ignores it;
/// [`OnePass`](super::OnePass) includes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClippedOptimum {
    /// $\theta_c$.
    pub point: Vec<f64>,
    /// $b_k - \langle x_k, \theta_c\rangle$.
    pub residuals: Vec<f64>,
    /// $\frac12(\theta_c-\theta^\ast)^\top K(\theta_c-\theta^\ast)$, the risk that remains with clipping
    /// at $c$.
    pub bias: f64,
    /// The share of samples that are not clipped there.
    pub unclipped: f64,
    /// $c$.
    pub c: f64,
}

impl ClippedOptimum {
    /// The optimum for these samples at the threshold $c$, found by iteration from $\theta^\ast$.
    ///
    /// ```
    /// use toclip_data::{Design, ClippedOptimum, Features, LeastSquares, Matrix, Samples};
    /// // b = x but for the outermost samples, which are outliers.
    /// let x: Vec<f64> = (-3..=3).map(f64::from).collect();
    /// let b = vec![-9., -2., -1., 0., 1., 2., 9.];
    /// let design =
    ///     Design::new(&Samples::new(Matrix::new(7, 1, x)?, b)?, Features::None, 1)?;
    /// let fit = LeastSquares::new(&design, None)?;
    /// let slope = |theta: &[f64]| theta[0] / design.norm().sqrt();
    /// assert!((slope(&fit.optimum) - 64.0 / 28.0).abs() < 1e-12);
    /// let clipped = ClippedOptimum::new(&design, &fit, 0.5)?;
    /// assert!((slope(&clipped.point) - 1.2).abs() < 1e-6 && clipped.bias > 0.0);
    /// # Ok::<(), toclip_data::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a threshold that is not positive, and where so few samples are left
    /// unclipped that the iteration does not converge.
    pub fn new(design: &Design, fit: &LeastSquares, c: f64) -> Result<Self> {
        if !(c > 0.0) {
            bail!("the threshold must be positive, not {c}");
        }
        let bounds = bounds(design, c);
        let ridge = fit.ridge.map_or(0.0, |r| r.value);
        let rho = ridge.max(f64::EPSILON);
        let spread: f64 =
            design.targets().iter().map(|b| b * b).sum::<f64>() / design.rows() as f64;
        let mut at = State::new(design, &bounds, ridge, fit.optimum.clone());
        for _ in 0..MOST_STEPS {
            // With K as metric: the Hessian is K with the clipped samples left out, near μK.
            let mut gradient = design.mean_of(&at.clipped(&bounds));
            gradient.iter_mut().zip(&at.theta).for_each(|(g, t)| *g -= ridge * t);
            let along = design.project(&gradient);
            let lambda = design.eigenvalues();
            let step: Vec<f64> = along.iter().zip(lambda).map(|(g, l)| g / (l + rho)).collect();
            let slope: f64 = along.iter().zip(&step).map(|(g, s)| g * s).sum();
            if 0.5 * slope <= CONVERGED * spread * at.unclipped(&bounds).powi(2) {
                let gap: Vec<f64> = at.theta.iter().zip(&fit.optimum).map(|(a, b)| a - b).collect();
                let (bias, unclipped) = (design.risk(&gap), at.unclipped(&bounds));
                let State { theta: point, residuals, .. } = at;
                return Ok(ClippedOptimum { point, residuals, bias, unclipped, c });
            }
            let direction = design.lift(&step);
            let mut length = 1.0 / at.unclipped(&bounds).max(0.01);
            at = loop {
                let theta = at.theta.iter().zip(&direction).map(|(t, s)| t + length * s).collect();
                let next = State::new(design, &bounds, ridge, theta);
                // A step of 1 always descends: K bounds the Hessian. Below that it is rounding.
                if next.loss <= at.loss - 0.25 * length * slope || length < 0.5 {
                    break next;
                }
                length *= 0.6;
            };
        }
        bail!(
            "{}: the limit of SGD clipped at {c} was not found: only {:.2}% of the samples are not \
               clipped; use a larger threshold",
            design.name(),
            100.0 * at.unclipped(&bounds)
        )
    }
}

/// $c_k$: clipping the gradient at $c\sqrt d$ is clipping the residual there.
pub(super) fn bounds(design: &Design, c: f64) -> Vec<f64> {
    let root = design.dim().sqrt();
    let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    // A sample that is zero has no gradient, so its bound does not matter.
    let bound = |x: &[f64]| (c * root / norm(x)).min(f64::MAX);
    design.features().chunks_exact(design.cols()).map(bound).collect()
}

/// A point and Huber's loss there, with the ridge.
struct State {
    theta: Vec<f64>,
    residuals: Vec<f64>,
    loss: f64,
}

impl State {
    fn new(design: &Design, bounds: &[f64], ridge: f64, theta: Vec<f64>) -> Self {
        let predicted = times(design.features(), &theta);
        let residuals: Vec<f64> =
            design.targets().iter().zip(predicted).map(|(b, y)| b - y).collect();
        let loss = |(e, c): (&f64, &f64)| match e.abs() {
            e if e <= *c => 0.5 * e * e,
            e => c * (e - 0.5 * c),
        };
        let mut loss = residuals.iter().zip(bounds).map(loss).sum::<f64>() / bounds.len() as f64;
        if ridge > 0.0 {
            loss += 0.5 * ridge * theta.iter().map(|t| t * t).sum::<f64>();
        }
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

/// The [bias](ClippedOptimum::bias) by chance alone: if the noise were symmetric and independent of
/// the features.
///
/// Both $\theta_c$ and $\theta^\ast$ then miss the truth by chance, by means of influences of the
/// samples: $\theta_c - \theta^\ast \approx \frac1n\sum_k K^{-1} x_k \xi_k$ with
/// $\xi_k = \psi_{c_k}(\epsilon_k)/\mu - \epsilon_k$.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChanceBias {
    /// $\frac{1}{2n^2}\sum_k h_k\thinspace \xi_k^2$, with $h_k = x_k^\top K^{-1} x_k$.
    pub mean: f64,
    /// The 99.9% quantile: each of $p$ directions contributes the square of a
    /// Gaussian of the same variance, so that the bias over its mean is $\chi^2_p/p$, here by the
    /// cube of Wilson and Hilferty (1931). The mean is known to first order in $p/n$, which is added.
    pub limit: f64,
}

impl ChanceBias {
    /// At the threshold $c$, from the residuals `left` of these samples. If `fit` comes from
    /// `elsewhere`, from this number of other samples, the errors of the two estimates are
    /// independent.
    ///
    /// ```
    /// use toclip_data::{ChanceBias, Design, Features, LeastSquares, Matrix, Samples};
    /// let x: Vec<f64> = (0..400).map(|k| (f64::from(k) * 0.7).sin()).collect();
    /// let b = (0..200).map(|k| (f64::from(k) * f64::from(k)).cos()).collect();
    /// let design = Design::new(&Samples::new(Matrix::new(200, 2, x)?, b)?, Features::None, 1)?;
    /// let fit = LeastSquares::new(&design, None)?;
    /// let chance = ChanceBias::new(&design, &fit, &fit.residuals(&design)?, 0.5, None);
    /// // The 0.999 quantile of χ² with two degrees of freedom is 13.8.
    /// assert!((chance.limit / chance.mean - 13.8 / 2.0).abs() < 0.3);
    /// # Ok::<(), toclip_data::Error>(())
    /// ```
    pub fn new(
        design: &Design,
        fit: &LeastSquares,
        left: &Residuals,
        c: f64,
        elsewhere: Option<usize>,
    ) -> Self {
        let rho = fit.ridge.map_or(0.0, |r| r.value);
        let inverse = |l: &f64| if *l > 0.0 { 1.0 / (l + rho) } else { 0.0 };
        let inverse: Vec<f64> = design.eigenvalues().iter().map(inverse).collect();
        let directions: f64 = design.eigenvalues().iter().zip(&inverse).map(|(l, i)| l * i).sum();
        let (n, cols) = (design.rows() as f64, design.cols());
        let bounds = bounds(design, c);
        // Weighted by h: all, those unclipped, ψ², ψε, ε².
        let sums = sum(design.features(), cols, 5, &|first, x, part| {
            for (k, y) in design.rotated(x).chunks_exact(cols).enumerate() {
                let (e, c) = (left.values[first + k], bounds[first + k]);
                let h: f64 = y.iter().zip(&inverse).map(|(y, i)| y * y * i).sum();
                let clipped = e.clamp(-c, c);
                let free = f64::from(u8::from(e.abs() <= c));
                for (sum, value) in
                    part.iter_mut().zip([1.0, free, clipped * clipped, clipped * e, e * e])
                {
                    *sum += h * value;
                }
            }
        });
        let [mu, m2, shared, second] = [1, 2, 3, 4].map(|k| sums[k] / sums[0]);
        let half = 0.5 * directions;
        let mean = match elsewhere {
            None => half / n * (m2 / (mu * mu) - 2.0 * shared / mu + second).max(0.0),
            Some(rows) => half * (m2 / (mu * mu) / n + left.mse / rows as f64),
        };
        let part = 2.0 / (9.0 * directions.max(1.0));
        let ratio = (1.0 - part + SELDOM * part.sqrt()).powi(3);
        let fewest = elsewhere.map_or(n, |rows| n.min(rows as f64));
        ChanceBias { mean, limit: ratio * (1.0 + directions / fewest) * mean }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Features, Matrix, Samples};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    #[test]
    fn chance_is_seldom_passed() {
        let (rows, cols) = (1500, 12);
        for held_out in [false, true] {
            let mut rng = ChaCha8Rng::seed_from_u64(3);
            let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
            let (mut passed, mut ratios) = (0, 0.0);
            for draw in 0..300 {
                let x: Vec<f64> = (0..rows * cols).map(|_| normal()).collect();
                let b: Vec<f64> = (0..rows).map(|_| normal()).collect();
                let samples = Samples::new(Matrix::new(rows, cols, x).unwrap(), b).unwrap();
                let whole = Design::new(&samples, Features::None, 1).unwrap();
                let (train, test) = match held_out {
                    true => whole.halves(draw).unwrap(),
                    false => (whole.clone(), whole),
                };
                let elsewhere = held_out.then(|| train.rows());
                let fit = LeastSquares::new(&train, None).unwrap();
                let bias = ClippedOptimum::new(&test, &fit, 0.5).unwrap().bias;
                let left = fit.residuals(&test).unwrap();
                let chance = ChanceBias::new(&test, &fit, &left, 0.5, elsewhere);
                ratios += bias / chance.mean / 300.0;
                passed += usize::from(bias > chance.limit);
            }
            println!("held out {held_out}: {ratios}, {passed}");
            // The mean of 300 times χ²_12/12 has standard deviation 0.024, and p/n is 0.016.
            assert!((ratios - 1.0).abs() < 0.1, "{ratios}");
            // More than three pass with probability 3e-4.
            assert!(passed <= 3, "{passed}");
        }
    }

    /// 500 random features of three inputs have directions that no sample shows: K is singular.
    #[test]
    fn with_a_ridge_the_limit_is_found_and_is_least_squares_without_clipping() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let x: Vec<f64> = (0..2000 * 3).map(|_| normal()).collect();
        let b: Vec<f64> = x.chunks(3).map(|x| x[0] - 0.5 * x[1] + 0.3 * normal()).collect();
        let samples = Samples::new(Matrix::new(2000, 3, x).unwrap(), b).unwrap();
        let design = Design::new(&samples, "tanh:500".parse().unwrap(), 1).unwrap();
        let fit = LeastSquares::new(&design, None).unwrap();
        assert!(fit.ridge.is_some());
        let loose = ClippedOptimum::new(&design, &fit, 1e6).unwrap();
        assert!(loose.bias < 1e-18 && loose.unclipped == 1.0, "{}", loose.bias);
        let tight = ClippedOptimum::new(&design, &fit, 0.5).unwrap();
        let left = fit.residuals(&design).unwrap();
        let chance = ChanceBias::new(&design, &fit, &left, 0.5, None);
        // The noise is symmetric and independent of the features.
        assert!(tight.bias > 0.0 && tight.bias < chance.limit, "{} {chance:?}", tight.bias);
    }

    #[test]
    fn with_many_directions_little_is_left_to_chance() {
        let (rows, cols) = (3000, 200);
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let x: Vec<f64> = (0..rows * cols).map(|_| normal()).collect();
        let b: Vec<f64> = (0..rows).map(|_| normal()).collect();
        let samples = Samples::new(Matrix::new(rows, cols, x).unwrap(), b).unwrap();
        let design = Design::new(&samples, Features::None, 1).unwrap();
        let fit = LeastSquares::new(&design, None).unwrap();
        let left = fit.residuals(&design).unwrap();
        let chance = ChanceBias::new(&design, &fit, &left, 0.5, None);
        let bias = ClippedOptimum::new(&design, &fit, 0.5).unwrap().bias;
        assert!(bias < chance.limit && chance.limit < 1.5 * chance.mean, "{bias} {chance:?}");
    }
}
