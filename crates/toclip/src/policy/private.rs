//! Rate and threshold of fastest descent for private SGD.

use super::{Control, Policy};
use crate::error::{Error, Result};
use crate::factors::step::Step;
use crate::numerics::maximise::{log_grid, maximise_on};

/// Thresholds are searched from this share of the narrowest feature of the residual to so many
/// times the widest.
const RANGE: (f64, f64) = (1e-3, 10.0);
const PER_DECADE: f64 = 5.0;

/// $\eta = 2R\mu/N$ with $N = m^{(2)} + \sigma^2c^2n/B^2$, and the $c$ that maximises $\mu^2/N$: the
/// schedule of fastest descent for private SGD, optimal for isotropic data.
///
/// For $K = I$ in $n = d$ dimensions
/// $$ \dot R = -2\eta\mu R + \tfrac12\eta^2 N, \qquad N(c) = m^{(2)}_c + \frac{\sigma^2c^2n}{B^2}, $$
/// with $\sigma$ the [noise multiplier](crate::privacy::Privacy) and $m^{(2)}$ that of the step. The
/// minimum over $\eta$ is at $2R\mu/N$, where $\dot R = -2R^2\mu^2/N$: so the best threshold is the
/// one with the largest $\mu^2/N$, which takes the place of CCC. As the slope depends on $R$ alone
/// and is the steepest at every $R$, no other $\eta(t), c(t)$ ends lower: the privacy of a pass does
/// not depend on them.
///
/// For other spectra this is the schedule of fastest descent of the *distance*, $\dot D =
/// -4\eta\mu R + \eta^2 N$, as in [`Greedy`](super::Greedy).
///
/// Unlike plain clipping, where $c = \infty$ may be best, the threshold is always finite: as $c$
/// grows the noise grows without bound. Where the noise of privacy dominates, $\mu^2/N$ is nearly
/// $\mu^2/c^2$, which is largest for small $c$: aggressive clipping with a large rate.
///
/// ```
/// use std::sync::Arc;
/// use toclip::{Batch, Step, noise::Gaussian, privacy::Privacy};
/// use toclip::policy::{Policy, PrivateGreedy};
/// let step = |sigma| {
///     let step = Step::new(Arc::new(Gaussian::new(0.5)?)).with_batch(Batch::per_sample(16)?)?;
///     step.with_privacy(Privacy::new(sigma)?)
/// };
/// let threshold = |sigma| Ok::<_, toclip::Error>(PrivateGreedy::new(step(sigma)?, 1000)?.at(0.0, 0.2).c);
/// // The more noise, the smaller the threshold.
/// assert!(threshold(0.1)? < threshold(0.01)?);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PrivateGreedy {
    step: Step<'static>,
    /// $n$, the number of coordinates that the noise is added to.
    ambient: f64,
}

impl PrivateGreedy {
    /// For a private step in `ambient` dimensions, directions in which the data do not vary
    /// included.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a step without privacy or with a noise multiplier of zero, for which
    /// [`Greedy`](super::Greedy) is the schedule.
    pub fn new(step: impl Into<Step<'static>>, ambient: u64) -> Result<Self> {
        let step = step.into();
        if !(step.private_variance(1.0) > 0.0) {
            return Err(Error::Invalid(
                "the private schedule needs a noise multiplier above 0: without privacy use the \
                 greedy schedule"
                    .into(),
            ));
        }
        Ok(PrivateGreedy { step, ambient: ambient as f64 })
    }

    /// $(\mu, N)$ at risk $R$ and threshold $c$.
    fn descent_and_noise(&self, r: f64, c: f64) -> (f64, f64) {
        let x = self.step.moments(r, c);
        (x.mu, x.m2 + self.step.private_variance(c) * self.ambient)
    }

    /// The threshold with the largest $\mu^2/N$ at risk $R$.
    ///
    /// At $R = 0$ for noise with an atom at zero it is the smallest that is searched.
    pub fn threshold(&self, r: f64) -> f64 {
        let (low, high) = threshold_range(&self.step, r);
        let gain = |c: f64| {
            let (mu, noise) = self.descent_and_noise(r, c);
            if noise > 0.0 { mu * (mu / noise) } else { f64::NEG_INFINITY }
        };
        maximise_on(&log_grid(low, high, PER_DECADE), gain).0
    }
}

/// Where the best threshold at risk $R$ lies.
pub(crate) fn threshold_range(step: &Step<'_>, r: f64) -> (f64, f64) {
    let sizes =
        step.features(r).into_iter().map(|f| (f.at.abs().max(f.width), f.at.abs() + f.width));
    let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
    for (small, large) in sizes.filter(|s| s.0 > 0.0) {
        (low, high) = (low.min(small), high.max(large));
    }
    // No noise and no error: any threshold will do.
    if high == 0.0 { (RANGE.0, RANGE.1) } else { (RANGE.0 * low, RANGE.1 * high) }
}

impl Policy for PrivateGreedy {
    fn at(&self, _t: f64, r: f64) -> Control {
        let c = self.threshold(r);
        let (mu, noise) = self.descent_and_noise(r, c);
        Control { eta: if noise > 0.0 { 2.0 * r * mu / noise } else { 0.0 }, c }
    }

    fn uses_risk(&self) -> bool {
        true
    }
}
