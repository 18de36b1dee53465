//! The same threshold at every step.

use super::{NextStep, ThresholdRule};
use crate::error::Result;
use crate::factors::check_threshold;
use serde::{Deserialize, Serialize};

/// $c_k = c$: the usual rule, most often with $c = 1$.
///
/// ```
/// use toclip::threshold_rules::{Fixed, ThresholdRule};
/// assert_eq!(Fixed::new(1.0)?.threshold(20.0), 1.0);
/// assert_eq!(Fixed::unclipped().threshold(20.0), f64::INFINITY);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fixed {
    /// `None` is infinity, which most formats cannot write.
    c: Option<f64>,
}

impl Fixed {
    /// Clips at $0 < c \le \infty$.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) for another $c$.
    pub fn new(c: f64) -> Result<Self> {
        check_threshold(c)?;
        Ok(Fixed { c: c.is_finite().then_some(c) })
    }

    /// Never clips.
    pub fn unclipped() -> Self {
        Fixed { c: None }
    }
}

impl ThresholdRule for Fixed {
    fn threshold(&mut self, _norm: f64) -> f64 {
        self.next_step().threshold
    }

    fn next_step(&self) -> NextStep {
        NextStep::at(self.c.unwrap_or(f64::INFINITY))
    }

    fn describe(&self) -> String {
        self.c.map_or("unclipped".into(), |c| format!("fixed {c}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_thresholds_are_refused() {
        for c in [0.0, -1.0, f64::NAN] {
            assert!(Fixed::new(c).is_err());
        }
    }

    #[test]
    fn no_clipping_survives_being_written() {
        let text = serde_json::to_string(&Fixed::unclipped()).unwrap();
        assert_eq!(serde_json::from_str::<Fixed>(&text).unwrap(), Fixed::unclipped());
    }
}
