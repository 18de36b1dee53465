//! The running median of a series, and the spread about it.

use std::collections::VecDeque;

/// The median of the last values, of which the window holds a limited number.
pub(super) struct RunningMedian {
    width: usize,
    recent: VecDeque<f64>,
    sorted: Vec<f64>,
}

impl RunningMedian {
    pub fn new(width: usize) -> Self {
        Self { width, recent: VecDeque::new(), sorted: Vec::new() }
    }

    pub fn push(&mut self, value: f64) {
        if self.recent.len() == self.width
            && let Some(old) = self.recent.pop_front()
        {
            let at = self.sorted.partition_point(|x| *x < old);
            self.sorted.remove(at);
        }
        self.recent.push_back(value);
        let at = self.sorted.partition_point(|x| *x < value);
        self.sorted.insert(at, value);
    }

    /// The median once the window holds `least` values.
    pub fn get(&self, least: usize) -> Option<f64> {
        (self.sorted.len() >= least.max(1)).then(|| self.sorted[self.sorted.len() / 2])
    }

    pub fn clear(&mut self) {
        self.recent.clear();
        self.sorted.clear();
    }
}

/// The standard deviation of the upper half of some values: their 84th percentile over the median,
/// which outliers do not move. Zero for fewer than ten values.
pub(super) fn upper_spread(mut values: Vec<f64>) -> f64 {
    if values.len() < 10 {
        return 0.0;
    }
    values.sort_by(f64::total_cmp);
    let at = |p: f64| values[(p * (values.len() - 1) as f64).round() as usize];
    (at(0.84) - at(0.5)).max(0.0)
}

/// The standard deviation of independent noise in a series, from its second differences, which a slope
/// does not move.
pub(super) fn noise(values: &[f64]) -> f64 {
    let bends = values.windows(3).map(|w| (w[0] - 2.0 * w[1] + w[2]).abs()).collect();
    // For a normal distribution the median of |x| is 0.6745, and three terms have variance 1 + 4 + 1.
    super::median(bends).unwrap_or(0.0) / 0.6745 / 6.0_f64.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_median_is_that_of_the_window(values in prop::collection::vec(-1e3..1e3_f64, 1..60), width in 1_usize..12) {
            let mut running = RunningMedian::new(width);
            for (i, value) in values.iter().enumerate() {
                running.push(*value);
                let mut window = values[(i + 1).saturating_sub(width)..=i].to_vec();
                window.sort_by(f64::total_cmp);
                prop_assert_eq!(running.get(1), Some(window[window.len() / 2]));
            }
        }

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
