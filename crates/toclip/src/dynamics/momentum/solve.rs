//! The ODE with momentum, from its start to its end.

use super::panel::{Panel, Sums};
use super::radau::NODES;
use crate::dynamics::simulator::divergence_limit;
use crate::dynamics::solver::{SolvedPath, Tolerance, Watch, last_saved, stretches};
use crate::dynamics::{Counts, Stop, Trajectory};
use crate::error::{Error, Result};
use crate::momentum::Momentum;
use crate::schedule::Policy;
use crate::spectrum::Modes;
use crate::step::Step;

/// More steps than this mean that the horizon is far too long, or that the policy chatters.
const MOST_STEPS: u64 = 1_000_000;

/// What the estimate of a step may be, as a share of the tolerance of the curve.
const SHARE: f64 = 0.5;

/// What to solve, and how well.
#[derive(Debug)]
pub(in crate::dynamics) struct Problem<'a> {
    pub modes: &'a Modes,
    pub step: &'a Step<'a>,
    pub policy: &'a dyn Policy,
    pub momentum: Momentum,
    pub tolerance: Tolerance,
    pub target: Option<f64>,
    pub keep_path: bool,
}

impl Problem<'_> {
    pub fn solve(&self, times: &[f64]) -> Result<Trajectory> {
        self.step.check_radial()?;
        let mut run = Run {
            panel: Panel::new(self.modes, self.step, self.policy, &self.momentum),
            tolerance: self.tolerance,
            watch: Watch {
                target: self.target,
                limit: divergence_limit(self.modes.risk(), self.step, self.policy),
            },
            h: 0.0,
            counts: Counts::default(),
            record: SolvedPath::new(times, self.keep_path)?,
        };
        run.panel.drive.tabulate(self.tolerance);
        let stop = run.whole(self.policy)?;
        let counts = Counts { evaluations: run.panel.drive.evaluations, ..run.counts };
        Ok(run.record.finish(stop, counts))
    }
}

/// A solution under way.
#[derive(Debug)]
struct Run<'a> {
    panel: Panel<'a>,
    tolerance: Tolerance,
    watch: Watch,
    h: f64,
    counts: Counts,
    record: SolvedPath<'a>,
}

impl Run<'_> {
    fn save(&mut self, t: f64, sums: Sums) {
        self.record.save(t, sums, |risk| self.panel.drive.act(t, risk));
    }

    fn whole(&mut self, policy: &dyn Policy) -> Result<Stop> {
        let start = self.panel.start();
        if self.record.due(0.0).is_some() {
            self.save(0.0, start);
        }
        if let Some(stop) = self.watch.at_start(start[0]) {
            return Ok(stop);
        }
        for end in stretches(policy, self.record.end) {
            let (t, risk) = (self.panel.t, self.panel.start()[0]);
            let forces = self.panel.forces(t, risk);
            if !forces.is_finite() {
                return Ok(self.panel.drive.no_slope(t, risk));
            }
            // The buffer follows a jump of the policy at its own pace.
            let pace = 0.5 / (forces.forget + forces.follow);
            self.h = if pace > 0.0 && pace.is_finite() { pace } else { end };
            if let Some(stop) = self.through(end)? {
                return Ok(stop);
            }
        }
        Ok(Stop::Finished)
    }

    /// Steps to the end of a stretch on which the policy is smooth.
    fn through(&mut self, end: f64) -> Result<Option<Stop>> {
        // The policy may jump at the end: the nodes there must see what was before.
        let latest = end.next_down();
        let least = 8.0 * f64::EPSILON * end;
        let allowed = self.tolerance.share(SHARE);
        // Rounding in the sums over modes is a few parts in 1e16.
        let converged = (0.02 * allowed.rtol).max(1e-14);
        let mut growth: f64 = 6.0;
        while self.panel.t < end {
            if self.counts.steps + self.counts.rejected >= MOST_STEPS {
                return Err(Error::Invalid(format!(
                    "{MOST_STEPS} steps of the ODE with momentum only reached t = {} of {}; use a \
                     shorter time, a looser tolerance, or a policy that does not oscillate with \
                     the risk",
                    self.panel.t, self.record.end
                )));
            }
            let (t, left) = (self.panel.t, end - self.panel.t);
            // Two halves rather than a step and a sliver.
            let h = if self.h >= left { left } else { self.h.min(0.5 * left) };
            let to = if h == left { end } else { t + h };
            let errors = self.panel.solve(h, latest, converged);
            let (start, finish) = (self.panel.start(), self.panel.end());
            let error = errors.map_or(f64::INFINITY, |errors| {
                let error = [0, 1].map(|i| errors[i] / allowed.of(start[i].max(finish[i])));
                // `max` would drop a NaN.
                if (error[0] + error[1]).is_nan() { f64::INFINITY } else { error[0].max(error[1]) }
            });
            let factor = 0.9 * error.powf(-1.0 / (NODES as f64 + 1.0));
            if error > 1.0 && h > least {
                self.counts.rejected += 1;
                self.h = h * factor.clamp(0.2, 0.9);
                growth = 1.0;
                continue;
            }
            // A step that is as small as steps can be and still has no solution.
            if !finish.iter().all(|s| s.is_finite()) || errors.is_none() {
                return Ok(Some(Stop::Diverged { t }));
            }
            self.counts.steps += 1;
            let watched = self.watch.target.is_some() || self.watch.diverged(finish[0]);
            let stop =
                if watched { self.watch.event(t, to, |t| self.panel.at(t)[0]) } else { None };
            let last = last_saved(stop, to);
            while let Some(time) = self.record.due(last) {
                self.save(time, self.panel.at(time));
            }
            if stop.is_some() {
                return Ok(stop);
            }
            self.panel.advance(to);
            self.h = h * factor.clamp(0.2, growth);
            growth = 6.0;
        }
        Ok(None)
    }
}
