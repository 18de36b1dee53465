//! Moments of the clipped residual, averaged over the error of the model.

use super::clipped_optimum::bounds;
use super::tall_matrix::sum;
use super::{ClippedOptimum, Design};
use crate::statistics::thinned;
use std::f64::consts::{FRAC_1_SQRT_2, PI};
use toclip::{Moments, clipped_normal};

/// Risks at which the moments are computed in each decade, at equal ratios.
const POINTS: usize = 6;
/// Decades of risks: as many as lie above noise and threshold, within these bounds.
const DECADES: (f64, f64) = (4.0, 10.0);

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

/// The moments along one eigenvector at one risk: $\mu_i$, the share of the descent; $m_{2,i}$, the
/// mean square of the clipped residual; $g_i$, the mean clipped gradient at the clipped optimum.
pub type AlongMode = [f64; 3];

/// Moments of the samples clipped at $c_k$, their residuals $\epsilon_k$ at the clipped optimum smeared
/// by the error of the model, $\sqrt{2R}\thinspace z$:
/// $\mu_i(R) = \frac{1}{n\lambda_i}\sum_k x_{ki}^2\thinspace P(|\epsilon_k + \sqrt{2R}\thinspace z| \le c_k)$, likewise
/// $m_{2,i}$ with $\min(\cdot^2, c_k^2)$, and $g_i(R) = \frac1n\sum_k x_{ki} E\thinspace
/// \psi_{c_k}(\epsilon_k + \sqrt{2R}\thinspace z)$.
pub struct ClippedMoments {
    /// Zero, and increasing from the second on.
    risks: Vec<f64>,
    /// All eigenvectors, at these risks.
    table: Vec<Vec<AlongMode>>,
}

impl ClippedMoments {
    /// For risks up to twice that of the start.
    pub fn new(design: &Design, optimum: &ClippedOptimum, start: f64) -> Self {
        let bounds = bounds(design, optimum.c);
        let risks = risks(2.0 * start, &optimum.residuals, &bounds);
        let spreads: Vec<f64> = risks.iter().map(|r| (2.0 * r).sqrt()).collect();
        let p = design.cols();
        let width = 3 * risks.len() * p;
        let total = sum(design.features(), p, width, &|first, x, part| {
            for (k, y) in design.rotated(x).chunks_exact(p).enumerate() {
                let (e, c) = (optimum.residuals[first + k], bounds[first + k]);
                for (spread, part) in spreads.iter().zip(part.chunks_exact_mut(3 * p)) {
                    let Moments { mu, m2 } = clipped_normal(e, *spread, c);
                    let mean = mean_clipped(e, *spread, c);
                    for (part, y) in part.chunks_exact_mut(3).zip(y) {
                        part[0] += mu * y * y;
                        part[1] += m2 * y * y;
                        part[2] += mean * y;
                    }
                }
            }
        });
        let n = design.rows() as f64;
        // A direction without variance never changes, so its moments do not matter.
        let over = |x: f64, l: f64| if l > 0.0 { x / (n * l) } else { 0.0 };
        let each = |at: &[f64]| {
            let modes = at.chunks_exact(3).zip(design.eigenvalues());
            modes.map(|(at, l)| [over(at[0], *l), over(at[1], *l), at[2] / n]).collect()
        };
        ClippedMoments { risks, table: total.chunks_exact(3 * p).map(each).collect() }
    }

    /// Linear in the risk between those of the table, as moments are where nothing is clipped.
    pub fn at(&self, risk: f64) -> impl Iterator<Item = AlongMode> {
        let last = self.risks.len() - 1;
        let k = self.risks.partition_point(|r| *r <= risk).clamp(1, last);
        let (low, high) = (self.risks[k - 1], self.risks[k]);
        let w = ((risk - low) / (high - low)).clamp(0.0, 1.0);
        let between = move |(a, b): (&AlongMode, &AlongMode)| {
            std::array::from_fn(|j| (1.0 - w) * a[j] + w * b[j])
        };
        self.table[k - 1].iter().zip(&self.table[k]).map(between)
    }
}

/// Zero, and risks at equal ratios from where the error of the model no longer matters beside
/// noise and threshold.
fn risks(largest: f64, residuals: &[f64], bounds: &[f64]) -> Vec<f64> {
    let largest = largest.max(f64::MIN_POSITIVE);
    let square = |(e, c): (&f64, &f64)| e.abs().min(*c).powi(2);
    let noise = residuals.iter().zip(bounds).map(square).sum::<f64>() / bounds.len() as f64;
    let decades = (largest / (0.01 * noise)).log10().clamp(DECADES.0, DECADES.1);
    let steps = (decades * POINTS as f64).ceil();
    let risk = |k: usize| largest * 10_f64.powf((k as f64 - steps) / POINTS as f64);
    std::iter::once(0.0).chain((0..=steps as usize).map(risk)).collect()
}

/// What a sample has in common with itself at another time, from a subset of the residuals: it is
/// used for a small correction.
pub struct SharedPart(Vec<f64>);

impl SharedPart {
    const MOST: usize = 500;

    pub fn new(residuals: &[f64]) -> Self {
        let mut sorted = residuals.to_vec();
        sorted.sort_by(f64::total_cmp);
        SharedPart(thinned(&sorted, Self::MOST).collect())
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
        let square = SharedPart::new(&values).root(0.0, f64::INFINITY).powi(2);
        assert!((square - 0.5).abs() < 1e-3, "{square}");
    }
}
