//! The clipped residual averaged over the error of the model, sample by sample.

use super::{Design, Destination};
use rayon::prelude::*;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Risks at which the drive is computed, at equal ratios.
const POINTS: usize = 24;
/// The smallest of them, as a share of the largest.
const SMALLEST: f64 = 1e-4;

/// $E\thinspace \psi_c(X)$ of $X \sim N(m, s^2)$, where $\psi_c$ clips at $c$.
pub fn mean_clipped(m: f64, s: f64, c: f64) -> f64 {
    if s == 0.0 || c.is_infinite() {
        return m.clamp(-c, c);
    }
    // E max(0, X - m - a): what a bound at a above the mean cuts off.
    let over = |a: f64| {
        let y = a / s;
        s * (-0.5 * y * y).exp() / (2.0 * PI).sqrt() - a * 0.5 * libm::erfc(y * FRAC_1_SQRT_2)
    };
    m - over(c - m) + over(c + m)
}

/// $g(R) = \frac1n\sum_k x_k\thinspace E\thinspace \psi_{c_k}(\epsilon_k + \sqrt{2R}\thinspace z)$ in the
/// eigenbasis, with residuals from the destination: zero at $R = 0$.
pub struct Drive {
    largest: f64,
    /// At `largest` times [`SMALLEST`], …, 1.
    table: Vec<Vec<f64>>,
}

impl Drive {
    /// For risks up to that of the start, and twice as much.
    pub fn new(design: &Design, destination: &Destination, start: f64) -> Self {
        let largest = (2.0 * start).max(f64::MIN_POSITIVE);
        let bounds = destination.bounds(design);
        let at = |k: usize| {
            let share = SMALLEST.powf(1.0 - k as f64 / (POINTS - 1) as f64);
            let spread = (2.0 * share * largest).sqrt();
            let mean: Vec<f64> = destination
                .residuals
                .par_iter()
                .zip(&bounds)
                .map(|(e, c)| mean_clipped(*e, spread, *c))
                .collect();
            design.project(&design.mean_of(&mean))
        };
        Drive { largest, table: (0..POINTS).map(at).collect() }
    }

    pub fn at(&self, risk: f64) -> Vec<f64> {
        let share = (risk / self.largest).min(1.0);
        if share <= SMALLEST {
            return self.table[0].iter().map(|g| g * share / SMALLEST).collect();
        }
        let place = (1.0 - share.ln() / SMALLEST.ln()) * (POINTS - 1) as f64;
        let k = (place as usize).min(POINTS - 2);
        let w = place - k as f64;
        let pairs = self.table[k].iter().zip(&self.table[k + 1]);
        pairs.map(|(a, b)| (1.0 - w) * a + w * b).collect()
    }
}

/// Residuals, thinned: what they are used for is a small correction.
pub struct Common(Vec<f64>);

impl Common {
    const MOST: usize = 500;

    pub fn new(residuals: &[f64]) -> Self {
        let mut sorted = residuals.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (n, count) = (sorted.len(), sorted.len().min(Self::MOST));
        // The middles of equal shares.
        Common((0..count).map(|k| sorted[(2 * k + 1) * n / (2 * count)]).collect())
    }

    /// $q = \sqrt{E\[E\[\psi_c(X) | \epsilon\]^2\]}$ at risk $R$.
    pub fn root(&self, risk: f64, c: f64) -> f64 {
        let spread = (2.0 * risk).sqrt();
        let square = |e: &f64| mean_clipped(*e, spread, c).powi(2);
        (self.0.iter().map(square).sum::<f64>() / self.0.len() as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_a_clipped_normal_is_that_of_its_integral() {
        for (m, s, c) in [(0.3, 0.5, 0.4), (-2.0, 0.7, 1.0), (0.0, 1.0, 0.5), (5.0, 0.1, 9.0)] {
            // Midpoint rule over ten standard deviations.
            let steps = 100_000;
            let width = 20.0 * s / f64::from(steps);
            let point = |k: i32| m - 10.0 * s + (f64::from(k) + 0.5) * width;
            let density = |x: f64| (-0.5 * ((x - m) / s).powi(2)).exp() / (s * (2.0 * PI).sqrt());
            let direct: f64 =
                (0..steps).map(point).map(|x| width * density(x) * x.clamp(-c, c)).sum();
            assert!((mean_clipped(m, s, c) - direct).abs() < 1e-8, "{m} {s} {c}");
        }
        assert_eq!(mean_clipped(3.0, 0.0, 1.0), 1.0);
    }

    #[test]
    fn thinned_residuals_keep_their_second_moment() {
        let values: Vec<f64> = (0..20_000).map(|k| (f64::from(k) * 0.7).sin()).collect();
        // A sine has mean square 1/2; unclipped and without spread, q² is that.
        let square = Common::new(&values).root(0.0, f64::INFINITY).powi(2);
        assert!((square - 0.5).abs() < 1e-3, "{square}");
    }
}
