//! Steps far above the running median are left out.

use super::sliding::SlidingWindow;
use super::{NextStep, ThresholdRule};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// Skips a step whose norm is above $c_k = \kappa \operatorname{median}(G_{k-w}, \dots, G_{k-1})$,
/// where the other rules clip it: the factor of the gradient is $\mathbf 1\lbrace G_k \le
/// c_k\rbrace$.
///
/// The current norm is not part of its own median, and the first is never skipped. For single
/// samples skipping leaves the descent $\mu = P(|X| \le c) - c\thinspace(f_X(c) + f_X(-c))$,
/// less than clipping at the same $c$, and negative where a threshold cuts through the bulk of
/// the residuals; so $\kappa$ is to be large.
///
/// ```
/// use toclip::threshold_rules::{SkipAbove, ThresholdRule};
/// let mut rule = SkipAbove::new(4.0, 100)?;
/// let factors = [1.0, 3.0, 9.0, 4.0].map(|norm| {
///     let threshold = rule.threshold(norm);
///     rule.factor(norm, threshold)
/// });
/// assert_eq!(factors, [1.0, 1.0, 0.0, 1.0]);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SkipAbove {
    multiple: f64,
    norms: SlidingWindow,
}

impl SkipAbove {
    /// Skips above `multiple` $= \kappa$ times the median of the last `window` norms.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless $1 < \kappa < \infty$ and the window holds a norm.
    pub fn new(multiple: f64, window: usize) -> Result<Self> {
        if !(multiple > 1.0 && multiple.is_finite()) {
            let expected = "a finite multiple of the median above 1";
            return Err(Error::parameter("multiple", multiple, expected));
        }
        if window == 0 {
            return Err(Error::parameter("window", 0.0, "at least one norm must be remembered"));
        }
        Ok(SkipAbove { multiple, norms: SlidingWindow::new(window) })
    }
}

impl ThresholdRule for SkipAbove {
    fn threshold(&mut self, norm: f64) -> f64 {
        let threshold = self.next_step().threshold;
        if norm.is_finite() {
            self.norms.add(norm);
        }
        threshold
    }

    fn skips(&self) -> bool {
        true
    }

    fn next_step(&self) -> NextStep {
        // A median of zero is a window of gradients that vanish: nothing to compare with.
        NextStep::at(match self.norms.quantile(0.5) {
            Some(median) if median > 0.0 => self.multiple * median,
            _ => f64::INFINITY,
        })
    }

    fn describe(&self) -> String {
        format!("skip above {} × median", self.multiple)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_skipped_is_above_the_multiple_of_the_median_before_it(
            values in prop::collection::vec(0.01..10.0_f64, 2..60),
            window in 1..20_usize,
        ) {
            let mut rule = SkipAbove::new(3.0, window).unwrap();
            for (k, v) in values.iter().enumerate() {
                let threshold = rule.threshold(*v);
                let factor = rule.factor(*v, threshold);
                let mut last = values[k.saturating_sub(window)..k].to_vec();
                last.sort_by(f64::total_cmp);
                let n = last.len();
                let skip = n > 0 && *v > 3.0 * 0.5 * (last[(n - 1) / 2] + last[n / 2]);
                prop_assert_eq!(factor, if skip { 0.0 } else { 1.0 });
            }
        }
    }

    #[test]
    fn nan_norms_change_nothing_and_impossible_rules_are_refused() {
        let mut rule = SkipAbove::new(2.0, 10).unwrap();
        assert_eq!(rule.threshold(f64::NAN), f64::INFINITY);
        rule.threshold(1.0);
        assert_eq!(rule.threshold(f64::INFINITY), 2.0);
        assert_eq!(rule.next_step().threshold, 2.0);
        assert!(SkipAbove::new(1.0, 10).is_err() && SkipAbove::new(f64::INFINITY, 10).is_err());
        assert!(SkipAbove::new(f64::NAN, 10).is_err() && SkipAbove::new(4.0, 0).is_err());
    }
}
