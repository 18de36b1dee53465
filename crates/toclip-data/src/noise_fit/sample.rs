//! Residuals, checked, sorted and dealt into folds.

use super::random::Random;
use crate::{Error, Result};

/// Fewer residuals than this say nothing about the shape of a law.
const FEWEST: usize = 20;
/// Sizes, and ratios of sizes, beyond which squares would leave the range of numbers.
const LARGEST: f64 = 1e100;
/// A fit of many passes sees at most so many residuals; its scale then has a standard error below
/// 1%.
const MOST_FITTED: usize = 100_000;

/// Checked residuals in ascending order.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) values: Vec<f64>,
    /// The middle.
    pub(super) median: f64,
    /// The standard deviation a normal law with the same quartiles would have, or the standard
    /// deviation where the quartiles are equal: a unit that outliers do not move.
    pub(super) spread: f64,
    /// The smallest scale any law may have. Without it a component of a mixture could shrink onto
    /// one residual, where the likelihood has no bound. Neighbours among $n$ residuals are
    /// typically some spread/$n$ apart, so a narrower component could be chance.
    pub(super) floor: f64,
}

impl Sample {
    pub(super) fn new(residuals: &[f64]) -> Result<Self> {
        let n = residuals.len();
        if n < FEWEST {
            return Err(Error::Invalid(format!(
                "{n} residuals are too few to fit noise to; give at least {FEWEST}"
            )));
        }
        if let Some(i) = residuals.iter().position(|e| !e.is_finite()) {
            return Err(Error::Invalid(format!(
                "residual number {} is {}; all must be finite",
                i + 1,
                residuals[i]
            )));
        }
        if let Some(i) = residuals.iter().position(|e| e.abs() > LARGEST) {
            return Err(Error::Invalid(format!(
                "residual number {} is {:e}; rescale the targets so that sizes are below 1e100",
                i + 1,
                residuals[i]
            )));
        }
        let mut values = residuals.to_vec();
        values.sort_unstable_by(f64::total_cmp);
        let (low, high) = (values[0], values[n - 1]);
        if low == high {
            return Err(Error::Invalid(format!(
                "all {n} residuals are {low}: there is no noise to fit (family `none` is no noise)"
            )));
        }
        let quartiles = (quantile(&values, 0.75) - quantile(&values, 0.25)) / 1.349;
        let spread = if quartiles > 0.0 { quartiles } else { deviation(&values) };
        if !(spread >= 1.0 / LARGEST && (high - low) / spread <= LARGEST) {
            return Err(Error::Invalid(format!(
                "the residuals spread over more than a hundred orders of magnitude, or have a \
                 spread ({spread:e}) below 1e-100; rescale the targets"
            )));
        }
        let floor = spread * f64::max(1e-3, 1.0 / n as f64);
        Ok(Sample { median: quantile(&values, 0.5), values, spread, floor })
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// A fold for each residual, as equal in number as can be.
    pub(super) fn deal(&self, folds: usize, seed: u64) -> Vec<usize> {
        let mut fold: Vec<usize> = (0..self.len()).map(|i| i % folds).collect();
        Random::new(seed).shuffle(&mut fold);
        fold
    }

    /// The residuals outside one fold. Units and floor stay those of the whole sample.
    pub(super) fn without(&self, fold: &[usize], k: usize) -> Sample {
        let kept = self.values.iter().zip(fold).filter(|&(_, &f)| f != k);
        Sample { values: kept.map(|(&x, _)| x).collect(), ..*self }
    }

    /// The residuals that a fit of many passes looks at: all, or every so manieth in order of size,
    /// which keeps the shape of the law.
    pub(super) fn fitted(&self) -> Vec<f64> {
        let n = self.len();
        if n <= MOST_FITTED {
            return self.values.clone();
        }
        (0..MOST_FITTED).map(|i| self.values[(2 * i + 1) * n / (2 * MOST_FITTED)]).collect()
    }

    /// Says so where [`Sample::fitted`] is not all.
    pub(super) fn fitted_note(&self) -> Option<String> {
        let n = self.len();
        (n > MOST_FITTED).then(|| {
            format!(
                "fitted to {MOST_FITTED} of {n} residuals, evenly by rank; likelihoods are of all"
            )
        })
    }
}

/// A quantile of sorted values, interpolated.
pub(super) fn quantile(sorted: &[f64], p: f64) -> f64 {
    let at = p * (sorted.len() - 1) as f64;
    let low = at.floor() as usize;
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (at - low as f64) * (sorted[high] - sorted[low])
}

/// The standard deviation, with divisor n.
pub(super) fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().map(|x| x / n).sum::<f64>();
    (values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_sample_is_refused_in_a_sentence() {
        let says = |values: &[f64]| Sample::new(values).unwrap_err().to_string();
        let mut good: Vec<f64> = (0..30).map(f64::from).collect();
        assert!(says(&good[..19]).starts_with("19 residuals are too few"));
        assert!(says(&[]).starts_with("0 residuals are too few"));
        assert!(says(&[0.5; 30]).contains("all 30 residuals are 0.5"));
        good[4] = f64::NAN;
        assert!(says(&good).contains("residual number 5 is NaN"));
        good[4] = f64::NEG_INFINITY;
        assert!(says(&good).contains("residual number 5 is -inf"));
        good[4] = 1e101;
        assert!(says(&good).contains("number 5 is 1e101"));
        let tiny: Vec<f64> = (0..30).map(|i| f64::from(i) * 1e-110).collect();
        assert!(says(&tiny).contains("below 1e-100"));
    }

    #[test]
    fn folds_are_even_and_keep_everything() {
        let values: Vec<f64> = (0..103).map(f64::from).collect();
        let sample = Sample::new(&values).unwrap();
        let fold = sample.deal(5, 7);
        let sizes: Vec<usize> = (0..5).map(|k| fold.iter().filter(|&&f| f == k).count()).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 103);
        assert!(sizes.iter().all(|s| (20..=21).contains(s)));
        assert_eq!(sample.without(&fold, 2).len(), 103 - sizes[2]);
    }

    #[test]
    fn the_spread_is_the_standard_deviation_of_a_normal_sample_and_ignores_outliers() {
        // Normal quantiles through the logistic approximation would not do: ±0.6745 are exact.
        let mut values = vec![-0.6745, 0.6745, 0.0, -0.6745, 0.6745];
        values = values.repeat(10);
        let sample = Sample::new(&values).unwrap();
        assert!((sample.spread - 1.0).abs() < 1e-4, "{}", sample.spread);
        values.push(1e6);
        assert!((Sample::new(&values).unwrap().spread - 1.0).abs() < 1e-4);
        // More than half of them equal.
        let mut tied = vec![0.0; 70];
        tied.extend([3.0; 20]);
        assert!((Sample::new(&tied).unwrap().spread - deviation(&tied)).abs() < 1e-15);
    }
}
