//! Order statistics of the last norms.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The last `window` numbers, kept in order: any quantile of them costs nothing, a new number a
/// binary search and a move of at most `window` places.
///
/// ```
/// let mut window = toclip::threshold_rules::SlidingWindow::new(3);
/// [9.0, 1.0, 3.0, 2.0].iter().for_each(|x| window.add(*x));
/// assert_eq!((window.len(), window.quantile(0.5)), (3, Some(2.0)));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlidingWindow {
    window: usize,
    recent: VecDeque<f64>,
    sorted: Vec<f64>,
}

impl SlidingWindow {
    /// An empty window for so many numbers, at least one.
    pub fn new(window: usize) -> Self {
        SlidingWindow { window: window.max(1), recent: VecDeque::new(), sorted: Vec::new() }
    }

    /// How many numbers it has.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The numbers in ascending order.
    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    /// Adds a number; the oldest leaves a full window.
    pub fn add(&mut self, x: f64) {
        if self.recent.len() == self.window
            && let Some(old) = self.recent.pop_front()
        {
            let place = self.sorted.partition_point(|v| *v < old);
            self.sorted.remove(place);
        }
        self.recent.push_back(x);
        let place = self.sorted.partition_point(|v| *v < x);
        self.sorted.insert(place, x);
    }

    /// The quantile $p$ by linear interpolation between order statistics; `None` for an empty window.
    pub fn quantile(&self, p: f64) -> Option<f64> {
        let place = p * self.sorted.len().saturating_sub(1) as f64;
        let below = *self.sorted.get(place as usize)?;
        let above = *self.sorted.get(place as usize + 1).unwrap_or(&below);
        Some(below + place.fract() * (above - below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_sorting_the_last_ones(
            values in prop::collection::vec(prop::sample::select(vec![0.0, 1.0, 2.5, 3.0, 9.0]), 1..60),
            window in 1..20_usize,
            p in 0.0..=1.0_f64,
        ) {
            let mut sliding = SlidingWindow::new(window);
            values.iter().for_each(|v| sliding.add(*v));
            let mut last = values[values.len().saturating_sub(window)..].to_vec();
            last.sort_by(f64::total_cmp);
            let place = p * (last.len() - 1) as f64;
            let (lo, hi) = (place.floor() as usize, place.ceil() as usize);
            let want = last[lo] + place.fract() * (last[hi] - last[lo]);
            prop_assert_eq!(sliding.quantile(p), Some(want));
        }
    }
}
