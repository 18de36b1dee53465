//! What the searches for rates and thresholds minimise.

use crate::dynamics::{Ode, Stop};
use crate::error::{Error, Result};
use std::cell::RefCell;

/// $R(T)$; infinite for a path that does not get there.
pub(super) fn final_risk(ode: &Ode<'_>, time: f64) -> Result<f64> {
    let path = ode.solve(&[time])?;
    Ok(match (path.stop, path.risk.last()) {
        (Stop::Finished, Some(&risk)) => risk,
        _ => f64::INFINITY,
    })
}

/// A function that may fail, for searches that only handle numbers: after an error their remaining
/// evaluations return at once.
pub(crate) struct Objective<F> {
    risk: F,
    failed: RefCell<Option<Error>>,
}

impl<F: Fn(f64) -> Result<f64>> Objective<F> {
    pub fn new(risk: F) -> Self {
        Objective { risk, failed: RefCell::new(None) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_evaluated_after_an_error() {
        let calls = RefCell::new(Vec::new());
        let objective = Objective::new(|x| {
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
