//! The covariance of the two logits.

use super::ModelError;
use crate::error::{Error, Result};
use crate::numerics::sum::compensated;
use crate::policy::Policy;
use crate::spectrum::{Alignment, Modes};
use serde::Serialize;

/// $(Q, P, V)$: the covariance of the logits $u = \langle x, \theta\rangle$ and $v = \langle x,
/// \theta^\ast\rangle$.
///
/// $$ Q = E u^2 = \langle\theta, K\theta\rangle, \qquad P = E uv = \langle\theta,
/// K\theta^\ast\rangle, \qquad V = E v^2 = \langle\theta^\ast, K\theta^\ast\rangle. $$
/// For Gaussian features $(u, v)$ is a Gaussian pair, so these three numbers determine everything that
/// depends on the two logits.
///
/// ```
/// use toclip::model::Overlaps;
/// let at = Overlaps::new(4.0, 3.0, 9.0)?;
/// assert_eq!(at.correlation(), 0.5);
/// assert!((at.angle() - std::f64::consts::FRAC_PI_3).abs() < 1e-15);
/// assert!(Overlaps::new(1.0, 3.1, 9.0).is_err());
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Overlaps {
    /// $Q$, the variance of the model's logit.
    pub q: f64,
    /// $P$, the covariance of the two logits.
    pub p: f64,
    /// $V$, the variance of the teacher's logit.
    pub v: f64,
}

/// Covariances that break $P^2 \le QV$ by less than this are rounded.
const ROUNDING: f64 = 1e-9;

impl Overlaps {
    /// From the three covariances.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless $Q, V \ge 0$ and all are finite; [`Error::Model`] for
    /// $P^2 > QV$, which no pair of variables has.
    pub fn new(q: f64, p: f64, v: f64) -> Result<Self> {
        for (name, variance) in [("Q", q), ("V", v)] {
            if !(variance >= 0.0 && variance.is_finite()) {
                let expected = "a variance must be finite and not negative";
                return Err(Error::parameter(name, variance, expected));
            }
        }
        if !p.is_finite() || p.abs() > (q * v).sqrt() * (1.0 + ROUNDING) {
            return Err(Error::Model(ModelError::Covariance { p, most: (q * v).sqrt() }));
        }
        Ok(Overlaps::rounded(q, p, v))
    }

    /// $(Q, P, V)$ at the start; `None` for modes without a teacher.
    ///
    /// ```
    /// use toclip::model::Overlaps;
    /// use toclip::spectrum::{Modes, Spectrum, Start};
    /// let (teacher, start) = (Start::Uniform { norm: 3.0 }, Start::Uniform { norm: 0.0 });
    /// let modes = Modes::with_teacher(&Spectrum::isotropic(1000)?, &teacher, &start)?;
    /// let at = Overlaps::at_start(&modes).unwrap();
    /// assert_eq!((at.q, at.p), (0.0, 0.0));
    /// assert!((at.v - 9.0).abs() < 1e-12);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn at_start(modes: &Modes) -> Option<Self> {
        let alignments = modes.alignments()?;
        let sum = |of: fn(&Alignment) -> f64| {
            compensated(modes.modes().iter().zip(alignments).map(|(m, a)| m.lambda * of(a)))
        };
        Some(Overlaps::rounded(sum(|a| a.q), sum(|a| a.p), sum(|a| a.teacher)))
    }

    /// $\tfrac12E(u - v)^2$, the risk in the sense of least squares.
    pub fn risk(&self) -> f64 {
        (0.5 * (self.q - 2.0 * self.p + self.v)).max(0.0)
    }

    /// The $Q$ above which a path from here counts as diverged. Where residuals are bounded $\sqrt Q$
    /// settles at a multiple of $\eta$ at most, which is not divergence.
    pub(crate) fn largest_q(&self, policy: &dyn Policy) -> f64 {
        let eta = policy.at(0.0, 0.0).eta;
        1e10 * (1.0 + self.q + self.v) * (1.0 + eta * eta)
    }

    /// The nearest covariances that a pair of variables has.
    pub(crate) fn rounded(q: f64, p: f64, v: f64) -> Self {
        let (q, v) = (q.max(0.0), v.max(0.0));
        let most = (q * v).sqrt();
        let p = if most.is_finite() { p.clamp(-most, most) } else { p };
        Overlaps { q, p, v }
    }

    /// Those of $\theta = \kappa\thinspace\theta^\ast$: $(\kappa^2V, \kappa V, V)$.
    ///
    /// ```
    /// use toclip::model::Overlaps;
    /// assert_eq!(Overlaps::along_teacher(0.5, 4.0), Overlaps::new(1.0, 2.0, 4.0)?);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn along_teacher(kappa: f64, v: f64) -> Self {
        Overlaps::rounded(kappa * kappa * v, kappa * v, v)
    }

    /// $P/\sqrt{QV}$; zero where one of the logits is.
    pub fn correlation(&self) -> f64 {
        let most = (self.q * self.v).sqrt();
        if most > 0.0 { (self.p / most).clamp(-1.0, 1.0) } else { 0.0 }
    }

    /// $\arccos(P/\sqrt{QV})$, the angle between $\theta$ and $\theta^\ast$ in the metric of $K$, in
    /// radians; $\pi/2$ where one of them is zero.
    pub fn angle(&self) -> f64 {
        let across = (self.q * self.v - self.p * self.p).max(0.0).sqrt();
        if across == 0.0 && self.p == 0.0 {
            return std::f64::consts::FRAC_PI_2;
        }
        across.atan2(self.p)
    }

    /// $\operatorname{Var}(v | u) = V - P^2/Q$.
    pub(crate) fn teacher_given_model(&self) -> f64 {
        if self.q > 0.0 { (self.v - self.p / self.q * self.p).max(0.0) } else { self.v }
    }
}
