//! Schedules: the learning rate $\eta$ and the threshold $c$ at each time.
//!
//! A [`Schedule`] is a number that changes with time. A [`Policy`] gives both numbers, and may
//! depend on the risk; every method of the [dynamics](crate::dynamics) takes any policy.

mod curve;
mod greedy;
mod margin;
mod max_ccc;
mod online;
mod private;
mod proportional;
mod scaled;
mod session;

pub use curve::{Schedule, Shape};
pub use greedy::Greedy;
pub use margin::Margin;
pub use max_ccc::MaxCcc;
pub use online::{Online, ScaleEstimate};
pub use private::PrivateGreedy;
pub(crate) use private::threshold_range;
pub use proportional::{Compensation, Proportional};
pub use scaled::Scaled;
pub(crate) use session::Controller;
pub use session::Session;

use std::sync::Arc;

/// $\eta$ and $c$ at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Control {
    /// $\eta \ge 0$, the learning rate; a step of C-SGD is $\eta/d$.
    pub eta: f64,
    /// $0 < c \le \infty$, the threshold; C-SGD clips gradients at $c\sqrt{d}$.
    pub c: f64,
}

/// Chooses $\eta$ and $c$ from the time and possibly the risk.
pub trait Policy: std::fmt::Debug + Send + Sync {
    /// $\eta$ and $c$ at time $t$ and risk $R$.
    fn at(&self, t: f64, r: f64) -> Control;

    /// Whether the choice depends on the risk: if not, simulations need not compute it each step.
    fn uses_risk(&self) -> bool;

    /// $c$ at risk $R$, where it depends on the risk alone or not even on that; then
    /// [`at`](Self::at) has this threshold at every time.
    ///
    /// `None`, the default, where it depends on the time. With an answer, factors that take long to
    /// compute are tabulated along the risk.
    fn threshold_at(&self, _r: f64) -> Option<f64> {
        None
    }

    /// The risks around $R$ between which the [threshold](Self::threshold_at) is one smooth curve; all
    /// of them by default. Tables are made of pieces that do not reach beyond.
    fn threshold_span(&self, _r: f64) -> (f64, f64) {
        (0.0, f64::INFINITY)
    }

    /// Times at which the choice jumps or has a corner, where an ODE solver must not step across.
    fn breakpoints(&self) -> Vec<f64> {
        Vec::new()
    }

    /// The policy in a run where residuals are known but the risk is not; `None`, the default, for
    /// a policy that needs the risk, or neither.
    ///
    /// C-SGD follows the [`Session`] where there is one. The methods without samples (ODE, integral
    /// equation, C-HSGD) follow [`at`](Self::at): what the session tends to in high dimension.
    fn session(&self) -> Option<Box<dyn Session>> {
        None
    }
}

impl<P: Policy + ?Sized> Policy for Arc<P> {
    fn at(&self, t: f64, r: f64) -> Control {
        (**self).at(t, r)
    }

    fn uses_risk(&self) -> bool {
        (**self).uses_risk()
    }

    fn threshold_at(&self, r: f64) -> Option<f64> {
        (**self).threshold_at(r)
    }

    fn threshold_span(&self, r: f64) -> (f64, f64) {
        (**self).threshold_span(r)
    }

    fn breakpoints(&self) -> Vec<f64> {
        (**self).breakpoints()
    }

    fn session(&self) -> Option<Box<dyn Session>> {
        (**self).session()
    }
}

/// A policy that depends on time alone: $\eta(t)$ and $c(t)$.
///
/// ```
/// use toclip::policy::{OpenLoop, Policy, Schedule};
/// let policy = OpenLoop::new(Schedule::constant(0.7)?, Schedule::constant(0.9)?);
/// assert_eq!(policy.at(3.0, 0.1).eta, 0.7);
/// let unclipped = OpenLoop::constant(0.7, f64::INFINITY)?;
/// assert_eq!(unclipped.at(3.0, 0.1).c, f64::INFINITY);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct OpenLoop {
    eta: Schedule,
    clip: Schedule,
}

impl OpenLoop {
    /// From $\eta(t)$ and $c(t)$.
    pub fn new(eta: Schedule, clip: Schedule) -> Self {
        OpenLoop { eta, clip }
    }

    /// From constants; $c = \infty$ is no clipping.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) for a negative value or NaN.
    pub fn constant(eta: f64, c: f64) -> crate::Result<Self> {
        Ok(OpenLoop::new(Schedule::constant(eta)?, Schedule::constant(c)?))
    }

    /// From $\eta(t)$ alone, $c = \infty$.
    pub fn unclipped(eta: Schedule) -> Self {
        OpenLoop { eta, clip: Schedule::never() }
    }
}

impl Policy for OpenLoop {
    fn at(&self, t: f64, _r: f64) -> Control {
        Control { eta: self.eta.at(t), c: self.clip.at(t) }
    }

    fn uses_risk(&self) -> bool {
        false
    }

    fn threshold_at(&self, _r: f64) -> Option<f64> {
        match self.clip.shape() {
            Shape::Constant { value } => Some(*value),
            _ => None,
        }
    }

    fn breakpoints(&self) -> Vec<f64> {
        [self.eta.breakpoints(), self.clip.breakpoints()].concat()
    }
}
