//! The integral equation of the risk.

mod collocation;
mod panel;

use super::solver::{DEFAULT_TOLERANCE, SolvedPath, Tolerance, Watch, last_saved};
use super::step_control::{SHORTEN, StepControl, Stepper, TimeStep, solve};
use super::{Counts, Stop, Trajectory};
use crate::error::Result;
use crate::problem::{Method, Problem};
use collocation::NODES;
use panel::{Panel, PanelPoint};
use serde::Serialize;

/// The largest defect of a panel, as a share of the tolerance. For smooth problems the defect is a
/// thousand times the error of the curve; where the policy jumps with the risk it is not.
const SHARE: f64 = 0.5;

/// $R(t) = \sum \lambda v(0) e^{-2\lambda\Gamma_t} + \frac1d \int_0^t \eta_s^2 \tfrac{m_{2,s}}{2}
/// \sum n \lambda^2 e^{-2\lambda(\Gamma_t - \Gamma_s)}\thinspace ds$ with $\Gamma_t = \int_0^t
/// \eta\mu$: the risk of gradient flow at time $\Gamma_t$ plus the contribution of finite steps.
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
/// [breakpoints](crate::policy::Policy::breakpoints) of the policy.
///
/// The options are those of [`Ode`](super::Ode), which computes the same curves by another method.
///
/// ```
/// use toclip::Problem;
/// use toclip::dynamics::{Ode, Volterra, linear_times};
/// use toclip::noise::StudentT;
/// use toclip::policy::OpenLoop;
/// use toclip::spectrum::{Modes, Spectrum, Start};
///
/// let modes = Modes::new(&Spectrum::power_law(500, 0.2)?, &Start::Uniform { norm: 1.0 })?;
/// let problem = Problem::new(modes, StudentT::new(1.0, 0.5)?, OpenLoop::constant(0.6, 0.4)?)?;
/// let times = linear_times(15.0, 16)?;
/// let solution = Volterra::new(&problem)?.solve(&times)?;
/// let ode = Ode::new(&problem)?.solve(&times)?;
/// for (k, r) in solution.trajectory.risk.iter().enumerate() {
///     assert!((r / ode.risk[k] - 1.0).abs() < 1e-8);
///     assert!((solution.flow[k] + solution.correction[k] - r).abs() < 1e-15);
/// }
/// // In the end it is the noise of the steps that keeps the risk up.
/// assert!(solution.correction[15] > 0.4 * solution.flow[15]);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Volterra {
    problem: Problem,
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

impl Volterra {
    /// The equation of a problem.
    ///
    /// # Errors
    /// [`Error::Combination`](crate::Error::Combination) for a problem that has no such equation.
    pub fn new(problem: &Problem) -> Result<Self> {
        problem.check_method(Method::Volterra)?;
        let (problem, tolerance) = (problem.clone(), DEFAULT_TOLERANCE);
        Ok(Volterra { problem, tolerance, target: None, keep_path: false })
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

    /// $R$, $D$ and their parts at the given increasing times, from a start at $t = 0$.
    ///
    /// # Errors
    /// As [`Ode::solve`](super::Ode::solve).
    pub fn solve(&self, times: &[f64]) -> Result<VolterraSolution> {
        self.tolerance.check()?;
        Watch::check_target(self.target)?;
        let mut run = Run {
            panel: Panel::new(&self.problem),
            tolerance: self.tolerance,
            watch: Watch { target: self.target, limit: self.problem.divergence_limit() },
            solved: false,
            record: SolvedPath::new(times, self.keep_path)?,
            points: Vec::with_capacity(times.len()),
        };
        run.panel.drive.tabulate(self.tolerance);
        let last = run.record.end;
        let (stop, counts) = solve(&mut run, self.problem.policy(), last)?;
        let counts = Counts { evaluations: run.panel.drive.evaluations, ..counts };
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
    /// Whether the iteration on the panel just tried converged.
    solved: bool,
    record: SolvedPath<'a>,
    points: Vec<PanelPoint>,
}

impl Stepper for Run<'_> {
    const CONTROL: StepControl = StepControl {
        most_steps: 1_000_000,
        order: NODES as f64 + 1.0,
        least_retry: 0.25,
        range: (0.25, 4.0),
        unit: "panels of the integral equation",
        remedy: SHORTEN,
    };

    fn start(&mut self) -> Option<Stop> {
        let start = self.panel.start();
        if self.record.due(0.0).is_some() {
            self.save_at(0.0, start);
        }
        self.watch.at_start(start.sums()[0])
    }

    fn time(&self) -> f64 {
        self.panel.t
    }

    fn begin(&mut self, h: f64, end: f64) -> std::result::Result<f64, Stop> {
        let risk = self.panel.start().sums()[0];
        let (drift, heat) = self.panel.drive.force(self.panel.t, risk);
        if !(drift + heat).is_finite() {
            return Err(self.panel.drive.no_slope(self.panel.t, risk));
        }
        Ok(if h > 0.0 {
            h
        } else if drift > 0.0 {
            1.0 / drift
        } else {
            end
        })
    }

    fn attempt(&mut self, TimeStep { h, to, latest, .. }: TimeStep) -> f64 {
        // Rounding in the sums over modes is a few parts in 1e16.
        let converged = (1e-3 * self.tolerance.rtol).max(1e-14);
        self.solved = self.panel.solve(h, latest, converged);
        if self.solved { self.error(to, latest) } else { f64::INFINITY }
    }

    fn is_solved(&mut self, TimeStep { to, .. }: TimeStep) -> bool {
        let risk = self.panel.at(to).sums()[0];
        risk.is_finite() && (self.solved || !self.watch.diverged(risk))
    }

    fn save(&mut self, TimeStep { t, to, .. }: TimeStep) -> Option<Stop> {
        let risk_at = |t: f64| self.panel.at(t).sums()[0];
        let watched = self.watch.target.is_some() || self.watch.diverged(risk_at(to));
        let stop = if watched { self.watch.event(t, to, risk_at) } else { None };
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

impl Run<'_> {
    fn save_at(&mut self, t: f64, point: PanelPoint) {
        self.record.save(t, point.sums(), |risk| self.panel.drive.act(t, risk));
        self.points.push(point);
    }

    /// The defect of the panel over the allowed one.
    fn error(&mut self, end: f64, latest: f64) -> f64 {
        let finish = self.panel.at(end).sums();
        let defect = self.panel.defect(end, latest);
        let allowed = self.tolerance.share(SHARE);
        let error = [0, 1].map(|i| defect[i] / allowed.of(finish[i]));
        error[0].max(error[1])
    }
}
