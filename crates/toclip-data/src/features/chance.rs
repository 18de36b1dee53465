//! How far from least squares chance alone makes clipped SGD go.

use super::destination::bounds;
use super::pieces::sum;
use super::{Design, LeastSquares, Residuals};

/// The standard normal quantile of 999 in 1000.
const SELDOM: f64 = 3.0902;

/// The [bias](super::Destination::bias) of a destination were noise symmetric and independent of the
/// features.
///
/// Both $\theta_c$ and $\theta^\ast$ then miss the truth by chance, by means of influences of the
/// samples: $\theta_c - \theta^\ast \approx \frac1n\sum_k K^{-1} x_k \xi_k$ with
/// $\xi_k = \psi_{c_k}(\epsilon_k)/\mu - \epsilon_k$.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chance {
    /// $\frac{1}{2n^2}\sum_k h_k\thinspace \xi_k^2$, with $h_k = x_k^\top K^{-1} x_k$.
    pub mean: f64,
    /// What it passes in one case of a thousand: each of $p$ directions contributes the square of a
    /// Gaussian of the same variance, so that the bias over its mean is $\chi^2_p/p$, here by the
    /// cube of Wilson and Hilferty (1931). The mean is known to first order in $p/n$, which is added.
    pub limit: f64,
}

impl Chance {
    /// At the threshold $c$, from what `fit` left of these samples. Where it was fitted `elsewhere`,
    /// on other samples of this number, the two estimates do not share their errors.
    ///
    /// ```
    /// use toclip_data::{Chance, Design, Features, LeastSquares, Matrix, Samples};
    /// let x: Vec<f64> = (0..400).map(|k| (f64::from(k) * 0.7).sin()).collect();
    /// let b = (0..200).map(|k| (f64::from(k) * f64::from(k)).cos()).collect();
    /// let design = Design::new(&Samples::new(Matrix::new(200, 2, x)?, b)?, Features::None, 1)?;
    /// let fit = LeastSquares::new(&design, None)?;
    /// let chance = Chance::new(&design, &fit, &fit.residuals(&design)?, 0.5, None);
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
        Chance { mean, limit: ratio * (1.0 + directions / fewest) * mean }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Destination, Features, Matrix, Samples};
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
                let bias = Destination::new(&test, &fit, 0.5).unwrap().bias;
                let left = fit.residuals(&test).unwrap();
                let chance = Chance::new(&test, &fit, &left, 0.5, elsewhere);
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
        let chance = Chance::new(&design, &fit, &left, 0.5, None);
        let bias = Destination::new(&design, &fit, 0.5).unwrap().bias;
        assert!(bias < chance.limit && chance.limit < 1.5 * chance.mean, "{bias} {chance:?}");
    }
}
