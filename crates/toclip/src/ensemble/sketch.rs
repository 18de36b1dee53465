//! Quantiles of very many numbers in little memory.

use super::EnsembleError;
use crate::error::{Error, Result};

/// Counts of positive numbers in bins of equal ratio: quantiles to a stated relative error.
///
/// A number $x$ falls into bin $\lceil\log_\gamma x\rceil$ with $\gamma =
/// \frac{1+\alpha}{1-\alpha}$ and is given back as the $y$ of the bin for which $|y - x| \le \alpha
/// x$ throughout: a quantile is off by at most the fraction $\alpha$ of its value (Masson, Rim,
/// Lee, 2019). Bins are counted in integers, so that sketches may be merged in any order, and the
/// memory depends on the range of the numbers, not on their count:
/// $\ln(\text{largest}/\text{smallest})/2\alpha$ bins.
///
/// ```
/// use toclip::ensemble::Sketch;
/// let mut sketch = Sketch::new(0.001)?;
/// for i in 0..=10_000 {
///     sketch.add(f64::from(i));
/// }
/// assert!((sketch.quantile(0.9) / 9000.0 - 1.0).abs() <= 0.001);
/// assert_eq!((sketch.mean(), sketch.max()), (5000.0, 10_000.0));
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Sketch {
    accuracy: f64,
    /// $1/\ln\gamma$.
    per_log: f64,
    /// The bin of `counts[0]`.
    first: i64,
    counts: Vec<u64>,
    /// How many numbers were zero.
    zeros: u64,
    count: u64,
    mean: f64,
    /// $\sum (x - \text{mean})^2$, by Welford's recurrence (1962).
    squares: f64,
    min: f64,
    max: f64,
}

impl Sketch {
    /// An empty sketch of relative error $\alpha$.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an $\alpha$ outside $[10^{-6}, 0.5]$.
    pub fn new(accuracy: f64) -> Result<Self> {
        if !(1e-6..=0.5).contains(&accuracy) {
            return Err(Error::parameter("accuracy", accuracy, "give a number in [1e-6, 0.5]"));
        }
        Ok(Sketch {
            accuracy,
            per_log: 0.5 / accuracy.atanh(),
            first: 0,
            counts: Vec::new(),
            zeros: 0,
            count: 0,
            mean: 0.0,
            squares: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        })
    }

    /// Counts $x \ge 0$.
    pub fn add(&mut self, x: f64) {
        self.count += 1;
        let off = x - self.mean;
        self.mean += off / self.count as f64;
        self.squares += off * (x - self.mean);
        self.min = self.min.min(x);
        self.max = self.max.max(x);
        if x > 0.0 {
            let bin = self.slot((x.ln() * self.per_log).ceil() as i64);
            self.counts[bin] += 1;
        } else {
            self.zeros += 1;
        }
    }

    /// Adds what another sketch of the same accuracy has counted.
    ///
    /// # Errors
    /// [`Error::Ensemble`] for another accuracy.
    ///
    /// ```
    /// use toclip::ensemble::Sketch;
    /// let (mut one, mut two) = (Sketch::new(0.01)?, Sketch::new(0.01)?);
    /// one.add(1.0);
    /// two.add(3.0);
    /// one.merge(&two)?;
    /// assert_eq!((one.count(), one.mean(), one.max()), (2, 2.0, 3.0));
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn merge(&mut self, other: &Sketch) -> Result<()> {
        if self.accuracy != other.accuracy {
            let (one, other) = (self.accuracy, other.accuracy);
            return Err(Error::Ensemble(EnsembleError::Accuracies { one, other }));
        }
        if other.count == 0 {
            return Ok(());
        }
        for (bin, count) in (other.first..).zip(&other.counts).filter(|(_, count)| **count > 0) {
            let slot = self.slot(bin);
            self.counts[slot] += count;
        }
        let (n, m) = (self.count as f64, other.count as f64);
        let off = other.mean - self.mean;
        self.mean += off * m / (n + m);
        self.squares += other.squares + off * off * n * m / (n + m);
        self.zeros += other.zeros;
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        Ok(())
    }

    /// The place of a bin, made if need be.
    fn slot(&mut self, bin: i64) -> usize {
        if self.counts.is_empty() {
            self.first = bin;
        }
        if bin < self.first {
            let more = (self.first - bin) as usize;
            self.counts.splice(0..0, std::iter::repeat_n(0, more));
            self.first = bin;
        }
        let place = (bin - self.first) as usize;
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        place
    }

    /// The value below which the fraction $p$ of the numbers lies; 0 if there are none.
    pub fn quantile(&self, p: f64) -> f64 {
        // The order statistic nearest to that place.
        let rank = (p * self.count.saturating_sub(1) as f64).round() as u64;
        let mut below = self.zeros;
        if rank < below || self.count == 0 {
            return 0.0;
        }
        for (bin, count) in (self.first..).zip(&self.counts) {
            below += count;
            if rank < below {
                // 2γ^k/(γ + 1) = (1 − α)γ^k lies within α of both ends of (γ^(k−1), γ^k].
                let value = (1.0 - self.accuracy) * (bin as f64 / self.per_log).exp();
                return value.clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// How many numbers there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The standard error of the mean.
    pub fn standard_error(&self) -> f64 {
        let n = self.count as f64;
        (self.squares / (n - 1.0).max(1.0) / n.max(1.0)).sqrt()
    }

    /// The smallest; infinite if there are none.
    pub fn min(&self) -> f64 {
        self.min
    }

    /// The largest; minus infinity if there are none.
    pub fn max(&self) -> f64 {
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_as_near_as_stated(
            values in prop::collection::vec((-200.0..200.0_f64).prop_map(f64::exp), 1..300),
            accuracy in 1e-3..0.3_f64,
            p in 0.0..=1.0_f64,
        ) {
            let mut sketch = Sketch::new(accuracy).unwrap();
            values.iter().for_each(|v| sketch.add(*v));
            let mut sorted = values;
            sorted.sort_by(f64::total_cmp);
            let exact = sorted[(p * (sorted.len() - 1) as f64).round() as usize];
            let error = (sketch.quantile(p) / exact - 1.0).abs();
            prop_assert!(error <= accuracy * (1.0 + 1e-9), "{error} over {accuracy}");
        }

        #[test]
        fn merging_is_adding(
            values in prop::collection::vec(0.0..10.0_f64, 2..100),
            cut in 0.0..1.0_f64,
        ) {
            let cut = (cut * values.len() as f64) as usize;
            let sketch = |values: &[f64]| {
                let mut sketch = Sketch::new(0.01).unwrap();
                values.iter().for_each(|v| sketch.add(*v));
                sketch
            };
            let all = sketch(&values);
            let mut merged = sketch(&values[..cut]);
            merged.merge(&sketch(&values[cut..])).unwrap();
            prop_assert_eq!((merged.first, &merged.counts), (all.first, &all.counts));
            prop_assert!((merged.mean / all.mean - 1.0).abs() < 1e-13);
            prop_assert!((merged.squares - all.squares).abs() < 1e-11 * all.squares.max(1.0));
            prop_assert_eq!((merged.min, merged.max), (all.min, all.max));
        }
    }

    #[test]
    fn zeros_are_numbers() {
        let mut sketch = Sketch::new(0.01).unwrap();
        assert_eq!((sketch.quantile(0.5), sketch.count()), (0.0, 0));
        [0.0, 0.0, 5.0].iter().for_each(|v| sketch.add(*v));
        assert_eq!(sketch.quantile(0.5), 0.0);
        assert_eq!(sketch.quantile(1.0), 5.0);
    }

    #[test]
    fn impossible_sketches_are_refused() {
        for accuracy in [0.0, 0.9, f64::NAN] {
            assert!(Sketch::new(accuracy).is_err());
        }
        assert!(Sketch::new(0.1).unwrap().merge(&Sketch::new(0.2).unwrap()).is_err());
    }
}
