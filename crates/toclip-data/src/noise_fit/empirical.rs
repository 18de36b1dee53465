//! The residuals themselves, scored by a smooth density.

use super::Fitted;
use super::bins::{Bin, bins};
use super::closed_form::ln_normal;
use super::sample::{Sample, deviation};
use crate::statistics::thinned;
use std::f64::consts::PI;
use toclip::noise::Empirical;

/// The most residuals by which a bandwidth is chosen.
const SCORED: usize = 2000;
/// Widest bin in bandwidths: the density then differs from that of the residuals one by one by
/// less than a thousandth, up to two bandwidths outside of them.
const WIDEST_BIN: f64 = 0.0625;
/// Distance in bandwidths beyond which a kernel is negligible.
const REACH: f64 = 8.0;

/// A Gaussian kernel estimate with a faint Cauchy distribution below it.
#[derive(Debug)]
struct KernelEstimate {
    bins: Vec<Bin>,
    count: f64,
    bandwidth: f64,
    median: f64,
    spread: f64,
}

/// The residuals, scored by the kernel estimate with the bandwidth of best leave-one-out likelihood.
///
/// $$ f(x) = \frac{1}{n+1}\Big\[\sum_i \tfrac1h\varphi\big(\tfrac{x - e_i}{h}\big) +
/// \tfrac{1}{\pi s}\big(1 + \tfrac{(x - m)^2}{s^2}\big)^{-1}\Big\] $$
/// The last term, with the median $m$ and the spread $s$, is worth one residual: without it a
/// single residual far from all others would make the likelihood zero. Equal residuals are left out
/// together, since ties would otherwise favour a bandwidth of zero.
pub(super) fn fit(sample: &Sample) -> Fitted {
    let density = kernel_estimate(sample);
    Fitted::new(sample.len(), Empirical::new(&sample.values), move |x| density.ln_density(x))
}

fn kernel_estimate(sample: &Sample) -> KernelEstimate {
    let n = sample.len() as f64;
    // Silverman's rule of thumb (1986, eq. 3.31), too wide where there are several peaks.
    let rule = 0.9 * sample.spread.min(deviation(&sample.values)) * n.powf(-0.2);
    let widths = (-2..=8).map(|k| (rule * 0.5f64.powf(0.5 * f64::from(k))).max(sample.floor));
    let scored = widths.map(|h| {
        let density = KernelEstimate::new(sample, h);
        (density.left_out(&sample.values), density)
    });
    match scored.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((_, density)) => density,
        None => KernelEstimate::new(sample, rule),
    }
}

impl KernelEstimate {
    fn new(sample: &Sample, bandwidth: f64) -> Self {
        Self {
            bins: bins(&sample.values, WIDEST_BIN * bandwidth, sample.len()),
            count: sample.len() as f64,
            bandwidth,
            median: sample.median,
            spread: sample.spread,
        }
    }

    /// The sum of kernels, $\sum_i \varphi((x - e_i)/h)/h$.
    fn kernels(&self, x: f64) -> f64 {
        let h = self.bandwidth;
        let from = self.bins.partition_point(|c| c.at < x - REACH * h);
        let near = self.bins[from..].iter().take_while(|c| c.at <= x + REACH * h);
        near.map(|c| c.count * ln_normal((x - c.at) / h).exp()).sum::<f64>() / h
    }

    fn faint(&self, x: f64) -> f64 {
        let z = (x - self.median) / self.spread;
        1.0 / (PI * self.spread * (1.0 + z * z))
    }

    /// The log-likelihood of some residuals, each without itself and its equals.
    fn left_out(&self, sorted: &[f64]) -> f64 {
        let own = |x: f64| {
            let first = sorted.partition_point(|&y| y < x);
            let ties = sorted[first..].partition_point(|&y| y <= x) as f64;
            let mine = ties * ln_normal(0.0).exp() / self.bandwidth;
            // Merging into bins moves residuals a little, so the difference may be negative.
            let others = (self.kernels(x) - mine).max(0.0);
            ((others + self.faint(x)) / (self.count - ties + 1.0)).ln()
        };
        thinned(sorted, SCORED).map(own).sum()
    }

    fn ln_density(&self, x: f64) -> f64 {
        ((self.kernels(x) + self.faint(x)) / (self.count + 1.0)).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_density_is_that_of_the_formula_and_adds_up_to_one() {
        let values: Vec<f64> = (0..400).map(|i| (f64::from(i) * 0.618).fract() - 0.5).collect();
        let sample = Sample::new(&values).unwrap();
        let density = KernelEstimate::new(&sample, 0.1);
        for x in [-0.6, 0.0, 0.3, 4.0] {
            let direct: f64 =
                values.iter().map(|e| ln_normal((x - e) / 0.1).exp() / 0.1).sum::<f64>();
            let want = (direct + density.faint(x)) / 401.0;
            let got = density.ln_density(x).exp();
            assert!((got / want - 1.0).abs() < 1e-3, "{x}: {got} {want}");
        }
        let (steps, end) = (200_000, 2000.0);
        let dx = 2.0 * end / f64::from(steps);
        let sum: f64 = (0..steps)
            .map(|i| density.ln_density(-end + (f64::from(i) + 0.5) * dx).exp() * dx)
            .sum();
        // The Cauchy distribution has 2s/(π·2000) of its mass, itself 1/401, outside.
        assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    }

    #[test]
    fn peaks_get_a_narrow_bandwidth_and_ties_do_not() {
        let two: Vec<f64> = (0..1000)
            .map(|i| f64::from(i % 2) * 10.0 + (f64::from(i) * 0.618_034).fract())
            .collect();
        let density = kernel_estimate(&Sample::new(&two).unwrap());
        assert!(density.bandwidth < 0.3, "{}", density.bandwidth);
        assert!(density.ln_density(5.0).exp() < 1e-4 && density.ln_density(0.5).exp() > 0.3);
        let atoms = [[-1.0, 1.0]; 50].concat();
        assert!(kernel_estimate(&Sample::new(&atoms).unwrap()).bandwidth > 0.1);
    }
}
