//! What the solvers share: tolerances, conditions that end a path, and the saved path.

use super::times::check_times;
use super::{Counts, PathPoint, Stop, Trajectory};
use crate::error::{Error, Result};
use crate::factors::kernel::Moments;
use crate::factors::step::Step;
use crate::factors::table::FactorTable;
use crate::model::Overlaps;
use crate::policy::{Control, Policy};

/// Errors of $R$ and $D$ that do not matter: `atol + rtol·value`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tolerance {
    pub rtol: f64,
    pub atol: f64,
}

/// No absolute tolerance: $R$ and $D$ are positive, so a relative one makes sense down to zero.
pub(crate) const DEFAULT_TOLERANCE: Tolerance = Tolerance { rtol: 1e-8, atol: 0.0 };

impl Tolerance {
    pub fn check(self) -> Result<()> {
        if !(self.rtol >= 1e-12 && self.rtol <= 0.1) {
            let expected = "the relative tolerance must lie between 1e-12 and 0.1";
            return Err(Error::parameter("rtol", self.rtol, expected));
        }
        if !(self.atol >= 0.0 && self.atol.is_finite()) {
            let expected = "the absolute tolerance must be finite and not negative";
            return Err(Error::parameter("atol", self.atol, expected));
        }
        Ok(())
    }

    /// This share of it.
    pub fn share(self, share: f64) -> Self {
        Tolerance { rtol: share * self.rtol, atol: share * self.atol }
    }

    /// The error allowed on a value of this size; never zero, to be divided by.
    pub fn of(self, value: f64) -> f64 {
        (self.atol + self.rtol * value).max(f64::MIN_POSITIVE)
    }
}

/// Step and policy as the solvers evaluate them, and the number of evaluations.
#[derive(Debug)]
pub(crate) struct Drive<'a> {
    step: &'a Step<'a>,
    policy: &'a dyn Policy,
    factors: Option<FactorTable>,
    pub evaluations: u64,
}

/// Solutions to fewer digits than this may use factors from a table.
const TABULATED: f64 = 1e-9;

impl<'a> Drive<'a> {
    pub fn new(step: &'a Step<'a>, policy: &'a dyn Policy) -> Self {
        Drive { step, policy, factors: None, evaluations: 0 }
    }

    /// Takes factors that are slow to compute from a table along the risk, if the tolerance and the
    /// policy allow it.
    pub fn tabulate(&mut self, tolerance: Tolerance) {
        if tolerance.rtol >= TABULATED {
            self.factors = FactorTable::new(self.step);
        }
    }

    fn moments(&self, risk: f64, c: f64) -> Moments {
        match &self.factors {
            Some(table) => table.under_policy(self.step, self.policy, risk, c),
            None => self.step.moments(risk, c),
        }
    }

    /// $\mu, m_2, \eta, c$ at time $t$ and risk $R$.
    pub fn act(&mut self, t: f64, risk: f64) -> PathPoint {
        // A stage may undershoot zero by the tolerance; the factors are defined from zero on.
        let risk = risk.max(0.0);
        let control = self.policy.at(t, risk);
        let clipped = self.moments(risk, control.c);
        self.evaluations += 1;
        PathPoint { mu: clipped.mu, m2: clipped.m2, eta: control.eta, c: control.c }
    }

    /// Why a path ends whose derivative at time $t$ and risk $R$ is not finite.
    pub fn no_slope(&self, t: f64, risk: f64) -> Stop {
        let m2 = self.step.largest_m2(risk, self.policy.at(t, risk).c);
        if m2.is_infinite() && self.step.noise().second_moment().is_infinite() {
            Stop::InfiniteVariance { t }
        } else {
            Stop::Diverged { t }
        }
    }

    /// $(\eta\mu, \eta^2 m_2)$, which is all that the equations need of step and policy.
    pub fn force(&mut self, t: f64, risk: f64) -> (f64, f64) {
        force(self.act(t, risk))
    }

    /// The step.
    pub fn step(&self) -> &'a Step<'a> {
        self.step
    }

    /// $\eta, c$ at time $t$ and risk $R$, counted as an evaluation.
    pub fn control(&mut self, t: f64, risk: f64) -> Control {
        self.evaluations += 1;
        self.policy.at(t, risk)
    }
}

/// $(\eta\mu, \eta^2 m_2)$.
pub(crate) fn force(PathPoint { mu, m2, eta, .. }: PathPoint) -> (f64, f64) {
    // No step, no noise: also where m2 is infinite.
    if eta == 0.0 { (0.0, 0.0) } else { (eta * mu, eta * eta * m2) }
}

/// The conditions that end a path early.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watch {
    /// The path ends when the risk falls to this.
    pub target: Option<f64>,
    /// The path has diverged when the risk is above this.
    pub limit: f64,
}

impl Watch {
    pub fn check_target(target: Option<f64>) -> Result<()> {
        match target {
            Some(risk) if !(risk >= 0.0 && risk.is_finite()) => {
                let expected = "the target risk must be finite and not negative";
                Err(Error::parameter("target", risk, expected))
            }
            _ => Ok(()),
        }
    }

    /// Whether a path at this risk has diverged.
    pub fn diverged(&self, risk: f64) -> bool {
        risk.is_nan() || risk > self.limit
    }

    /// Whether a path at this risk ends, and why.
    fn verdict(&self, t: f64, risk: f64) -> Option<Stop> {
        if self.diverged(risk) {
            Some(Stop::Diverged { t })
        } else {
            self.target.filter(|target| risk <= *target).map(|_| Stop::TargetReached { t })
        }
    }

    /// Whether the start already ends the path.
    pub fn at_start(&self, risk: f64) -> Option<Stop> {
        self.verdict(0.0, risk)
    }

    /// The first event in a step, located to rounding on the risk as a function of time.
    ///
    /// Without a target only the end is checked: a risk beyond the limit does not come back.
    pub fn event(&self, from: f64, to: f64, risk_at: impl Fn(f64) -> f64) -> Option<Stop> {
        // A dip to the target and back inside one step shows at one of these.
        let probes = if self.target.is_some() { 8 } else { 1 };
        let mut before = from;
        for k in 1..=probes {
            let t = if k == probes {
                to
            } else {
                from + (to - from) * f64::from(k) / f64::from(probes)
            };
            if self.verdict(t, risk_at(t)).is_some() {
                return self.bisect(before, t, risk_at);
            }
            before = t;
        }
        None
    }

    /// The event between a time before it and a time after it.
    fn bisect(
        &self,
        mut before: f64,
        mut after: f64,
        risk_at: impl Fn(f64) -> f64,
    ) -> Option<Stop> {
        loop {
            let middle = 0.5 * (before + after);
            if middle <= before || middle >= after {
                return self.verdict(after, risk_at(after));
            }
            match self.verdict(middle, risk_at(middle)) {
                Some(_) => after = middle,
                None => before = middle,
            }
        }
    }
}

/// Ends of the stretches on which the policy is smooth: its breakpoints inside, then the end.
pub(crate) fn stretches(policy: &dyn Policy, end: f64) -> Vec<f64> {
    let mut ends: Vec<f64> =
        policy.breakpoints().into_iter().filter(|t| *t > 0.0 && *t < end).collect();
    ends.push(end);
    ends.sort_by(f64::total_cmp);
    ends.dedup();
    ends
}

/// The saved part of a path as it grows.
#[derive(Debug)]
pub(crate) struct SolvedPath<'a> {
    wanted: &'a [f64],
    /// The last of the times asked for.
    pub end: f64,
    keep_path: bool,
    trajectory: Trajectory,
}

impl<'a> SolvedPath<'a> {
    pub fn new(times: &'a [f64], keep_path: bool) -> Result<Self> {
        let end = check_times(times)?;
        let mut trajectory = Trajectory::with_capacity(times.len());
        trajectory.path = keep_path.then(|| Vec::with_capacity(times.len()));
        Ok(SolvedPath { wanted: times, end, keep_path, trajectory })
    }

    /// The next time to save, if it is not after `t`.
    pub fn due(&self, t: f64) -> Option<f64> {
        self.wanted.get(self.trajectory.times.len()).copied().filter(|next| *next <= t)
    }

    /// Saves one time; `act` is only called when the path is kept.
    pub fn save(&mut self, t: f64, [risk, half]: [f64; 2], act: impl FnOnce(f64) -> PathPoint) {
        // Dense output may undershoot zero by the tolerance.
        let risk = risk.max(0.0);
        self.trajectory.times.push(t);
        self.trajectory.risk.push(risk);
        self.trajectory.distance.push(2.0 * half.max(0.0));
        if let (true, Some(path)) = (self.keep_path, &mut self.trajectory.path) {
            path.push(act(risk));
        }
    }

    /// Saves one time of a generalised linear model.
    pub fn save_overlaps(&mut self, t: f64, overlaps: Overlaps, distance: f64) {
        self.trajectory.times.push(t);
        self.trajectory.risk.push(overlaps.risk());
        self.trajectory.distance.push(distance);
        self.trajectory.overlaps.get_or_insert_default().push(overlaps);
    }

    pub fn finish(mut self, stop: Stop, counts: Counts) -> Trajectory {
        self.trajectory.stop = stop;
        self.trajectory.counts = counts;
        self.trajectory
    }
}

/// The last time that is saved when a path ends: a risk beyond the limit is not.
pub(crate) fn last_saved(stop: Option<Stop>, to: f64) -> f64 {
    match stop {
        Some(Stop::TargetReached { t }) => t,
        Some(Stop::Diverged { t } | Stop::InfiniteVariance { t }) => t.next_down(),
        _ => to,
    }
}
