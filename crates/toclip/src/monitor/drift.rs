//! Whether the law of the norms changed while it was watched.

use super::block::Whole;
use super::interval::variance;
use super::table::Table;
use serde::{Deserialize, Serialize};

/// Whether the law of the norms, relative to their scale, changed among the remembered steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// The probability of sums as far from their mean as these, had the law been the same
    /// throughout.
    pub p_value: f64,
    /// The scale of the last quarter of the steps over that of the first: its own drift, which
    /// thresholds that are multiples of it follow.
    pub scale_change: f64,
    /// The correlation of $\ln u$ from one step to the next, $u$ being the norm over its scale.
    ///
    /// Norms that swing slowly, with a correlation near one, are not noise about a scale: the scale
    /// itself moves, faster than its [memory](super::Scale) follows. CCC then counts the swing as noise
    /// that clipping could take away, which flatters it; a shorter memory shows how much.
    pub correlation: f64,
}

/// Below this the law is said to have changed.
pub(super) const LEVEL: f64 = 0.01;

impl Drift {
    /// Whether the law is said to have changed, which happens by chance in one of a hundred cases
    /// at most.
    pub fn found(&self) -> bool {
        self.p_value < LEVEL
    }

    pub(super) fn new(table: &Table) -> Self {
        let n = table.steps();
        let counts = &table.count;
        let p = |sums: Vec<f64>| {
            let mean = sums.iter().sum::<f64>() / n;
            let shares: Vec<f64> = sums.iter().zip(counts).map(|(s, k)| s - mean * k).collect();
            bridge(&shares)
        };
        let mean = table.whole.iter().map(|w| w.log).sum::<f64>() / n;
        let place = p(table.whole.iter().map(|w| w.log).collect());
        let spread = |w: &Whole| w.log_square - 2.0 * mean * w.log + mean * mean * w.count;
        let width = p(table.whole.iter().map(spread).collect());
        // Two tests: the smaller of their values, doubled.
        let sum = |f: fn(&Whole) -> f64| table.whole.iter().map(f).sum::<f64>();
        let squares = sum(|w| w.log_square) / n - mean * mean;
        let products = sum(|w| w.log_before) / n - mean * mean;
        Drift {
            p_value: (2.0 * place.min(width)).min(1.0),
            scale_change: scale_change(table),
            correlation: if squares > 0.0 { (products / squares).clamp(-1.0, 1.0) } else { 0.0 },
        }
    }
}

/// The probability that a Brownian bridge goes as far from zero as the partial sums of `shares`,
/// which sum to zero (Kolmogorov's law). Stretches are few, so that the sums go less far than the
/// bridge: the probability is on the large side.
fn bridge(shares: &[f64]) -> f64 {
    let error = variance(shares).sqrt();
    if !(error > 0.0) {
        return 1.0;
    }
    let partial = shares.iter().scan(0.0, |sum, s| {
        *sum += s;
        Some(*sum)
    });
    let reach = partial.fold(0.0_f64, |far, sum| far.max(sum.abs())) / error;
    let term =
        |k: i32| 2.0 * f64::powi(-1.0, k - 1) * (-2.0 * f64::from(k * k) * reach * reach).exp();
    if reach < 0.2 { 1.0 } else { (1..=20).map(term).sum::<f64>().clamp(0.0, 1.0) }
}

fn scale_change(table: &Table) -> f64 {
    let quarter = (table.blocks() / 4).max(1);
    let mean = |blocks: &[Whole]| {
        let sum = |f: fn(&Whole) -> f64| blocks.iter().map(f).sum::<f64>();
        sum(|w| w.log_scale + w.log) / sum(|w| w.count)
    };
    match (table.whole.first_chunk::<1>(), table.blocks()) {
        (Some(_), k) => (mean(&table.whole[k - quarter..]) - mean(&table.whole[..quarter])).exp(),
        (None, _) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kolmogorovs_table() {
        // Alternate signs so that neighbours do not add to the variance: error² = K/(K−1) Σ s².
        let flat = [1.0, -1.0].repeat(16);
        assert!(bridge(&flat) > 0.99);
        let step: Vec<f64> = (0..32).map(|k| if k < 16 { 1.0 } else { -1.0 }).collect();
        assert!(bridge(&step) < 0.2);
        assert_eq!(bridge(&[0.0; 8]), 1.0);
        // 1.358 is exceeded with probability 0.05, 1.628 with 0.01: by hand, with K = 2 where the
        // one partial sum is s, the variance 4 s² and so the reach one half.
        let half: f64 = bridge(&[1.0, -1.0]);
        assert!((half - 0.963_945_243_664_8).abs() < 1e-9, "{half}");
    }
}
