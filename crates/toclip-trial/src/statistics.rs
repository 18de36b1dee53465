//! Means with intervals, and comparisons run by run.

use serde::Serialize;
use toclip::student_critical;
use toclip::{Error, Result};

/// A mean and the ends of its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeanInterval {
    /// The mean.
    pub mean: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl MeanInterval {
    /// The mean of `values` with Student's interval.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two values, [`Error::Parameter`] for a confidence outside
    /// $(0, 1)$.
    ///
    /// ```
    /// use toclip_trial::MeanInterval;
    /// let x = MeanInterval::student(&[1.0, 2.0, 3.0], 0.95)?;
    /// // t = 4.3027 with two degrees of freedom, times 1/sqrt(3).
    /// assert!((x.high - (2.0 + 4.302652729749 / 3.0_f64.sqrt())).abs() < 1e-9);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn student(values: &[f64], confidence: f64) -> Result<Self> {
        if !(confidence > 0.0 && confidence < 1.0) {
            return Err(Error::parameter("confidence", confidence, "a number in (0, 1)"));
        }
        if values.len() < 2 {
            return Err(Error::Invalid("an interval needs at least two runs".into()));
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let half = student_critical(confidence, values.len() - 1) * (variance / n).sqrt();
        Ok(MeanInterval { mean, low: mean - half, high: mean + half })
    }

    /// The same on another scale; `f` must increase.
    pub(crate) fn map(self, f: impl Fn(f64) -> f64) -> Self {
        MeanInterval { mean: f(self.mean), low: f(self.low), high: f(self.high) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_no_width_and_one_is_refused() {
        assert_eq!(
            MeanInterval::student(&[0.0; 5], 0.99).unwrap(),
            MeanInterval { mean: 0.0, low: 0.0, high: 0.0 }
        );
        assert!(MeanInterval::student(&[1.0], 0.99).is_err());
        assert!(MeanInterval::student(&[1.0, 2.0], 1.0).is_err());
    }
}
