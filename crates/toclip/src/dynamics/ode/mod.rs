//! The ODE system of the risk.

mod per_mode;
pub(crate) mod stages;
mod system;
pub(crate) mod tableau;

use super::momentum::MomentumOde;
use super::simulator::divergence_limit;
use super::solver::{DEFAULT_TOLERANCE, SolvedPath, Tolerance, Watch, last_saved};
use super::step_control::{SHORTEN, StepControl, Stepper, TimeStep, solve};
use super::{Counts, Stop, Trajectory};
use crate::error::Result;
use crate::factors::step::Step;
use crate::optimizer::momentum::Momentum;
use crate::policy::Policy;
use crate::spectrum::Modes;
use stages::{Attempt, OdeSystem};
use system::{RiskSums, RiskSystem};
use tableau::combined_error;

/// The tolerance of a step as a share of that of the curve: errors of steps add up, and dense
/// output between them is less accurate.
///
/// With this share the worst of 2000 random problems, at tolerances from 1e-5 to 1e-9, was off by
/// 0.4 of the tolerance anywhere on its curve, and the median by a few thousandths.
const SHARE: f64 = 0.005;

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
/// | [`with_momentum`](Self::with_momentum) | none | another system, of three numbers a mode |
/// | [`keep_path`](Self::keep_path) | no | also save $\mu, m_2, \eta, c$ |
///
/// [Clipping by value](crate::Rule::ByValue) and [per group](crate::Rule::PerGroup) have $\mu_j$ and
/// $m_{2,j}$ for every mode; $\mu, m_2$ of the path are then the
/// [effective ones](super::effective_moments). [Private SGD](crate::Step::with_privacy) adds
/// $\tfrac12\eta^2\sigma^2c^2/B^2$ for each of the $n$ directions, $\lambda = 0$ included.
///
/// The method is explicit Runge–Kutta of order 8 with dense output of order 7. It never steps
/// across a [breakpoint](Policy::breakpoints) of the policy. Steps are at most
/// $1.5/\eta\mu$ long, whatever the tolerance: an explicit method has to follow the fastest mode.
///
/// ```
/// use toclip::dynamics::{Ode, linear_times};
/// use toclip::noise::StudentT;
/// use toclip::policy::{OpenLoop, Schedule};
/// use toclip::spectrum::{Modes, Spectrum, Start};
///
/// // Clipped SGD under Cauchy noise: figure 1b of the paper.
/// let modes = Modes::new(&Spectrum::power_law(500, 0.2)?, &Start::Uniform { norm: 1.0 })?;
/// let noise = StudentT::new(1.0, 0.5)?;
/// let policy = OpenLoop::new(Schedule::constant(0.6)?, Schedule::constant(0.4)?);
/// let path = Ode::new(&modes, &noise, &policy).solve(&linear_times(15.0, 61)?)?;
/// assert!((path.risk[60] - 0.070).abs() < 5e-4);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Ode<'a> {
    modes: &'a Modes,
    step: Step<'a>,
    policy: &'a dyn Policy,
    momentum: Option<Momentum>,
    tolerance: Tolerance,
    target: Option<f64>,
    keep_path: bool,
}

impl<'a> Ode<'a> {
    /// The system of these modes, this step and this policy.
    pub fn new(modes: &'a Modes, step: impl Into<Step<'a>>, policy: &'a dyn Policy) -> Self {
        let step = step.into();
        let tolerance = DEFAULT_TOLERANCE;
        Ode { modes, step, policy, momentum: None, tolerance, target: None, keep_path: false }
    }

    /// Errors of $R$ and $D$ up to `atol + rtol·value` do not matter.
    pub fn tolerance(mut self, rtol: f64, atol: f64) -> Self {
        self.tolerance = Tolerance { rtol, atol };
        self
    }

    /// Stop when $R$ falls to `risk`.
    ///
    /// ```
    /// use toclip::dynamics::{Ode, Stop};
    /// use toclip::noise::NoNoise;
    /// use toclip::policy::{OpenLoop, Schedule};
    /// use toclip::spectrum::{Modes, Spectrum, Start};
    ///
    /// // Isotropic and noiseless: R = R(0) exp(-(2η - η²) t).
    /// let modes = Modes::new(&Spectrum::isotropic(100)?, &Start::Uniform { norm: 2.0 })?;
    /// let policy = OpenLoop::unclipped(Schedule::constant(1.0)?);
    /// let ode = Ode::new(&modes, &NoNoise, &policy);
    /// let Stop::TargetReached { t } = ode.target(1.0).solve(&[10.0])?.stop else { panic!() };
    /// assert!((t - 2.0_f64.ln()).abs() < 1e-8);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn target(mut self, risk: f64) -> Self {
        self.target = Some(risk);
        self
    }

    /// The same with momentum: three numbers for every eigenvalue instead of one,
    /// $$ \dot a = -2\eta p\thinspace b, \qquad \dot b = -\eta p\thinspace y + \delta(\mu\lambda\thinspace a - p\thinspace b), \qquad
    /// \dot y = 2\delta(\mu\lambda\thinspace b - p\thinspace y) + \delta^2\lambda n\thinspace\tfrac{m_2}{d}, $$
    /// with $R = \frac12\sum\lambda a$, $D = \sum a$, $\delta = (1-\beta)d$, $\eta$ times the
    /// [factor](Momentum::rate_factor) of the convention, and $p = 1$, or the share of steps that are
    /// made where the others are [not](crate::OnSkip::NotMade).
    ///
    /// Stiff for large $\delta$, so the method is implicit: Radau collocation with seven nodes,
    /// of order 8 in between and 13 at the ends of steps. The cost does not depend on $\delta$.
    ///
    /// ```
    /// use toclip::dynamics::Ode;
    /// use toclip::noise::StudentT;
    /// use toclip::policy::{OpenLoop, Schedule};
    /// use toclip::spectrum::{Modes, Spectrum, Start};
    /// use toclip::{Memory, Momentum};
    ///
    /// let modes = Modes::new(&Spectrum::power_law(500, 0.2)?, &Start::Uniform { norm: 1.0 })?;
    /// let noise = StudentT::new(1.0, 0.5)?;
    /// let policy = OpenLoop::new(Schedule::constant(0.6)?, Schedule::constant(0.4)?);
    /// let plain = Ode::new(&modes, &noise, &policy);
    /// let risk = |delta| {
    ///     let momentum = Momentum::average(Memory::Delta(delta))?;
    ///     Ok::<_, toclip::Error>(plain.clone().with_momentum(momentum).solve(&[1.0])?.risk[0])
    /// };
    /// let without = plain.solve(&[1.0])?.risk[0];
    /// // A long memory starts late; a short one is plain SGD.
    /// assert!(risk(0.5)? > 1.05 * without);
    /// assert!((risk(1e6)? / without - 1.0).abs() < 1e-5);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn with_momentum(mut self, momentum: Momentum) -> Self {
        self.momentum = Some(momentum);
        self
    }

    /// Whether to save $\mu, m_2, \eta, c$ as well.
    pub fn keep_path(mut self, keep: bool) -> Self {
        self.keep_path = keep;
        self
    }

    /// $R$ and $D$ at the given increasing times; the start is at $t = 0$ and need not be among
    /// them.
    ///
    /// A path that diverges is returned up to there with [`Stop::Diverged`], and one without
    /// clipping under noise of infinite variance with [`Stop::InfiniteVariance`].
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) or [`Error::Invalid`](crate::Error::Invalid) for an empty list of times, times that are
    /// negative, not finite or do not increase, for impossible tolerances or targets, for modes that
    /// do not fit the rule, and if two million steps do not reach the last time.
    pub fn solve(&self, times: &[f64]) -> Result<Trajectory> {
        self.tolerance.check()?;
        Watch::check_target(self.target)?;
        if let Some(momentum) = self.momentum {
            return self.problem(momentum).solve(times);
        }
        let mut run = Run {
            record: SolvedPath::new(times, self.keep_path)?,
            system: RiskSystem::new(self.modes, &self.step, self.policy)?,
            tolerance: self.tolerance.share(SHARE),
            watch: Watch {
                target: self.target,
                limit: divergence_limit(self.modes.risk(), &self.step, self.policy),
            },
            t: 0.0,
            attempt: Attempt::NONE,
        };
        run.system.drive.tabulate(self.tolerance);
        let last = run.record.end;
        let (stop, counts) = solve(&mut run, self.policy, last)?;
        let counts = Counts { evaluations: run.system.drive.evaluations, ..counts };
        Ok(run.record.finish(stop, counts))
    }
}

impl Ode<'_> {
    fn problem(&self, momentum: Momentum) -> MomentumOde<'_> {
        MomentumOde {
            modes: self.modes,
            step: &self.step,
            policy: self.policy,
            momentum,
            tolerance: self.tolerance,
            target: self.target,
            keep_path: self.keep_path,
        }
    }
}

/// A solution under way.
///
/// The integrator is our own because the system is diagonal but for one scalar: a step needs no
/// state but the modes, error norms and dense output only concern $R$ and $D$, and the last stage
/// of a stretch must evaluate the policy from the left. A general solver offers none of this.
#[derive(Debug)]
struct Run<'a> {
    record: SolvedPath<'a>,
    system: RiskSystem<'a>,
    tolerance: Tolerance,
    watch: Watch,
    t: f64,
    /// The step just tried.
    attempt: Attempt<2>,
}

impl Stepper for Run<'_> {
    const CONTROL: StepControl = StepControl {
        most_steps: 2_000_000,
        order: 8.0,
        least_retry: 0.1,
        range: (0.2, 6.0),
        unit: "steps of the ODE",
        remedy: SHORTEN,
    };

    fn start(&mut self) -> Option<Stop> {
        let start = self.system.sums();
        if self.record.due(0.0).is_some() {
            self.record.save(0.0, start, |risk| self.system.point_at_start(0.0, risk));
        }
        self.watch.at_start(start[0])
    }

    fn time(&self) -> f64 {
        self.t
    }

    fn begin(&mut self, h: f64, end: f64) -> std::result::Result<f64, Stop> {
        let slope = self.system.begin(self.t);
        let sums = self.system.sums();
        if !slope.iter().all(|s| s.is_finite()) {
            return Err(self.system.drive.no_slope(self.t, sums[0]));
        }
        Ok(if h == 0.0 { self.first_step(sums, slope, end) } else { h })
    }

    fn longest(&self) -> f64 {
        self.system.longest()
    }

    fn attempt(&mut self, TimeStep { t, h, latest, .. }: TimeStep) -> f64 {
        self.attempt = self.system.step(t, h, latest);
        self.error()
    }

    fn is_solved(&mut self, _step: TimeStep) -> bool {
        self.attempt.end.iter().all(|s| s.is_finite())
    }

    fn save(&mut self, TimeStep { t, h, to, latest }: TimeStep) -> Option<Stop> {
        let end = self.attempt.end;
        let watched = self.watch.target.is_some() || self.watch.diverged(end[0]);
        if !watched && self.record.due(to).is_none() {
            return None;
        }
        let dense = self.system.dense(t, h, latest, end);
        let stop = if watched { self.watch.event(t, to, |t| dense.at(t)[0]) } else { None };
        let last = last_saved(stop, to);
        while let Some(time) = self.record.due(last) {
            let point = |risk| self.system.point_inside(&dense, time, risk);
            self.record.save(time, dense.at(time), point);
        }
        stop
    }

    fn advance(&mut self, to: f64) {
        self.system.advance();
        self.t = to;
    }
}

impl Run<'_> {
    /// A fraction of the time in which $R$ or $D$ would change by their own size.
    fn first_step(&self, sums: RiskSums, slope: RiskSums, end: f64) -> f64 {
        let rate = (slope[0] / sums[0]).abs().max((slope[1] / sums[1]).abs());
        let h = self.tolerance.rtol.powf(0.125) / rate;
        if h > 0.0 && h.is_finite() { h } else { end }
    }

    /// The error of a step over the allowed error: the larger of those of $R$ and $D$.
    ///
    /// Errors of modes do not cancel in these norms, so that no mode is wrong by more than $R$ and
    /// $D$ may be.
    fn error(&self) -> f64 {
        let start = self.system.sums();
        let Attempt { end, errors } = self.attempt;
        let error = |i: usize| {
            let allowed = self.tolerance.of(start[i].max(end[i]));
            combined_error(errors.map(|e| e[i] / allowed))
        };
        let (risk, distance) = (error(0), error(1));
        // A stage that overflowed is an error without bound; `max` would drop the NaN.
        if (risk + distance).is_nan() { f64::INFINITY } else { risk.max(distance) }
    }
}
