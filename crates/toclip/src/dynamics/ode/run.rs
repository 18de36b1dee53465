//! A solution under way, for any of the systems.

use super::stages::{Attempt, Dense, OdeSystem};
use super::tableau::combined_error;
use crate::dynamics::solver::{SolvedPath, Tolerance, Watch, last_saved};
use crate::dynamics::step_control::{SHORTEN, StepControl, Stepper, TimeStep, solve};
use crate::dynamics::{Counts, Stop, Trajectory};
use crate::error::Result;
use crate::policy::Policy;

/// The tolerance of a step as a share of that of the curve: errors of steps add up, and dense
/// output between them is less accurate.
///
/// With this share the worst of 2000 random problems, at tolerances from 1e-5 to 1e-9, was off by
/// 0.4 of the tolerance anywhere on its curve, and the median by a few thousandths.
const SHARE: f64 = 0.005;

/// A system whose paths are followed and saved.
pub(super) trait Followed<const N: usize>: OdeSystem<N> {
    /// The conditions that end a path.
    fn watch(&self) -> Watch;

    /// The risk of a state with these sums.
    fn risk(&self, sums: [f64; N]) -> f64;

    /// The sizes that errors of the sums are compared with, in a step from `start` to `end`.
    fn scales(&self, start: [f64; N], end: [f64; N]) -> [f64; N];

    /// How fast the sums change at the start, relative to their size.
    fn pace(&self, sums: [f64; N], slope: [f64; N]) -> f64;

    /// Why the path ends at a state with this slope, if it does.
    fn stuck(&self, t: f64, sums: [f64; N], slope: [f64; N]) -> Option<Stop>;

    /// Saves a state; `dense` is the step that it is inside of, none at the start.
    fn save(&mut self, path: &mut SolvedPath<'_>, t: f64, sums: [f64; N], dense: Option<&Dense<N>>);

    /// How often the coefficients were evaluated.
    fn evaluations(&self) -> u64;
}

/// A solution under way.
///
/// The integrator is our own because the system is diagonal but for a few scalars: a step needs no
/// state but the modes, error norms and dense output only concern the sums, and the last stage of a
/// stretch must evaluate the policy from the left. A general solver offers none of this.
#[derive(Debug)]
pub(super) struct Run<'a, S, const N: usize> {
    record: SolvedPath<'a>,
    system: S,
    tolerance: Tolerance,
    watch: Watch,
    t: f64,
    /// The step just tried.
    attempt: Attempt<N>,
}

impl<'a, S: Followed<N>, const N: usize> Run<'a, S, N> {
    pub fn new(system: S, tolerance: Tolerance, times: &'a [f64], keep_path: bool) -> Result<Self> {
        Ok(Run {
            record: SolvedPath::new(times, keep_path)?,
            watch: system.watch(),
            system,
            tolerance: tolerance.share(SHARE),
            t: 0.0,
            attempt: Attempt::NONE,
        })
    }

    pub fn solve(mut self, policy: &dyn Policy) -> Result<Trajectory> {
        let last = self.record.end;
        let (stop, counts) = solve(&mut self, policy, last)?;
        let counts = Counts { evaluations: self.system.evaluations(), ..counts };
        Ok(self.record.finish(stop, counts))
    }

    /// The error of a step over the allowed error: the largest of those of the sums.
    ///
    /// Errors of modes do not cancel in these norms, so that no mode is wrong by more than the sums
    /// may be.
    fn error(&self) -> f64 {
        let Attempt { end, errors } = self.attempt;
        let scales = self.system.scales(self.system.sums(), end);
        let mut worst = 0.0_f64;
        for i in 0..N {
            let allowed = self.tolerance.of(scales[i]);
            let error = combined_error(errors.map(|e| e[i] / allowed));
            // A stage that overflowed is an error without bound; `max` would drop the NaN.
            if error.is_nan() {
                return f64::INFINITY;
            }
            worst = worst.max(error);
        }
        worst
    }
}

impl<S: Followed<N>, const N: usize> Stepper for Run<'_, S, N> {
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
            self.system.save(&mut self.record, 0.0, start, None);
        }
        self.watch.at_start(self.system.risk(start))
    }

    fn time(&self) -> f64 {
        self.t
    }

    fn begin(&mut self, h: f64, end: f64) -> std::result::Result<f64, Stop> {
        let slope = self.system.begin(self.t);
        let sums = self.system.sums();
        if let Some(stop) = self.system.stuck(self.t, sums, slope) {
            return Err(stop);
        }
        if h > 0.0 {
            return Ok(h);
        }
        // A fraction of the time in which the sums would change by their own size.
        let first = self.tolerance.rtol.powf(0.125) / self.system.pace(sums, slope);
        Ok(if first > 0.0 && first.is_finite() { first } else { end })
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
        let watched = self.watch.target.is_some() || self.watch.diverged(self.system.risk(end));
        if !watched && self.record.due(to).is_none() {
            return None;
        }
        let dense = self.system.dense(t, h, latest, end);
        let risk_at = |t| self.system.risk(dense.at(t));
        let stop = if watched { self.watch.event(t, to, risk_at) } else { None };
        let last = last_saved(stop, to);
        while let Some(time) = self.record.due(last) {
            self.system.save(&mut self.record, time, dense.at(time), Some(&dense));
        }
        stop
    }

    fn advance(&mut self, to: f64) {
        self.system.advance();
        self.t = to;
    }
}
