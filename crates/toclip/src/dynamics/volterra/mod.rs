//! The integral equation of the risk.

mod collocation;
mod panel;

use super::simulator::{check_radial, divergence_limit};
use super::solver::{DEFAULT_TOLERANCE, SolvedPath, Tolerance, Watch, last_saved, stretches};
use super::{Counts, Stop, Trajectory};
use crate::error::{Error, Result};
use crate::schedule::Policy;
use crate::spectrum::Modes;
use crate::step::Step;
use collocation::NODES;
use panel::{Panel, Point};
use serde::Serialize;

/// More panels than this mean that the policy chatters.
const MOST_PANELS: u64 = 1_000_000;

/// What the defect of a panel may be, as a share of the tolerance. For smooth problems it is a
/// thousand times what the curve is off by; where the policy jumps with the risk it is not.
const SHARE: f64 = 0.5;

/// $R(t) = \sum \lambda v(0) e^{-2\lambda\Gamma_t} + \frac1d \int_0^t \eta_s^2 \tfrac{m_{2,s}}{2}
/// \sum n \lambda^2 e^{-2\lambda(\Gamma_t - \Gamma_s)}\thinspace ds$ with $\Gamma_t = \int_0^t
/// \eta\mu$: the risk as gradient flow, run for the time $\Gamma_t$, and what finite steps add to
/// it.
///
/// Sums are over distinct eigenvalues $\lambda$ of multiplicity $n$; $\eta, c$ come from the policy
/// and $\mu, m_2$ from the noise, all at $R(t)$ itself, so that the equation is nonlinear in $R$
/// and $\Gamma$. In $D$, $\lambda^0$ and $\lambda^1$ take the places of $\lambda^1$ and
/// $\lambda^2$, times two.
///
/// # How it is solved
///
/// By collocation: on a panel of time, $\eta\mu$ and $\eta^2 m_2 e^{2\lambda\Gamma}$ are the
/// polynomials through their values at 12 Gauss points, and those are found by iterating the
/// equation. No derivative of anything is ever taken. The kernel is a sum of exponentials, so
/// everything before the panel enters through one number per eigenvalue. Panels are as long as the
/// misfit of the polynomials at their ends allows, and end at the
/// [breakpoints](Policy::breakpoints) of the policy.
///
/// The options are those of [`Ode`](super::Ode), which computes the same curves by another method.
///
/// ```
/// use toclip::dynamics::{Ode, Volterra, linear_times};
/// use toclip::noise::StudentT;
/// use toclip::schedule::{OpenLoop, Schedule};
/// use toclip::spectrum::{Modes, Spectrum, Start};
///
/// let modes = Modes::new(&Spectrum::power_law(500, 0.2)?, &Start::Uniform { norm: 1.0 })?;
/// let noise = StudentT::new(1.0, 0.5)?;
/// let policy = OpenLoop::new(Schedule::constant(0.6)?, Schedule::constant(0.4)?);
/// let times = linear_times(15.0, 16)?;
/// let solution = Volterra::new(&modes, &noise, &policy).solve(&times)?;
/// let ode = Ode::new(&modes, &noise, &policy).solve(&times)?;
/// for (k, r) in solution.trajectory.risk.iter().enumerate() {
///     assert!((r / ode.risk[k] - 1.0).abs() < 1e-8);
///     assert!((solution.flow[k] + solution.correction[k] - r).abs() < 1e-15);
/// }
/// // In the end it is the noise of the steps that keeps the risk up.
/// assert!(solution.correction[15] > 0.4 * solution.flow[15]);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Volterra<'a> {
    modes: &'a Modes,
    step: Step<'a>,
    policy: &'a dyn Policy,
    tolerance: Tolerance,
    target: Option<f64>,
    keep_path: bool,
}

/// $R(t)$ and the two parts that it is made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VolterraSolution {
    /// $R$ and $D$; a step in its counts is a panel.
    pub trajectory: Trajectory,
    /// $\sum \lambda v(0) e^{-2\lambda\Gamma_t}$, the risk of gradient flow, at the same times.
    pub flow: Vec<f64>,
    /// $\frac1d \int_0^t \eta_s^2 \tfrac{m_{2,s}}{2} \sum n \lambda^2 e^{-2\lambda(\Gamma_t -
    /// \Gamma_s)}\thinspace ds$, the finite-step correction, at the same times.
    pub correction: Vec<f64>,
    /// $\Gamma_t = \int_0^t \eta\mu$ at the same times.
    pub gamma: Vec<f64>,
}

impl<'a> Volterra<'a> {
    /// The equation of these modes, this step and this policy.
    pub fn new(modes: &'a Modes, step: impl Into<Step<'a>>, policy: &'a dyn Policy) -> Self {
        let step = step.into();
        let tolerance = DEFAULT_TOLERANCE;
        Volterra { modes, step, policy, tolerance, target: None, keep_path: false }
    }

    /// Errors of $R$ and $D$ up to `atol + rtol·value` do not matter.
    pub fn tolerance(mut self, rtol: f64, atol: f64) -> Self {
        self.tolerance = Tolerance { rtol, atol };
        self
    }

    /// Stop when $R$ falls to `risk`.
    pub fn target(mut self, risk: f64) -> Self {
        self.target = Some(risk);
        self
    }

    /// Whether to save $\mu, m_2, \eta, c$ as well.
    pub fn keep_path(mut self, keep: bool) -> Self {
        self.keep_path = keep;
        self
    }

    /// The equation has one $\mu$ and one kernel for all modes.
    fn check_step(&self) -> Result<()> {
        if self.step.privacy().is_some() {
            return Err(Error::Invalid(
                "the integral equation does not include the noise of private SGD: use the ODE"
                    .into(),
            ));
        }
        check_radial(&self.step, "the integral equation")
    }

    /// $R$, $D$ and their parts at the given increasing times, from a start at $t = 0$.
    ///
    /// # Errors
    /// As [`Ode::solve`](super::Ode::solve).
    pub fn solve(&self, times: &[f64]) -> Result<VolterraSolution> {
        self.tolerance.check()?;
        Watch::check_target(self.target)?;
        self.check_step()?;
        let mut run = Run {
            panel: Panel::new(self.modes, &self.step, self.policy),
            tolerance: self.tolerance,
            watch: Watch {
                target: self.target,
                limit: divergence_limit(self.modes.risk(), &self.step, self.policy),
            },
            h: 0.0,
            counts: Counts::default(),
            record: SolvedPath::new(times, self.keep_path)?,
            points: Vec::with_capacity(times.len()),
        };
        run.panel.drive.tabulate(self.tolerance);
        let stop = run.whole(self.policy)?;
        let counts = Counts { evaluations: run.panel.drive.evaluations, ..run.counts };
        Ok(VolterraSolution {
            trajectory: run.record.finish(stop, counts),
            flow: run.points.iter().map(|p| p.flow[0]).collect(),
            correction: run.points.iter().map(|p| p.correction[0]).collect(),
            gamma: run.points.iter().map(|p| p.gamma).collect(),
        })
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
    points: Vec<Point>,
}

impl Run<'_> {
    fn save(&mut self, t: f64, point: Point) {
        self.record.save(t, point.sums(), |risk| self.panel.drive.act(t, risk));
        self.points.push(point);
    }

    fn whole(&mut self, policy: &dyn Policy) -> Result<Stop> {
        let start = self.panel.start();
        if self.record.due(0.0).is_some() {
            self.save(0.0, start);
        }
        if let Some(stop) = self.watch.at_start(start.sums()[0]) {
            return Ok(stop);
        }
        for end in stretches(policy, self.record.end) {
            let risk = self.panel.start().sums()[0];
            let (drift, heat) = self.panel.drive.force(self.panel.t, risk);
            if !(drift + heat).is_finite() {
                return Ok(self.panel.drive.no_slope(self.panel.t, risk));
            }
            if self.h == 0.0 {
                self.h = if drift > 0.0 { 1.0 / drift } else { end };
            }
            if let Some(stop) = self.through(end)? {
                return Ok(stop);
            }
        }
        Ok(Stop::Finished)
    }

    /// Panels to the end of a stretch on which the policy is smooth.
    fn through(&mut self, end: f64) -> Result<Option<Stop>> {
        let latest = end.next_down();
        let least = 8.0 * f64::EPSILON * end;
        // Rounding in the sums over modes is a few parts in 1e16.
        let converged = (1e-3 * self.tolerance.rtol).max(1e-14);
        let mut growth: f64 = 4.0;
        while self.panel.t < end {
            if self.counts.steps + self.counts.rejected >= MOST_PANELS {
                return Err(Error::Invalid(format!(
                    "{MOST_PANELS} panels of the integral equation only reached t = {} of {}; use \
                     a shorter time, a looser tolerance, or a policy that does not oscillate with \
                     the risk",
                    self.panel.t, self.record.end
                )));
            }
            let (t, left) = (self.panel.t, end - self.panel.t);
            // Two halves rather than a panel and a sliver.
            let h = if self.h >= left { left } else { self.h.min(0.5 * left) };
            let to = if h == left { end } else { t + h };
            let solved = self.panel.solve(h, latest, converged);
            let error = if solved { self.error(to, latest) } else { f64::INFINITY };
            let factor = 0.9 * error.powf(-1.0 / (NODES as f64 + 1.0));
            if error > 1.0 && h > least {
                self.counts.rejected += 1;
                self.h = h * factor.clamp(0.25, 0.9);
                growth = 1.0;
                continue;
            }
            let risk = self.panel.at(to).sums()[0];
            // A panel that is as small as panels can be and still has no solution.
            if !risk.is_finite() || !solved && self.watch.diverged(risk) {
                return Ok(Some(Stop::Diverged { t }));
            }
            self.counts.steps += 1;
            let watched = self.watch.target.is_some() || self.watch.diverged(risk);
            let stop = if watched {
                self.watch.event(t, to, |t| self.panel.at(t).sums()[0])
            } else {
                None
            };
            let last = last_saved(stop, to);
            while let Some(time) = self.record.due(last) {
                self.save(time, self.panel.at(time));
            }
            if stop.is_some() {
                return Ok(stop);
            }
            self.panel.advance(to);
            self.h = h * factor.clamp(0.25, growth);
            growth = 4.0;
        }
        Ok(None)
    }

    /// The defect of the panel in units of what is allowed.
    fn error(&mut self, end: f64, latest: f64) -> f64 {
        let finish = self.panel.at(end).sums();
        let defect = self.panel.defect(end, latest);
        let allowed = self.tolerance.share(SHARE);
        let error = [0, 1].map(|i| defect[i] / allowed.of(finish[i]));
        error[0].max(error[1])
    }
}
