//! One schedule on one problem: the risk it leads to, predicted and, where asked for, simulated.

use anyhow::{Context, Result};
use toclip::Rule;
use toclip::dynamics::{PathPoint, Stop, Trajectory};
use toclip::ensemble::Summary;
use toclip::policy::{Schedule, Shape};
use toclip::verdict::{Candidate, End, Rate, Threshold};

use crate::experiment::run::run_all;
use crate::experiment::{Experiment, Method, Origin, Prepared, band_edges};
use crate::plot::{Axis, Chart, Series};

/// A rule with its threshold, and a learning rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Treatment {
    pub rule: Rule,
    pub threshold: Threshold,
    pub rate: Rate,
}

/// A schedule, and the risk it leads to.
#[derive(Clone)]
pub struct ScheduleRun {
    /// In files.
    pub key: &'static str,
    /// For people.
    pub label: String,
    /// By the ODE.
    pub path: Trajectory,
    /// Of C-SGD.
    pub runs: Option<Summary>,
    /// What it does to gradients; `None` for SGD without clipping, and for what is shown only for
    /// comparison.
    pub treatment: Option<Treatment>,
}

impl ScheduleRun {
    /// The schedule of an experiment, whatever its methods.
    pub fn new(
        (key, label): (&'static str, String),
        experiment: Experiment,
        origin: &Origin,
        simulate: bool,
    ) -> Result<Self> {
        let methods = if simulate { vec![Method::Ode, Method::Sgd] } else { vec![Method::Ode] };
        let experiment = Experiment { methods, ..experiment };
        let curves = run_all(&experiment, &Prepared::new(&experiment, origin)?)?;
        let path = curves.iter().find_map(|curve| curve.path().cloned());
        let runs = curves.iter().find_map(|curve| curve.band().cloned());
        let path = path.context("the ODE gave no path")?;
        Ok(ScheduleRun { key, label, path, runs, treatment: None })
    }

    /// The schedule as a candidate for a verdict.
    pub fn candidate(&self) -> Option<Candidate> {
        let Treatment { rule, threshold, rate } = self.treatment.clone()?;
        Some(Candidate { name: self.key, rule, threshold, rate, end: self.verdict_end() })
    }

    /// The end for a verdict.
    pub fn verdict_end(&self) -> End {
        match (self.end(), self.path.stop.diverged_at()) {
            (Some(risk), _) => End::Risk(risk),
            (None, t) => End::Diverged(t.unwrap_or(0.0)),
        }
    }

    /// R at the end, if the path got there.
    pub fn end(&self) -> Option<f64> {
        let finished = self.path.stop == Stop::Finished;
        self.path.risk.last().copied().filter(|_| finished)
    }

    /// A function of η, c and the factors along the path.
    pub fn along(&self, of: impl Fn(&PathPoint) -> f64) -> Vec<f64> {
        self.path.path.iter().flatten().map(of).collect()
    }

    /// η·μ along the path: the rate of unclipped SGD with the same descent.
    pub fn effective_rate(&self) -> toclip::Result<Schedule> {
        let values = self.along(|p| p.eta * p.mu);
        Schedule::new(Shape::Table { times: self.path.times.clone(), values })
    }
}

/// Schedules that reach the end, with the place of their colour.
fn finished(runs: &[ScheduleRun]) -> impl Iterator<Item = (usize, &ScheduleRun)> {
    runs.iter().enumerate().filter(|(_, run)| run.end().is_some())
}

/// The predicted risk of each schedule, with the band of its runs.
pub fn risk_chart(runs: &[ScheduleRun], subtitle: &str, y: Axis) -> Chart {
    let chart = Chart::new("Risk").subtitle(subtitle).x(Axis::linear("time t = k/d")).y(y);
    let series = finished(runs).map(|(slot, run)| {
        let Trajectory { times, risk, .. } = &run.path;
        let series = match &run.runs {
            Some(runs) => {
                let [low, high] = band_edges(runs);
                Series::band(&run.label, times, low, high).middle(risk)
            }
            None => Series::line(&run.label, times, risk),
        };
        series.slot(slot)
    });
    series.fold(chart, Chart::series)
}

/// The threshold of each schedule that has one.
pub fn threshold_chart(runs: &[ScheduleRun]) -> Chart {
    let time = Axis::linear("time t = k/d");
    let chart = Chart::new("Threshold").x(time).y(Axis::linear("threshold c(t)"));
    let lines = finished(runs).filter_map(|(slot, run)| {
        let c = run.along(|p| p.c);
        let clips = c.iter().any(|c| c.is_finite());
        clips.then(|| Series::line(&run.label, &run.path.times, &c).slot(slot))
    });
    lines.fold(chart, Chart::series)
}
