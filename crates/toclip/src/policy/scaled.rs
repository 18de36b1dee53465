//! A policy in other units.

use super::{Control, Policy, Session};
use std::sync::Arc;

/// $(a\thinspace\eta, b\thinspace c)$: a policy in the units of the user, converted to those of the
/// theory, where $\Vert K\Vert = 1$.
///
/// [`Rescaling`](crate::spectrum::Rescaling) says by how much.
///
/// ```
/// use std::sync::Arc;
/// use toclip::policy::{OpenLoop, Policy, Scaled, Schedule};
/// let rule = OpenLoop::new(Schedule::constant(0.7)?, Schedule::constant(0.9)?);
/// let scaled = Scaled::new(Arc::new(rule), 2.0, 10.0);
/// let at = scaled.at(3.0, 0.1);
/// assert_eq!((at.eta, at.c), (1.4, 9.0));
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug)]
pub struct Scaled {
    rule: Arc<dyn Policy>,
    rate: f64,
    threshold: f64,
}

impl Scaled {
    /// The policy with its $\eta$ multiplied by `rate` and its $c$ by `threshold`.
    pub fn new(rule: Arc<dyn Policy>, rate: f64, threshold: f64) -> Self {
        Scaled { rule, rate, threshold }
    }
}

impl Policy for Scaled {
    fn at(&self, t: f64, r: f64) -> Control {
        scale(self.rule.at(t, r), self.rate, self.threshold)
    }

    fn uses_risk(&self) -> bool {
        self.rule.uses_risk()
    }

    fn threshold_at(&self, r: f64) -> Option<f64> {
        self.rule.threshold_at(r).map(|c| self.threshold * c)
    }

    fn threshold_span(&self, r: f64) -> (f64, f64) {
        self.rule.threshold_span(r)
    }

    fn breakpoints(&self) -> Vec<f64> {
        self.rule.breakpoints()
    }

    fn session(&self) -> Option<Box<dyn Session>> {
        let rule = self.rule.session()?;
        Some(Box::new(ScaledSession { rule, rate: self.rate, threshold: self.threshold }))
    }
}

struct ScaledSession {
    rule: Box<dyn Session>,
    rate: f64,
    threshold: f64,
}

impl Session for ScaledSession {
    fn control(&mut self, t: f64) -> Control {
        scale(self.rule.control(t), self.rate, self.threshold)
    }

    // Residuals have the units of the targets, which no rescaling of the features changes.
    fn observe(&mut self, residual: f64) {
        self.rule.observe(residual);
    }
}

fn scale(Control { eta, c }: Control, rate: f64, threshold: f64) -> Control {
    Control { eta: rate * eta, c: threshold * c }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clips at the largest residual seen so far.
    #[derive(Debug)]
    struct Largest(f64);

    impl Session for Largest {
        fn control(&mut self, _t: f64) -> Control {
            Control { eta: 0.5, c: self.0 }
        }

        fn observe(&mut self, residual: f64) {
            self.0 = self.0.max(residual.abs());
        }
    }

    #[derive(Debug)]
    struct Watching;

    impl Policy for Watching {
        fn at(&self, _t: f64, r: f64) -> Control {
            Control { eta: 0.5, c: r }
        }

        fn uses_risk(&self) -> bool {
            true
        }

        fn breakpoints(&self) -> Vec<f64> {
            vec![1.5]
        }

        fn threshold_at(&self, r: f64) -> Option<f64> {
            Some(r)
        }

        fn session(&self) -> Option<Box<dyn Session>> {
            Some(Box::new(Largest(1.0)))
        }
    }

    #[test]
    fn all_of_the_rule_passes_through_and_only_the_numbers_are_scaled() {
        let scaled = Scaled::new(Arc::new(Watching), 4.0, 10.0);
        assert!(scaled.uses_risk());
        assert_eq!(scaled.breakpoints(), [1.5]);
        assert_eq!(scaled.at(0.0, 0.3), Control { eta: 2.0, c: 3.0 });
        assert_eq!(scaled.threshold_at(0.3), Some(3.0));
        let mut session = scaled.session().unwrap();
        session.observe(-7.0);
        assert_eq!(session.control(0.0), Control { eta: 2.0, c: 70.0 });
    }
}
