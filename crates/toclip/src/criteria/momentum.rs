//! How large a learning rate may be with momentum.

use crate::error::Result;
use crate::factors::Factors;
use crate::problem::Problem;
use serde::Serialize;

/// The learning rates at which a system with momentum changes its behaviour, in the unit of the
/// policy.
///
/// With $\mu$ and $\nu$ held at their values at some risk, $m^{(2)} = \nu(2R + \sigma^2)$ makes the
/// [system](crate::dynamics::Ode) linear. It forgets its start, and the risk is a
/// renewal equation
/// $$ R(t) = R_0(t) + \int_0^t k(t-s)\thinspace \nu\thinspace(2R(s) + \sigma^2)\thinspace ds, \qquad k \ge 0, \qquad \int_0^\infty k = \frac{\eta}{4\mu}, $$
/// where $k$ is the response of $R$ to noise in the buffer; its integral is read off the stationary
/// state, $b = 0$, $y = \delta\lambda n\thinspace m^{(2)}/2pd$, $a = \eta n\thinspace m^{(2)}/2\mu d$. As $k$ is not negative, $R$ stays
/// bounded exactly if $2\nu\int k < 1$ (with batches of $B$ there is $\nu/B$ in the place of $\nu$):
/// $$ \eta < \eta^\ast = \frac{2\mu}{\nu} = 2\thinspace\text{CSC}, $$
/// **for every $\delta$, as without momentum**, and the risk in the end,
/// $R_\infty = \frac{\eta\nu\sigma^2}{4\mu - 2\eta\nu}$, does not depend on $\delta$ either. Momentum changes how one gets there: above
/// $\eta_o = \delta p/4\mu$ the fastest modes oscillate, since the roots of $s^2 + \delta p\thinspace s + \eta p\thinspace\delta\mu\lambda = 0$ are
/// complex.
///
/// In the unit of the policy both are divided by the [factor](crate::Momentum::rate_factor) of the
/// convention: the largest stable learning rate of PyTorch's momentum is $(1-\beta)/(1-\tau)$ times that of
/// plain SGD. Without a positive $\mu$ no learning rate is stable.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MomentumLimits {
    /// $\eta^\ast$: a larger learning rate makes the risk grow without bound.
    pub stable: f64,
    /// $\eta_o$: a larger learning rate makes the fastest modes oscillate.
    pub oscillating: f64,
}

/// The limits at the start of training with threshold $c$; `None` without momentum.
///
/// # Errors
/// As [`Factors::new`], and where $\nu$ is not defined because the noise has infinite variance.
///
/// ```
/// use toclip::criteria::momentum_limits;
/// use toclip::noise::NoNoise;
/// use toclip::spectrum::{Modes, Spectrum, Start};
/// use toclip::policy::OpenLoop;
/// use toclip::{Memory, Momentum, Problem};
/// // Isotropic data without noise or clipping: 2, as without momentum, or a tenth of it for PyTorch.
/// let modes = Modes::new(&Spectrum::isotropic(1000)?, &Start::Uniform { norm: 1.0 })?;
/// let problem = Problem::new(modes, NoNoise, OpenLoop::constant(0.1, f64::INFINITY)?)?;
/// let limits = |momentum: Momentum| {
///     momentum_limits(&problem.clone().with_optimizer(momentum)?, f64::INFINITY)
/// };
/// let average = limits(Momentum::average(Memory::Delta(3.0))?)?.unwrap();
/// assert!((average.stable - 2.0).abs() < 1e-12 && (average.oscillating - 0.75).abs() < 1e-12);
/// let torch = limits(Momentum::heavy_ball(Memory::Beta(0.9))?)?.unwrap();
/// assert!((torch.stable - 0.2).abs() < 1e-12);
/// # Ok::<(), toclip::Error>(())
/// ```
pub fn momentum_limits(problem: &Problem, c: f64) -> Result<Option<MomentumLimits>> {
    let Some(momentum) = problem.optimizer().momentum() else { return Ok(None) };
    let (step, risk, dim) = (problem.step(), problem.risk(), problem.dim());
    let at = Factors::new(step, risk, c)?;
    let csc = at.csc()?;
    if at.mu <= 0.0 {
        return Ok(Some(MomentumLimits { stable: 0.0, oscillating: f64::INFINITY }));
    }
    let made = if momentum.leaves_out(step) { step.made(risk, c) } else { 1.0 };
    let factor = momentum.rate_factor(dim);
    Ok(Some(MomentumLimits {
        stable: 2.0 * csc * step.batch().size() as f64 / factor,
        oscillating: momentum.delta(dim) * made / (4.0 * at.mu) / factor,
    }))
}
