//! A percentile of the norms seen so far.

use super::sliding::SlidingWindow;
use super::{NextStep, ThresholdRule};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// $c_k$ = the $p$-th percentile of $G_1, \dots, G_k$, the current norm included (Seetharaman et
/// al. 2020, *AutoClip*), interpolated linearly between order statistics.
///
/// Clips the share $1 - p/100$ of all steps whatever their distribution, so in effect it mostly
/// lowers the learning rate; $p = 10$ is its authors' choice. All norms are kept, in a heap on
/// either side of the percentile: a step costs the logarithm of their number.
///
/// ```
/// use toclip::threshold_rules::{AutoClip, ThresholdRule};
/// let mut rule = AutoClip::new(10.0)?;
/// let last = (1..=11).map(|k| rule.threshold(f64::from(k))).last();
/// assert_eq!(last, Some(2.0));
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AutoClip {
    percentile: f64,
    history: History,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum History {
    /// The smallest, up to the percentile, and the others.
    All {
        low: BinaryHeap<Norm>,
        high: BinaryHeap<Reverse<Norm>>,
    },
    Last {
        window: usize,
        norms: SlidingWindow,
    },
}

impl AutoClip {
    /// The percentile $0 \le p \le 100$ of the whole history.
    ///
    /// # Errors
    /// [`Error::Parameter`] for another $p$.
    pub fn new(percentile: f64) -> Result<Self> {
        if !(0.0..=100.0).contains(&percentile) {
            return Err(Error::parameter("percentile", percentile, "a number from 0 to 100"));
        }
        let history = History::All { low: BinaryHeap::new(), high: BinaryHeap::new() };
        Ok(AutoClip { percentile, history })
    }

    /// The percentile of the last `window` norms, which forgets where training began.
    ///
    /// # Errors
    /// [`Error::Parameter`] as [`AutoClip::new`], and for an empty window.
    ///
    /// ```
    /// use toclip::threshold_rules::{AutoClip, ThresholdRule};
    /// let mut rule = AutoClip::windowed(50.0, 3)?;
    /// let last = [100.0, 100.0, 1.0, 2.0, 3.0].map(|norm| rule.threshold(norm))[4];
    /// assert_eq!(last, 2.0);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn windowed(percentile: f64, window: usize) -> Result<Self> {
        let AutoClip { percentile, .. } = AutoClip::new(percentile)?;
        if window == 0 {
            return Err(Error::parameter("window", 0.0, "at least one norm must be remembered"));
        }
        Ok(AutoClip {
            percentile,
            history: History::Last { window, norms: SlidingWindow::new(window) },
        })
    }
}

impl ThresholdRule for AutoClip {
    fn threshold(&mut self, norm: f64) -> f64 {
        if norm.is_finite() {
            let p = self.percentile / 100.0;
            match &mut self.history {
                History::All { low, high } => add(low, high, norm, p),
                History::Last { norms, .. } => norms.add(norm),
            }
        }
        self.next_step().threshold
    }

    fn next_step(&self) -> NextStep {
        let p = self.percentile / 100.0;
        NextStep::at(match &self.history {
            History::All { low, high } => match low.peek() {
                None => f64::INFINITY,
                Some(Norm(below)) => {
                    let above = high.peek().map_or(*below, |Reverse(Norm(above))| *above);
                    let place = p * (low.len() + high.len() - 1) as f64;
                    below + place.fract() * (above - below)
                }
            },
            History::Last { norms, .. } => norms.quantile(p).unwrap_or(f64::INFINITY),
        })
    }

    fn describe(&self) -> String {
        match self.history {
            History::All { .. } => format!("AutoClip {}", self.percentile),
            History::Last { window, .. } => format!("AutoClip {}, last {window}", self.percentile),
        }
    }
}

/// Adds a norm, with the $\lfloor p(n-1) \rfloor + 1$ smallest of the $n$ on the low side. That
/// number grows by one or not at all, so that at most one norm changes sides each way.
fn add(low: &mut BinaryHeap<Norm>, high: &mut BinaryHeap<Reverse<Norm>>, norm: f64, p: f64) {
    low.push(Norm(norm));
    if let Some(top) = low.pop() {
        high.push(Reverse(top));
    }
    let wanted = (p * (low.len() + high.len() - 1) as f64) as usize + 1;
    if low.len() < wanted
        && let Some(Reverse(least)) = high.pop()
    {
        low.push(least);
    }
}

/// A finite norm, ordered.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Norm(f64);

impl Ord for Norm {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Norm {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Norm {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Norm {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_heaps_are_sorting_everything(
            values in prop::collection::vec(0.0..10.0_f64, 1..80),
            percentile in prop::sample::select(vec![0.0, 10.0, 37.5, 50.0, 90.0, 100.0]),
        ) {
            let mut all = AutoClip::new(percentile).unwrap();
            let mut long = AutoClip::windowed(percentile, values.len()).unwrap();
            for (k, v) in values.iter().enumerate() {
                let got = all.threshold(*v);
                prop_assert_eq!(got, long.threshold(*v));
                let mut sorted = values[..=k].to_vec();
                sorted.sort_by(f64::total_cmp);
                let place = percentile / 100.0 * k as f64;
                let (lo, hi) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
                prop_assert_eq!(got, lo + place.fract() * (hi - lo));
            }
        }
    }

    #[test]
    fn nan_norms_change_nothing() {
        let mut rule = AutoClip::new(50.0).unwrap();
        assert_eq!(rule.threshold(f64::NAN), f64::INFINITY);
        assert_eq!(rule.threshold(3.0), 3.0);
        assert_eq!(rule.threshold(f64::INFINITY), 3.0);
        assert_eq!(rule.threshold(5.0), 4.0);
    }

    #[test]
    fn a_saved_rule_continues_as_if_it_had_not_stopped() {
        let mut rule = AutoClip::new(30.0).unwrap();
        let norm = |k: u32| (f64::from(k) * 0.618).fract();
        for k in 0..57 {
            rule.threshold(norm(k));
        }
        let text = serde_json::to_string(&rule).unwrap();
        let mut again: AutoClip = serde_json::from_str(&text).unwrap();
        for k in 57..100 {
            assert_eq!(rule.threshold(norm(k)), again.threshold(norm(k)));
        }
    }

    #[test]
    fn impossible_rules_are_refused() {
        for percentile in [-1.0, 101.0, f64::NAN] {
            assert!(AutoClip::new(percentile).is_err());
        }
        assert!(AutoClip::windowed(10.0, 0).is_err());
    }
}
