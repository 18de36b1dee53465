//! The learning rate of fastest descent.

use super::{Control, MaxCcc, Policy, Schedule};
use crate::factors::step::Step;
use crate::numerics::risk_table::EVERYWHERE;

/// $\eta = 2R\mu/m^{(2)}$: the rate of fastest descent, optimal for isotropic data.
///
/// For $K = I$ the risk obeys $\dot R = -2\eta\mu R + \tfrac12\eta^2 m^{(2)}$, whose minimum over
/// $\eta$ is at half the [stability limit](crate::criteria::stability_limits):
/// $$ \eta = \frac{2R\mu}{m^{(2)}} = \frac{R}{R+\sigma^2/2}\cdot\frac{\mu}{\nu}, \qquad
/// \dot R = -\frac{R^2}{R + \sigma^2/2}\thinspace \frac{\mu^2}{\nu}. $$
/// So the threshold that is best with its best rate is the one with the largest CCC
/// ([`clipped`](Self::clipped)). As the slope depends on $R$ alone and is the steepest at every
/// $R$, greedy is optimal at the end as well: no other $\eta(t), c(t)$ reaches a lower $R(T)$.
///
/// For other spectra the same rate is that of fastest descent of the *distance*, $\dot D =
/// -4\eta\mu R + \eta^2 m^{(2)}$. The greedy rate of the risk there needs $\Vert \nabla P\Vert ^2$:
/// take [`Margin::predicted`](super::Margin::predicted) with a margin of one half around an
/// infinite rate.
///
/// ```
/// use std::sync::Arc;
/// use toclip::{noise::{Gaussian, NoNoise}, policy::{Greedy, Policy}};
/// // σ² = 1: half of the mean square is signal at R = 1/2.
/// let policy = Greedy::unclipped(Arc::new(Gaussian::new(1.0)?));
/// assert!((policy.at(0.0, 0.5).eta - 0.5).abs() < 1e-15);
/// // Without noise η = 1, as for least squares.
/// assert_eq!(Greedy::unclipped(Arc::new(NoNoise)).at(0.0, 0.3).eta, 1.0);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Greedy {
    step: Step<'static>,
    clip: Option<MaxCcc>,
}

impl Greedy {
    /// With $c = \infty$.
    pub fn unclipped(step: impl Into<Step<'static>>) -> Self {
        Greedy { step: step.into(), clip: None }
    }

    /// With $c = \arg\max_c \mu_c^2/\nu_c$.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use toclip::{Problem, dynamics::Ode, noise::Rademacher, policy::Greedy};
    /// use toclip::spectrum::{Modes, Spectrum, Start};
    /// let modes = Modes::new(&Spectrum::isotropic(100)?, &Start::Uniform { norm: 1.0 })?;
    /// let noise = Arc::new(Rademacher::from_sigma(0.8, 0.2)?);
    /// let end = |policy| {
    ///     let problem = Problem::new(modes.clone(), noise.clone(), policy)?;
    ///     Ok::<_, toclip::Error>(Ode::new(&problem)?.solve(&[10.0])?.risk[0])
    /// };
    /// let (clipped, unclipped) = (Greedy::clipped(noise.clone()), Greedy::unclipped(noise.clone()));
    /// assert!(end(clipped)? < 0.1 * end(unclipped)?);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn clipped(step: impl Into<Step<'static>>) -> Self {
        let step = step.into();
        // Only the threshold of this policy is used.
        let clip = Some(MaxCcc::new(Schedule::never(), step.clone()));
        Greedy { step, clip }
    }
}

impl Policy for Greedy {
    fn at(&self, _t: f64, r: f64) -> Control {
        let c = self.clip.as_ref().map_or(f64::INFINITY, |clip| clip.threshold(r));
        let x = match &self.clip {
            Some(clip) => clip.moments(r, c),
            None => self.step.moments(r, c),
        };
        // The rate is zero for infinite variance, where there is nothing left to learn, and where
        // steps go the wrong way.
        let eta = if x.m2 > 0.0 { (2.0 * r * x.mu / x.m2).max(0.0) } else { 0.0 };
        Control { eta, c }
    }

    fn uses_risk(&self) -> bool {
        true
    }

    fn threshold_at(&self, r: f64) -> Option<f64> {
        Some(self.clip.as_ref().map_or(f64::INFINITY, |clip| clip.threshold(r)))
    }

    fn threshold_span(&self, r: f64) -> (f64, f64) {
        self.clip.as_ref().map_or(EVERYWHERE, |clip| clip.threshold_span(r))
    }
}
