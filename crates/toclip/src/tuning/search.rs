//! Searches for rates and thresholds that end with the lowest risk or loss.

use crate::dynamics::{Ode, Stop};
use crate::error::{Error, Result};
use crate::numerics::maximise::brent;
use crate::problem::Problem;
use std::cell::RefCell;

/// $R(T)$, or the loss of a model; infinite for a path that does not get there.
pub(super) fn final_value(ode: &Ode, problem: &Problem, time: f64) -> Result<f64> {
    let path = ode.solve(&[time])?;
    let end = match problem.model() {
        None => path.risk.last().copied(),
        Some(_) => path.measures.and_then(|measures| Some(measures.last()?.loss)),
    };
    Ok(match (path.stop, end) {
        (Stop::Finished, Some(end)) => end,
        _ => f64::INFINITY,
    })
}

/// A function that may fail, for searches that only handle numbers: after an error their remaining
/// evaluations return at once.
pub(super) struct Failing<F> {
    risk: F,
    failed: RefCell<Option<Error>>,
}

impl<F: Fn(f64) -> Result<f64>> Failing<F> {
    pub fn new(risk: F) -> Self {
        Failing { risk, failed: RefCell::new(None) }
    }

    /// Minus the risk, which is to be large; $-\infty$ once it failed.
    pub fn gain(&self, x: f64) -> f64 {
        if self.failed.borrow().is_some() {
            return f64::NEG_INFINITY;
        }
        (self.risk)(x).map_or_else(
            |error| {
                self.failed.replace(Some(error));
                f64::NEG_INFINITY
            },
            |risk| -risk,
        )
    }

    /// The first error, if there was one.
    pub fn finish(self) -> Result<()> {
        self.failed.into_inner().map_or(Ok(()), Err)
    }
}

/// A search for the learning rate with the lowest value at the end: downhill from a first guess,
/// then by Brent's method.
#[derive(Debug, Clone, Copy)]
pub(super) struct RateSearch {
    /// The first guess.
    pub first: f64,
    /// The factor between the rates on the way downhill.
    pub factor: f64,
    /// So many of them at most, in either direction.
    pub most_steps: u32,
    /// To which $\ln\eta$ is found.
    pub precision: f64,
}

impl RateSearch {
    /// The best rate and its value; `end` is the value at `time`, infinite where SGD diverges before.
    ///
    /// # Errors
    /// [`Error::Invalid`] where every rate diverges, and the errors of `end`.
    pub fn run(self, time: f64, end: impl Fn(f64) -> Result<f64>) -> Result<(f64, f64)> {
        let RateSearch { first, factor, most_steps, precision } = self;
        let mut middle = first;
        let mut lowest = end(middle)?;
        // Downhill, first towards smaller rates: larger ones diverge.
        for factor in [factor.recip(), factor] {
            for _ in 0..most_steps {
                let value = end(factor * middle)?;
                if value > lowest || (value == lowest && value.is_finite()) {
                    break;
                }
                (middle, lowest) = (factor * middle, value);
            }
        }
        if !lowest.is_finite() {
            return Err(Error::Invalid(format!("SGD diverges before t = {time} at every rate")));
        }
        let objective = Failing::new(end);
        let gain = |eta: f64| objective.gain(eta);
        let (low, high) = (middle / factor, factor * middle);
        let (eta, gain) = brent(low, middle, high, -lowest, precision, &gain);
        objective.finish()?;
        Ok((eta, -gain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_evaluated_after_an_error() {
        let calls = RefCell::new(Vec::new());
        let objective = Failing::new(|x| {
            calls.borrow_mut().push(x);
            if x > 1.0 { Err(Error::Invalid("too large".into())) } else { Ok(x) }
        });
        assert_eq!(
            [0.5, 2.0, 0.5].map(|x| objective.gain(x)),
            [-0.5, f64::NEG_INFINITY, f64::NEG_INFINITY]
        );
        assert_eq!(objective.finish().unwrap_err().to_string(), "too large");
        assert_eq!(calls.into_inner(), [0.5, 2.0]);
    }
}
