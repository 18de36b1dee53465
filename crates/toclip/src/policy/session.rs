//! Policies that watch a run instead of being given the risk.

use super::{Control, Policy};

/// One run under a policy that does not know $R$: it gets the residuals
/// $\rho_k = \langle x_k, \theta_k - \theta^\ast\rangle - \epsilon_k$, as training code does.
///
/// Every step first calls [`control`](Self::control), then [`observe`](Self::observe) with the
/// residual of its sample: a threshold that depends on the sample it clips would be biased.
///
/// ```
/// use toclip::policy::{Control, Session};
/// /// Clips at the largest residual seen so far.
/// struct Largest(f64);
/// impl Session for Largest {
///     fn control(&mut self, _t: f64) -> Control {
///         Control { eta: 0.5, c: self.0 }
///     }
///     fn observe(&mut self, residual: f64) {
///         self.0 = self.0.max(residual.abs());
///     }
/// }
/// let mut session = Largest(1.0);
/// session.observe(-3.0);
/// assert_eq!(session.control(0.0).c, 3.0);
/// ```
pub trait Session: Send {
    /// $\eta$ and $c$ of the step at time $t$, from the residuals before it.
    fn control(&mut self, t: f64) -> Control;

    /// The residual $\rho$ of that step.
    fn observe(&mut self, residual: f64);
}

/// A policy in one run of C-SGD: with its session where it has one, else with the true risk.
pub(crate) struct Controller<'a> {
    policy: &'a dyn Policy,
    session: Option<Box<dyn Session>>,
}

impl<'a> Controller<'a> {
    pub fn new(policy: &'a dyn Policy) -> Self {
        Controller { policy, session: policy.session() }
    }

    /// Whether [`step`](Self::step) looks at the risk.
    pub fn uses_risk(&self) -> bool {
        self.session.is_none() && self.policy.uses_risk()
    }

    /// $\eta$ and $c$ of the step at time $t$ and risk $R$, whose sample has this residual.
    #[inline]
    pub fn step(&mut self, t: f64, risk: f64, residual: f64) -> Control {
        match &mut self.session {
            None => self.policy.at(t, risk),
            Some(session) => {
                let control = session.control(t);
                session.observe(residual);
                control
            }
        }
    }
}
