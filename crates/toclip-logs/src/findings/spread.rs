//! The spread of a series about its running median.

use super::{median, quantile};

/// The standard deviation of the upper half of some values: their 84th percentile over the median,
/// which outliers do not move. Zero for fewer than ten values.
pub(super) fn upper_spread(mut values: Vec<f64>) -> f64 {
    if values.len() < 10 {
        return 0.0;
    }
    values.sort_by(f64::total_cmp);
    (quantile(&values, 0.84) - quantile(&values, 0.5)).max(0.0)
}

/// The standard deviation of independent noise in a series, from its second differences, which a slope
/// does not move.
pub(super) fn noise(values: &[f64]) -> f64 {
    let bends = values.windows(3).map(|w| (w[0] - 2.0 * w[1] + w[2]).abs()).collect();
    // For a normal distribution the median of |x| is 0.6745, and three terms have variance 1 + 4 + 1.
    median(bends).unwrap_or(0.0) / 0.6745 / 6.0_f64.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn noise_does_not_see_a_slope(slope in -5.0..5.0_f64) {
            let line: Vec<f64> = (0..50).map(|i| slope * f64::from(i)).collect();
            prop_assert!(noise(&line) < 1e-9);
        }
    }

    #[test]
    fn the_spread_of_normal_values_is_their_standard_deviation() {
        use rand::SeedableRng;
        use rand_distr::Distribution;
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let mut values: Vec<f64> =
            (0..4000).map(|_| rand_distr::StandardNormal.sample(&mut rng)).collect();
        // Four standard errors are 0.1 for the quantile and 0.08 for the median of the differences.
        assert!((noise(&values) - 1.0).abs() < 0.08);
        values[..100].fill(1e6);
        assert!((upper_spread(values) - 1.0).abs() < 0.15);
    }
}
