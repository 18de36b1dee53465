//! The ODE with momentum, from its start to its end.

use super::Momentum;
use super::radau::NODES;
use super::radau_step::{RadauStep, RiskSums};
use crate::dynamics::solver::{SolvedPath, Tolerance, Watch, last_saved};
use crate::dynamics::step_control::{SHORTEN, StepControl, Stepper, TimeStep, solve};
use crate::dynamics::{Counts, Stop, Trajectory};
use crate::error::Result;
use crate::problem::Problem;

/// The largest error estimate of a step, as a share of the tolerance of the curve.
const SHARE: f64 = 0.5;

/// The ODE with momentum, and the tolerance of its solution.
#[derive(Debug)]
pub(crate) struct MomentumOde<'a> {
    pub problem: &'a Problem,
    pub momentum: &'a Momentum,
    pub tolerance: Tolerance,
    pub target: Option<f64>,
    pub keep_path: bool,
}

impl MomentumOde<'_> {
    pub fn solve(&self, times: &[f64]) -> Result<Trajectory> {
        let mut run = Run {
            panel: RadauStep::new(self.problem, self.momentum),
            allowed: self.tolerance.share(SHARE),
            watch: Watch { target: self.target, limit: self.problem.divergence_limit() },
            solved: false,
            record: SolvedPath::new(times, self.keep_path)?,
        };
        run.panel.drive.tabulate(self.tolerance);
        let last = run.record.end;
        let (stop, counts) = solve(&mut run, self.problem.policy(), last)?;
        let counts = Counts { evaluations: run.panel.drive.evaluations, ..counts };
        Ok(run.record.finish(stop, counts))
    }
}

/// A solution under way.
#[derive(Debug)]
struct Run<'a> {
    panel: RadauStep<'a>,
    /// The error allowed in a step.
    allowed: Tolerance,
    watch: Watch,
    /// Whether the iteration of the step just tried converged.
    solved: bool,
    record: SolvedPath<'a>,
}

impl Run<'_> {
    fn save_at(&mut self, t: f64, sums: RiskSums) {
        self.record.save(t, sums, |risk| self.panel.drive.act(t, risk));
    }
}

impl Stepper for Run<'_> {
    const CONTROL: StepControl = StepControl {
        most_steps: 1_000_000,
        order: NODES as f64 + 1.0,
        least_retry: 0.2,
        range: (0.2, 6.0),
        unit: "steps of the ODE with momentum",
        remedy: SHORTEN,
    };

    fn start(&mut self) -> Option<Stop> {
        let start = self.panel.start();
        if self.record.due(0.0).is_some() {
            self.save_at(0.0, start);
        }
        self.watch.at_start(start[0])
    }

    fn time(&self) -> f64 {
        self.panel.t
    }

    fn begin(&mut self, _h: f64, end: f64) -> std::result::Result<f64, Stop> {
        let (t, risk) = (self.panel.t, self.panel.start()[0]);
        let forces = self.panel.forces(t, risk);
        if !forces.is_finite() {
            return Err(self.panel.drive.no_slope(t, risk));
        }
        // The buffer follows a jump of the policy at its own pace.
        let pace = 0.5 / (forces.forget + forces.follow);
        Ok(if pace > 0.0 && pace.is_finite() { pace } else { end })
    }

    fn attempt(&mut self, TimeStep { h, latest, .. }: TimeStep) -> f64 {
        // Rounding in the sums over modes is a few parts in 1e16.
        let converged = (0.02 * self.allowed.rtol).max(1e-14);
        let errors = self.panel.solve(h, latest, converged);
        self.solved = errors.is_some();
        let (start, finish) = (self.panel.start(), self.panel.end());
        errors.map_or(f64::INFINITY, |errors| {
            let error = [0, 1].map(|i| errors[i] / self.allowed.of(start[i].max(finish[i])));
            // `max` would drop a NaN.
            if (error[0] + error[1]).is_nan() { f64::INFINITY } else { error[0].max(error[1]) }
        })
    }

    fn is_solved(&mut self, _step: TimeStep) -> bool {
        self.solved && self.panel.end().iter().all(|s| s.is_finite())
    }

    fn save(&mut self, TimeStep { t, to, .. }: TimeStep) -> Option<Stop> {
        let watched = self.watch.target.is_some() || self.watch.diverged(self.panel.end()[0]);
        let stop = if watched { self.watch.event(t, to, |t| self.panel.at(t)[0]) } else { None };
        let last = last_saved(stop, to);
        while let Some(time) = self.record.due(last) {
            self.save_at(time, self.panel.at(time));
        }
        stop
    }

    fn advance(&mut self, to: f64) {
        self.panel.advance(to);
    }
}
