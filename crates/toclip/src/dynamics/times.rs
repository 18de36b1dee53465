//! Lists of times at which a path is saved.

use crate::error::{Error, Result};

/// Times that no path can be saved at.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TimesError {
    /// No times.
    #[error("give at least one time to save")]
    Empty,
    /// A time that is not above the one before.
    #[error("times must increase, but number {number} is {time} after {before}")]
    NotIncreasing {
        /// Its number, from one.
        number: usize,
        /// The time.
        time: f64,
        /// The one before.
        before: f64,
    },
    /// Times of an ensemble that are out of order, not finite, negative or none.
    #[error(
        "the times to save must be finite, not negative, in increasing order, and at least one"
    )]
    Ensemble,
}

/// More times than are useful, and few enough to fit into memory.
const MOST: usize = 100_000_000;

/// `count` times at equal distances, $t_k = k\thinspace T/(\text{count}-1)$: from 0 to `end`, both
/// included.
///
/// ```
/// assert_eq!(toclip::dynamics::linear_times(15.0, 4)?, [0.0, 5.0, 10.0, 15.0]);
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parameter`] unless `end` is positive and finite and `count` at least 2 and at most
/// $10^8$.
pub fn linear_times(end: f64, count: usize) -> Result<Vec<f64>> {
    check_end(end, count)?;
    let last = (count - 1) as f64;
    // Multiplied first: the last time is `end` exactly.
    Ok((0..count).map(|k| end * k as f64 / last).collect())
}

/// `count` times at equal ratios, $t_k = t_1 (T/t_1)^{k/(\text{count}-1)}$: from `first` to `end`,
/// both included.
///
/// ```
/// let times = toclip::dynamics::log_times(0.01, 100.0, 5)?;
/// assert!((times[2] - 1.0).abs() < 1e-15);
/// assert_eq!((times[0], times[4]), (0.01, 100.0));
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parameter`] unless `0 < first < end`, both finite, and `count` is at least 2.
pub fn log_times(first: f64, end: f64, count: usize) -> Result<Vec<f64>> {
    check_end(end, count)?;
    if !(first > 0.0 && first < end) {
        let expected = "times at equal ratios start above zero and below their end";
        return Err(Error::parameter("first", first, expected));
    }
    let (last, ratio) = ((count - 1) as f64, (end / first).ln());
    let mut times: Vec<f64> = (0..count).map(|k| first * (ratio * k as f64 / last).exp()).collect();
    if let Some(time) = times.last_mut() {
        *time = end;
    }
    Ok(times)
}

fn check_end(end: f64, count: usize) -> Result<()> {
    if !(end > 0.0 && end.is_finite()) {
        return Err(Error::parameter("end", end, "the last time must be positive and finite"));
    }
    if count < 2 {
        return Err(Error::parameter("count", count as f64, "give at least 2 times"));
    }
    if count > MOST {
        return Err(Error::parameter("count", count as f64, "give at most 100 million times"));
    }
    Ok(())
}

/// Refuses times at which nothing can be saved; returns the last.
pub(crate) fn check_times(times: &[f64]) -> Result<f64> {
    for (i, time) in times.iter().enumerate() {
        if !(time.is_finite() && *time >= 0.0) {
            let expected = "times must be finite and not negative";
            return Err(Error::parameter("times", *time, expected));
        }
        if i > 0 && *time <= times[i - 1] {
            let (number, time, before) = (i + 1, *time, times[i - 1]);
            return Err(Error::Times(TimesError::NotIncreasing { number, time, before }));
        }
    }
    times.last().copied().ok_or(Error::Times(TimesError::Empty))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_times_are_refused() {
        let says = |times: &[f64]| check_times(times).unwrap_err().to_string();
        assert!(says(&[]).contains("at least one time"));
        assert!(says(&[0.0, f64::NAN]).contains("finite"));
        assert!(says(&[-1.0]).contains("times = -1 is not allowed"));
        assert!(says(&[0.0, 2.0, 2.0]).contains("number 3 is 2 after 2"));
        assert_eq!(check_times(&[0.0]), Ok(0.0));
        assert!(linear_times(0.0, 3).is_err() && linear_times(1.0, 1).is_err());
        assert!(log_times(2.0, 1.0, 3).is_err() && log_times(0.0, 1.0, 3).is_err());
    }
}
