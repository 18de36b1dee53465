//! The constant rate with the lowest predicted risk at a given threshold.

use super::tuning::{RateSearch, final_risk};
use super::{OpenLoop, Schedule};
use crate::dynamics::{Ode, effective_moments};
use crate::error::{Error, Result};
use crate::factors::step::Step;
use crate::spectrum::Modes;
use serde::Serialize;

/// Enough to tell two rates apart at a flat minimum.
const RTOL: f64 = 1e-6;
/// $\eta\mu T$ where the search begins, $\mu$ being that of the start, and its first steps.
const DESCENT: f64 = 3.0;
const FACTOR: f64 = 2.0;
/// So many steps either way.
const MOST_STEPS: u32 = 24;
/// To which $\ln\eta$ is found.
const PRECISION: f64 = 3e-3;

/// The best constant $\eta$ at a threshold, and the risk $R(T)$ it ends with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TunedRate {
    /// $\eta$.
    pub eta: f64,
    /// $R(T)$ of the ODE.
    pub risk: f64,
}

/// $\arg\min_\eta R(T)$ of the ODE with constant $\eta$ and $c$, for any rule.
///
/// At a fixed rate, comparing two rules also compares two speeds: a smaller threshold slows descent
/// down. With the best rate for each, only the rules differ. The minimum found is the one downhill from $\eta\mu T = 3$.
///
/// # Errors
/// [`Error::Invalid`] where no rate descends ([skipping](crate::Rule::Skip) can have $\mu \le 0$)
/// or every rate diverges; as [`Ode::solve`].
///
/// ```
/// use toclip::{noise::StudentT, policy::tune_rate};
/// use toclip::spectrum::{Modes, Spectrum, Start};
/// let modes = Modes::new(&Spectrum::isotropic(500)?, &Start::Uniform { norm: 1.0 })?;
/// let noise = StudentT::from_sigma(2.5, 0.7)?;
/// let clip = tune_rate(&modes, &noise, 0.4, 10.0)?;
/// let open = tune_rate(&modes, &noise, f64::INFINITY, 10.0)?;
/// // Heavy tails: clipping ends lower, at a larger rate.
/// assert!(clip.risk < 0.8 * open.risk && clip.eta > open.eta);
/// # Ok::<(), toclip::Error>(())
/// ```
pub fn tune_rate<'a>(
    modes: &Modes,
    step: impl Into<Step<'a>>,
    c: f64,
    time: f64,
) -> Result<TunedRate> {
    let step = step.into();
    let threshold = if c == f64::INFINITY { Schedule::never() } else { Schedule::constant(c)? };
    let mu = effective_moments(modes, &step, c)?.mu;
    if !(mu > 0.0) {
        return Err(Error::Invalid(format!(
            "no learning rate descends at c = {c}: mu is {mu:.3} at the start"
        )));
    }
    let end = |eta: f64| -> Result<f64> {
        let policy = OpenLoop::new(Schedule::constant(eta)?, threshold.clone());
        final_risk(&Ode::new(modes, &step, &policy).tolerance(RTOL, 0.0), time)
    };
    let search = RateSearch {
        first: DESCENT / (mu * time),
        factor: FACTOR,
        most_steps: MOST_STEPS,
        precision: PRECISION,
    };
    let (eta, risk) = search.run(time, end)?;
    Ok(TunedRate { eta, risk })
}
