//! The κ of the proportional policy with the lowest predicted risk.

use super::search::{Failing, final_value};
use crate::dynamics::Ode;
use crate::error::{Error, Result};
use crate::factors::step::Step;
use crate::numerics::maximise::{log_grid, maximise_on};
use crate::policy::{Compensation, OpenLoop, Policy, Proportional, Schedule};
use crate::problem::Problem;
use serde::Serialize;
use std::sync::Arc;

/// The range of κ that is searched: below, nearly every gradient is clipped; above, almost none.
const RANGE: (f64, f64) = (1e-3, 30.0);
const PER_DECADE: f64 = 8.0;
/// Enough to tell two κ apart at a flat minimum.
const RTOL: f64 = 1e-7;

/// $\kappa^\ast$ and the risk $R(T)$ it ends with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TunedKappa {
    /// $\kappa^\ast$; infinite where it is best not to clip.
    pub kappa: f64,
    /// $R(T)$ of the ODE at $\kappa^\ast$.
    pub risk: f64,
}

impl TunedKappa {
    /// The policy $c = \kappa^\ast\sqrt{2R+\sigma^2}$; without clipping where $\kappa^\ast =
    /// \infty$.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use toclip::{noise::Gaussian, policy::{Compensation, Policy, Schedule}, tuning::TunedKappa};
    /// let never = TunedKappa { kappa: f64::INFINITY, risk: 0.1 };
    /// let noise = Arc::new(Gaussian::new(0.8)?);
    /// let policy = never.policy(Schedule::constant(0.4)?, noise, Compensation::Exact)?;
    /// assert_eq!(policy.at(0.0, 0.2).c, f64::INFINITY);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Proportional::new`].
    pub fn policy(
        &self,
        eta: Schedule,
        step: impl Into<Step<'static>>,
        compensation: Compensation,
    ) -> Result<Arc<dyn Policy>> {
        if self.kappa.is_infinite() {
            return Ok(Arc::new(OpenLoop::unclipped(eta)));
        }
        Ok(Arc::new(Proportional::new(self.kappa, eta, step, compensation)?))
    }
}

/// $\kappa^\ast = \arg\min_\kappa R(T)$ of the ODE under $c = \kappa\sqrt{2R+\sigma^2}$, over
/// $10^{-3} \le \kappa \le \infty$.
///
/// Several minima are possible, so a grid is searched and each minimum of it refined; $\kappa =
/// \infty$, unclipped SGD, wins ties. With another [compensation](Compensation) than the exact one
/// κ also changes the effective learning rate $\eta\mu$, and is tuned for that as well: a κ that
/// wins there need not have won by clipping.
///
/// # Errors
/// As [`Proportional::new`] and [`Ode::solve`]; [`Error::Invalid`] if every κ diverges.
///
/// ```
/// use toclip::Problem;
/// use toclip::noise::Rademacher;
/// use toclip::policy::{Compensation, OpenLoop, Schedule};
/// use toclip::spectrum::{Modes, Spectrum, Start};
/// use toclip::tuning::tune_kappa;
///
/// // Figure 4b of the paper, tuned by the printed rule and by exact compensation.
/// let modes = Modes::new(&Spectrum::power_law(500, 1.0 / 6.0)?, &Start::Uniform { norm: 1.0 })?;
/// let noise = Rademacher::from_sigma(0.8, 0.2)?;
/// let policy = OpenLoop::constant(0.4, f64::INFINITY)?;
/// let problem = Problem::new(modes.compress(1e-6)?, noise, policy)?;
/// let tune = |how| tune_kappa(&problem, Schedule::constant(0.4)?, how, 15.0);
/// let (printed, exact) = (tune(Compensation::Printed)?, tune(Compensation::Exact)?);
/// assert!((printed.kappa - 0.4).abs() < 0.05 && (printed.risk - 0.0173).abs() < 1e-4);
/// assert!(exact.risk < 0.0115);
/// # Ok::<(), toclip::Error>(())
/// ```
pub fn tune_kappa(
    problem: &Problem,
    eta: Schedule,
    compensation: Compensation,
    time: f64,
) -> Result<TunedKappa> {
    let step = problem.step();
    let end = |policy: Arc<dyn Policy>| -> Result<f64> {
        let problem = problem.with_policy(policy)?;
        final_value(&Ode::new(&problem)?.tolerance(RTOL, 0.0), &problem, time)
    };
    let objective = Failing::new(|kappa: f64| {
        end(Arc::new(Proportional::new(kappa, eta.clone(), step.clone(), compensation)?))
    });
    let grid = log_grid(RANGE.0, RANGE.1, PER_DECADE);
    let (kappa, gain) = maximise_on(&grid, |kappa| objective.gain(kappa));
    objective.finish()?;
    let unclipped = end(Arc::new(OpenLoop::unclipped(eta.clone())))?;
    let best = if -gain < unclipped * (1.0 - RTOL) {
        TunedKappa { kappa, risk: -gain }
    } else {
        TunedKappa { kappa: f64::INFINITY, risk: unclipped }
    };
    if best.risk.is_finite() {
        Ok(best)
    } else {
        Err(Error::Invalid(format!(
            "SGD diverges before t = {time} at every kappa, without clipping too: give a smaller \
             learning rate"
        )))
    }
}
