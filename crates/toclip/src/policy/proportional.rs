//! Thresholds in proportion to the size of the residual.

use super::{Control, Policy, Schedule};
use crate::error::{Error, Result};
use crate::factors::kernel::Moments;
use crate::factors::step::Step;
use crate::factors::table::{FactorTable, TablePoint};
use serde::{Deserialize, Serialize};

/// How the learning rate compensates for the descent that clipping removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compensation {
    /// $\eta/\mu$: the descent is that of unclipped SGD. The authors' experiments use this.
    #[default]
    Exact,
    /// $\eta\max(1, 1/\kappa)$, as the paper prints it (equation 18).
    Printed,
    /// $\eta$ as it is.
    None,
}

/// $c(t) = \kappa\sqrt{2R + \sigma^2}$: clip at $\kappa$ standard deviations of the residual.
///
/// The paper's heuristic (equation 18): one number $\kappa$ instead of a schedule. Huber's
/// $\kappa = 1.345$ costs at most five percent under Gaussian noise.
///
/// ```
/// use std::sync::Arc;
/// use toclip::{noise::Gaussian, policy::{Compensation, Policy, Proportional, Schedule}};
/// let policy = Proportional::new(
///     1.345,
///     Schedule::constant(0.4)?,
///     Arc::new(Gaussian::new(0.8)?),
///     Compensation::Exact,
/// )?;
/// let at = policy.at(0.0, 0.18); // 2R + σ² = 1
/// assert!((at.c - 1.345).abs() < 1e-12);
/// assert!((at.eta - 0.4 / 0.8213747654313257).abs() < 1e-12);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Proportional {
    pub(super) kappa: f64,
    pub(super) eta: Schedule,
    pub(super) step: Step<'static>,
    pub(super) compensation: Compensation,
    factors: Option<FactorTable>,
}

impl Proportional {
    /// Huber's constant, the default $\kappa$.
    pub const HUBER: f64 = 1.345;

    /// From $\kappa > 0$, the learning rate of unclipped SGD, the noise and a compensation.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an impossible κ, [`Error::InfiniteVariance`] for noise without a
    /// finite σ.
    pub fn new(
        kappa: f64,
        eta: Schedule,
        step: impl Into<Step<'static>>,
        compensation: Compensation,
    ) -> Result<Self> {
        if !(kappa > 0.0 && kappa.is_finite()) {
            return Err(Error::parameter("kappa", kappa, "must be positive and finite"));
        }
        let step = step.into();
        if step.noise().second_moment().is_infinite() {
            return Err(Error::InfiniteVariance);
        }
        let factors = FactorTable::new(&step);
        Ok(Proportional { kappa, eta, step, compensation, factors })
    }

    /// $\kappa\sqrt{2R + \sigma^2}$; infinite without error or noise, where there is nothing to
    /// clip.
    fn proportional(&self, r: f64) -> f64 {
        let second_moment = self.step.residual_second_moment(r);
        if second_moment > 0.0 { self.kappa * second_moment.sqrt() } else { f64::INFINITY }
    }

    fn moments(&self, r: f64, c: f64) -> Moments {
        match &self.factors {
            Some(table) => {
                table.moments(&self.step, TablePoint::new(r, c), |r| self.proportional(r))
            }
            None => self.step.moments(r, c),
        }
    }
}

impl Policy for Proportional {
    fn at(&self, t: f64, r: f64) -> Control {
        let (eta, c) = (self.eta.at(t), self.proportional(r));
        if c == f64::INFINITY {
            return Control { eta, c };
        }
        match self.compensation {
            Compensation::None => Control { eta, c },
            Compensation::Printed => Control { eta: eta * (1.0 / self.kappa).max(1.0), c },
            Compensation::Exact => compensated(eta, c, self.moments(r, c)),
        }
    }

    fn uses_risk(&self) -> bool {
        true
    }

    fn threshold_at(&self, r: f64) -> Option<f64> {
        Some(self.at(0.0, r).c)
    }

    fn breakpoints(&self) -> Vec<f64> {
        self.eta.breakpoints()
    }
}

/// $\eta/\mu_c(R)$, and no clipping where clipping would leave nothing to compensate.
pub(super) fn compensated(eta: f64, c: f64, at: Moments) -> Control {
    if at.mu > 0.0 { Control { eta: eta / at.mu, c } } else { Control { eta, c: f64::INFINITY } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Noise, Rademacher, StudentT};
    use std::sync::Arc;

    #[test]
    fn the_three_compensations_differ_only_in_the_rate() {
        let noise = Arc::new(Rademacher::from_sigma(0.8, 0.2).unwrap());
        let eta = || Schedule::constant(0.4).unwrap();
        let at = |how| Proportional::new(0.3, eta(), noise.clone(), how).unwrap().at(1.0, 0.1);
        let (exact, printed, none) =
            (at(Compensation::Exact), at(Compensation::Printed), at(Compensation::None));
        assert!(exact.c == printed.c && printed.c == none.c);
        assert_eq!((printed.eta, none.eta), (0.4 / 0.3, 0.4));
        let mu = noise.clipped(0.1, exact.c).mu;
        assert!((exact.eta * mu - 0.4).abs() < 1e-15);
    }

    #[test]
    fn noise_without_a_size_is_refused() {
        let cauchy = Arc::new(StudentT::new(1.0, 1.0).unwrap());
        let eta = Schedule::constant(0.4).unwrap();
        let refused = Proportional::new(1.0, eta, cauchy, Compensation::Exact);
        assert_eq!(refused.unwrap_err(), Error::InfiniteVariance);
    }
}
