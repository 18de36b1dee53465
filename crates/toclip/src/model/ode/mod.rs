//! The ODE of a generalised linear model.

mod system;

use super::{GlmPath, Model, Overlaps, TeacherModes};
use crate::dynamics::ode::stages::{Attempt, OdeSystem};
use crate::dynamics::ode::tableau::combined_error;
use crate::dynamics::solver::{DEFAULT_TOLERANCE, Tolerance};
use crate::dynamics::step_control::{StepControl, Stepper, TimeStep, solve};
use crate::dynamics::times::check_times;
use crate::dynamics::{Counts, Stop};
use crate::error::{Error, Result};
use crate::factors::batch::Batch;
use crate::policy::Policy;
use system::{OverlapSums, OverlapSystem};

/// The tolerance of a step as a share of that of the curve, as for least squares.
const SHARE: f64 = 0.005;

/// The deterministic limit of clipped SGD on a generalised linear model: two equations for every
/// eigenvalue $\lambda$ of multiplicity $n$,
/// $$ \dot p = -\eta\lambda\thinspace(a\thinspace p + b\thinspace\tau), \qquad \dot q = -2\eta\lambda\thinspace(a\thinspace q +
/// b\thinspace p) + \tfrac{\eta^2}{d}\lambda n\thinspace m^{(2)}, \qquad \tau = \sum\theta^{\ast2}_i. $$
///
/// They are coupled through $Q = \sum\lambda q$, $P = \sum\lambda p$ and $V = \sum\lambda\tau$,
/// which decide the [coefficients](super::Coefficients) $a$, $b$ and $m^{(2)}$.
///
/// The method is explicit Runge–Kutta of order 8 with dense output of order 7, as
/// [`dynamics::Ode`](crate::dynamics::Ode). It never steps across a
/// [breakpoint](Policy::breakpoints) of the policy.
///
/// ```
/// use toclip::model::{GlmOde, Logistic, Measures, TeacherModes};
/// use toclip::policy::{OpenLoop, Schedule};
/// use toclip::spectrum::{Spectrum, Start};
///
/// let modes = TeacherModes::new(&Spectrum::power_law(500, 0.2)?, &Start::Uniform { norm: 6.0 })?;
/// let model = Logistic::new(0.1)?; // a tenth of the labels flipped
/// let policy = OpenLoop::new(Schedule::constant(2.0)?, Schedule::constant(0.4)?);
/// let path = GlmOde::new(&modes, &model, &policy).solve(&[0.0, 20.0])?;
/// let end = Measures::new(&model, &path.overlaps[1]);
/// assert!(end.loss < 0.61 && end.error_rate.unwrap() < 0.25);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct GlmOde<'a> {
    modes: &'a TeacherModes,
    model: &'a dyn Model,
    policy: &'a dyn Policy,
    batch: Batch,
    tolerance: Tolerance,
}

impl<'a> GlmOde<'a> {
    /// The system of these modes, this model and this policy.
    pub fn new(modes: &'a TeacherModes, model: &'a dyn Model, policy: &'a dyn Policy) -> Self {
        GlmOde { modes, model, policy, batch: Batch::single(), tolerance: DEFAULT_TOLERANCE }
    }

    /// Errors of $Q$ up to `atol + rtol·Q` do not matter, nor do errors of $P$ up to `atol +
    /// rtol·√(QV)`; 1e-8 and 0 by default.
    pub fn tolerance(mut self, rtol: f64, atol: f64) -> Self {
        self.tolerance = Tolerance { rtol, atol };
        self
    }

    /// The same with steps that average $B$ samples, each clipped on its own: $a$ and $b$ are those of
    /// one sample, and the noise is $m^{(2)}/B$.
    ///
    /// Where the mean is clipped the root mean square of $B$ residuals decides about all of them, and
    /// $a$ and $b$ are not integrals over one pair of logits: [`GlmSgd`](super::GlmSgd) simulates that.
    ///
    /// ```
    /// # use toclip::model::{GlmOde, Logistic, TeacherModes};
    /// # use toclip::policy::{OpenLoop, Schedule};
    /// # use toclip::spectrum::{Spectrum, Start};
    /// use toclip::Batch;
    /// # let modes = TeacherModes::new(&Spectrum::isotropic(500)?, &Start::Uniform { norm: 3.0 })?;
    /// # let model = Logistic::new(0.1)?;
    /// let policy = OpenLoop::new(Schedule::constant(2.0)?, Schedule::constant(0.4)?);
    /// let ode = GlmOde::new(&modes, &model, &policy);
    /// let one = ode.solve(&[4.0])?.overlaps[0];
    /// let many = ode.clone().with_batch(Batch::per_sample(16)?).solve(&[4.0])?.overlaps[0];
    /// assert!(many.angle() < one.angle());
    /// assert!(ode.with_batch(Batch::mean(16)?).solve(&[4.0]).is_err());
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn with_batch(mut self, batch: Batch) -> Self {
        self.batch = batch;
        self
    }

    /// Refuses a batch whose mean is clipped.
    fn check_batch(&self, end: f64) -> Result<()> {
        let batch = self.batch;
        let moments = self.policy.breakpoints().into_iter().chain([0.0, end]);
        let clips = moments.filter(|t| *t <= end).any(|t| self.policy.at(t, 0.0).c < f64::INFINITY);
        if batch.output_count() > 1 || (batch.size() > 1 && !batch.is_per_sample() && clips) {
            return Err(Error::Invalid(
                "the ODE of a generalised linear model clips single samples: use a batch of one, clip \
                 each sample, or simulate"
                    .into(),
            ));
        }
        Ok(())
    }

    /// $(Q, P, V)$ at the given increasing times; the start is at $t = 0$ and need not be among them.
    ///
    /// A path that diverges is returned up to there with [`Stop::Diverged`], or with
    /// [`Stop::InfiniteVariance`] where residuals have no variance and are not clipped.
    ///
    /// # Errors
    /// [`Error::Parameter`] or [`Error::Invalid`] for an empty list of times, times that are
    /// negative, not finite or do not increase, for impossible tolerances, for a policy that depends
    /// on the risk, for a batch whose mean is clipped, and if two million steps do not reach the last time.
    pub fn solve(&self, times: &[f64]) -> Result<GlmPath> {
        self.tolerance.check()?;
        check_policy(self.policy)?;
        let end = check_times(times)?;
        self.check_batch(end)?;
        let mut run = Run {
            system: OverlapSystem::new(
                self.modes,
                self.model,
                self.policy,
                self.batch.size() as f64,
            ),
            tolerance: self.tolerance.share(SHARE),
            limit: divergence_limit(self.modes, self.policy),
            times,
            t: 0.0,
            attempt: Attempt::NONE,
            path: GlmPath::new(times.len()),
        };
        let (stop, counts) = solve(&mut run, self.policy, end)?;
        let counts = Counts { evaluations: run.system.evaluations, ..counts };
        Ok(GlmPath { stop, counts, ..run.path })
    }
}

/// Refuses policies that follow the risk of least squares, which these models do not have.
pub(super) fn check_policy(policy: &dyn Policy) -> Result<()> {
    if policy.uses_risk() || policy.session().is_some() {
        return Err(Error::Invalid(
            "generalised linear models take rates and thresholds that depend on time alone, and this \
             policy follows the risk of least squares"
                .into(),
        ));
    }
    Ok(())
}

/// The $Q$ above which a path counts as diverged. Where residuals are bounded $\sqrt Q$ settles at a
/// multiple of $\eta$ at most, which is not divergence.
pub(super) fn divergence_limit(modes: &TeacherModes, policy: &dyn Policy) -> f64 {
    let (start, eta) = (modes.overlaps(), policy.at(0.0, 0.0).eta);
    1e10 * (1.0 + start.q + start.v) * (1.0 + eta * eta)
}

/// A solution under way.
struct Run<'a> {
    system: OverlapSystem<'a>,
    tolerance: Tolerance,
    limit: f64,
    times: &'a [f64],
    t: f64,
    /// The step just tried.
    attempt: Attempt<4>,
    path: GlmPath,
}

impl Stepper for Run<'_> {
    const CONTROL: StepControl = StepControl {
        most_steps: 2_000_000,
        order: 8.0,
        least_retry: 0.1,
        range: (0.2, 6.0),
        unit: "steps of the ODE",
        remedy: "use a shorter time or a looser tolerance",
    };

    fn start(&mut self) -> Option<Stop> {
        if self.due(0.0).is_some() {
            self.save_at(0.0, self.system.sums());
        }
        None
    }

    fn time(&self) -> f64 {
        self.t
    }

    fn begin(&mut self, h: f64, end: f64) -> std::result::Result<f64, Stop> {
        let slope = self.system.begin(self.t);
        if self.system.noise() == f64::INFINITY {
            return Err(Stop::InfiniteVariance { t: self.t });
        }
        if !slope.iter().all(|s| s.is_finite()) {
            return Err(Stop::Diverged { t: self.t });
        }
        if h > 0.0 {
            return Ok(h);
        }
        let h = self.tolerance.rtol.powf(0.125) / self.system.rate();
        Ok(if h > 0.0 && h.is_finite() { h } else { end })
    }

    fn longest(&self) -> f64 {
        self.system.longest()
    }

    fn attempt(&mut self, TimeStep { t, h, latest, .. }: TimeStep) -> f64 {
        self.attempt = self.system.step(t, h, latest);
        self.error()
    }

    fn is_solved(&mut self, _step: TimeStep) -> bool {
        let end = self.attempt.end;
        end.iter().all(|s| s.is_finite()) && end[1] <= self.limit
    }

    fn save(&mut self, TimeStep { t, h, to, latest }: TimeStep) -> Option<Stop> {
        if self.due(to).is_some() {
            let dense = self.system.dense(t, h, latest, self.attempt.end);
            while let Some(time) = self.due(to) {
                self.save_at(time, dense.at(time));
            }
        }
        None
    }

    fn advance(&mut self, to: f64) {
        self.system.advance();
        self.t = to;
    }
}

impl Run<'_> {
    /// The next time to save, if it is not after `t`.
    fn due(&self, t: f64) -> Option<f64> {
        self.times.get(self.path.times.len()).copied().filter(|next| *next <= t)
    }

    fn save_at(&mut self, t: f64, sums: OverlapSums) {
        let [p, q, overlap, square] = sums;
        let (v, teacher) = self.system.teacher();
        self.path.save(t, Overlaps::rounded(q, p, v), square - 2.0 * overlap + teacher);
    }

    /// The error of a step over the allowed error: the largest of the four sums.
    fn error(&self) -> f64 {
        let Attempt { end, errors } = self.attempt;
        let (v, teacher) = self.system.teacher();
        let start = self.system.sums();
        let size = |i: usize| start[i].max(end[i]);
        // P and Σp may vanish: their errors are seen by the lengths.
        let scales = [(size(1) * v).sqrt(), size(1), (size(3) * teacher).sqrt(), size(3)];
        let mut worst = 0.0_f64;
        for i in 0..4 {
            let allowed = self.tolerance.of(scales[i]);
            let error = combined_error(errors.map(|e| e[i] / allowed));
            // A stage that overflowed is an error without bound; `max` would drop the NaN.
            worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
        }
        worst
    }
}
