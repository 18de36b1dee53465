//! The deterministic limit of clipped SGD, as a system of ordinary differential equations.

mod overlap_system;
mod per_mode;
mod risk_system;
mod run;
mod stages;
mod tableau;

use super::Trajectory;
use super::solver::{DEFAULT_TOLERANCE, Tolerance, Watch};
use crate::error::Result;
use crate::model::Objective;
use crate::problem::{Method, Problem};
use overlap_system::OverlapSystem;
use risk_system::RiskSystem;
use run::Run;

/// $\dot v = -2\eta\mu\lambda\thinspace v + \tfrac{\eta^2}{d}\lambda n\thinspace \tfrac{m_2}{2}$:
/// the deterministic limit of clipped SGD.
///
/// One equation for every distinct eigenvalue $\lambda$ of multiplicity $n$, coupled only through
/// the risk $R = \sum \lambda v$, which decides $(\eta, c)$ by the policy and
/// $(\mu, m_2) = (\mu_c(R), m^{(2)}_c(R))$ by the noise. The other output is $D = 2\sum v$.
///
/// | option | default | |
/// |---|---|---|
/// | [`tolerance`](Self::tolerance) | 1e-8, 0 | relative and absolute error of $R$ and $D$ |
/// | [`target`](Self::target) | none | stop when the risk falls to this |
/// | [`keep_path`](Self::keep_path) | no | also save $\mu, m_2, \eta, c$ |
///
/// With [momentum](crate::Momentum) there are three numbers for every eigenvalue instead of one,
/// $$ \dot a = -2\eta p\thinspace b, \qquad \dot b = -\eta p\thinspace y + \delta(\mu\lambda\thinspace a - p\thinspace b), \qquad
/// \dot y = 2\delta(\mu\lambda\thinspace b - p\thinspace y) + \delta^2\lambda n\thinspace\tfrac{m_2}{d}, $$
/// with $R = \frac12\sum\lambda a$, $D = \sum a$, $\delta = (1-\beta)d$, $\eta$ times the
/// [factor](crate::Momentum::rate_factor) of the convention, and $p = 1$, or the share of steps that are
/// made where the others are [not](crate::OnSkip::NotMade). They are stiff for large $\delta$, so the
/// method is implicit: Radau collocation with seven nodes, of order 8 in between and 13 at the ends of
/// steps. The cost does not depend on $\delta$.
///
/// A [generalised linear model](crate::model) has two numbers for every eigenvalue,
/// $$ \dot p = -\eta\lambda\thinspace(a\thinspace p + b\thinspace\tau), \qquad \dot q = -2\eta\lambda\thinspace(a\thinspace q +
/// b\thinspace p) + \tfrac{\eta^2}{d}\lambda n\thinspace m^{(2)}, \qquad \tau = \sum\theta^{\ast2}_i, $$
/// coupled through $Q = \sum\lambda q$, $P = \sum\lambda p$ and $V = \sum\lambda\tau$, which decide the
/// [coefficients](crate::model::Coefficients) $a$, $b$ and $m^{(2)}$. Samples are clipped one by one:
/// where the mean of a batch is clipped, $a$ and $b$ are not integrals over one pair of logits, and
/// [`Sgd`](super::Sgd) simulates it.
///
/// [Clipping by value](crate::Rule::ByValue) and [per group](crate::Rule::PerGroup) have $\mu_j$ and
/// $m_{2,j}$ for every mode; $\mu, m_2$ of the path are then the
/// [effective ones](super::effective_moments). [Private SGD](crate::Step::with_privacy) adds
/// $\tfrac12\eta^2\sigma^2c^2/B^2$ for each of the $n$ directions, $\lambda = 0$ included.
///
/// The method is explicit Runge–Kutta of order 8 with dense output of order 7. It never steps
/// across a [breakpoint](crate::policy::Policy::breakpoints) of the policy. Steps are at most
/// $1.5/\eta\mu$ long, whatever the tolerance: an explicit method has to follow the fastest mode.
///
/// ```
/// use toclip::dynamics::{Ode, linear_times};
/// use toclip::noise::StudentT;
/// use toclip::policy::OpenLoop;
/// use toclip::spectrum::{Modes, Spectrum, Start};
/// use toclip::{Memory, Momentum, Problem};
///
/// // Clipped SGD under Cauchy noise: figure 1b of the paper.
/// let modes = Modes::new(&Spectrum::power_law(500, 0.2)?, &Start::Uniform { norm: 1.0 })?;
/// let problem = Problem::new(modes, StudentT::new(1.0, 0.5)?, OpenLoop::constant(0.6, 0.4)?)?;
/// let path = Ode::new(&problem)?.solve(&linear_times(15.0, 61)?)?;
/// assert!((path.risk[60] - 0.070).abs() < 5e-4);
/// // A long memory starts late; a short one is plain SGD.
/// let risk = |delta| {
///     let average = Momentum::average(Memory::Delta(delta))?;
///     let problem = problem.clone().with_optimizer(average)?;
///     Ok::<_, toclip::Error>(Ode::new(&problem)?.solve(&[1.0])?.risk[0])
/// };
/// let without = Ode::new(&problem)?.solve(&[1.0])?.risk[0];
/// assert!(risk(0.5)? > 1.05 * without);
/// assert!((risk(1e6)? / without - 1.0).abs() < 1e-5);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Ode {
    problem: Problem,
    tolerance: Tolerance,
    target: Option<f64>,
    keep_path: bool,
}

impl Ode {
    /// The system of a problem.
    ///
    /// # Errors
    /// [`Error::Combination`](crate::Error::Combination) for a problem that has no such system.
    pub fn new(problem: &Problem) -> Result<Self> {
        problem.check_method(Method::Ode)?;
        Ok(Ode {
            problem: problem.clone(),
            tolerance: DEFAULT_TOLERANCE,
            target: None,
            keep_path: false,
        })
    }

    /// Errors of $R$ and $D$ up to `atol + rtol·value` do not matter; for a model, errors of $Q$ up to
    /// `atol + rtol·Q` and of $P$ up to `atol + rtol·√(QV)`.
    pub fn tolerance(mut self, rtol: f64, atol: f64) -> Self {
        self.tolerance = Tolerance { rtol, atol };
        self
    }

    /// Stop when $R$ falls to `risk`.
    ///
    /// ```
    /// use toclip::Problem;
    /// use toclip::dynamics::{Ode, Stop};
    /// use toclip::noise::NoNoise;
    /// use toclip::policy::OpenLoop;
    /// use toclip::spectrum::{Modes, Spectrum, Start};
    ///
    /// // Isotropic and noiseless: R = R(0) exp(-(2η - η²) t).
    /// let modes = Modes::new(&Spectrum::isotropic(100)?, &Start::Uniform { norm: 2.0 })?;
    /// let problem = Problem::new(modes, NoNoise, OpenLoop::constant(1.0, f64::INFINITY)?)?;
    /// let ode = Ode::new(&problem)?;
    /// let Stop::TargetReached { t } = ode.target(1.0).solve(&[10.0])?.stop else { panic!() };
    /// assert!((t - 2.0_f64.ln()).abs() < 1e-8);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn target(mut self, risk: f64) -> Self {
        self.target = Some(risk);
        self
    }

    /// Whether to save $\mu, m_2, \eta, c$ as well; only for least squares.
    pub fn keep_path(mut self, keep: bool) -> Self {
        self.keep_path = keep;
        self
    }

    /// $R$ and $D$ at the given increasing times; the start is at $t = 0$ and need not be among
    /// them.
    ///
    /// A path that diverges is returned up to there with [`Stop::Diverged`](super::Stop::Diverged), and
    /// one without clipping under noise of infinite variance with
    /// [`Stop::InfiniteVariance`](super::Stop::InfiniteVariance).
    ///
    /// # Errors
    /// An empty list of times, times that are negative, not finite or do not increase, impossible
    /// tolerances or targets, a batch whose mean is clipped in a model, and two million steps that do not
    /// reach the last time.
    pub fn solve(&self, times: &[f64]) -> Result<Trajectory> {
        self.tolerance.check()?;
        Watch::check_target(self.target)?;
        let Ode { problem, tolerance, target, keep_path } = self;
        if let Objective::Model(model) = problem.objective() {
            let system = OverlapSystem::new(problem, &**model, *target, times)?;
            let path = Run::new(system, *tolerance, times, false)?.solve(problem.policy())?;
            return Ok(path.measured(&**model));
        }
        let own = problem.optimizer().solve(problem, *tolerance, *target, *keep_path, times);
        if let Some(path) = own {
            return path;
        }
        let watch = Watch { target: *target, limit: problem.divergence_limit() };
        let system = RiskSystem::new(problem, watch, *tolerance)?;
        Run::new(system, *tolerance, times, *keep_path)?.solve(problem.policy())
    }
}
