//! The risk at the end against the threshold, each with the rate that is best for it, and runs of
//! C-SGD at some of the thresholds.

use std::sync::Arc;

use anyhow::{Context, Result};
use rayon::prelude::*;
use toclip::Step;
use toclip::dynamics::{Collapsed, Sgd, Simulator};
use toclip::ensemble::{Ensemble, Statistics};
use toclip::policy::{OpenLoop, Policy, TunedRate, tune_rate};
use toclip::spectrum::Modes;

use super::{Agreement, ERRORS, check, digits};
use crate::output::Table;
use crate::plot::{Chart, Series};
use crate::report::Claim;
use toclip_words::percent;

/// The error allowed to the theory, as a share of the risk and in units of 1/d: C-SGD without clipping
/// on two scales ends 1.4% lower than its ODE at d = 350.
const ALLOWED: f64 = 5.0;

/// A problem on which the rate is tuned for the risk at the end, and how C-SGD is simulated on it.
pub struct TuningProblem<'a> {
    pub modes: &'a Modes,
    pub step: Step<'static>,
    pub time: f64,
    /// In one variable for each eigenvalue instead of all coordinates.
    pub collapsed: bool,
    pub ensemble: &'a Ensemble,
}

impl TuningProblem<'_> {
    fn simulator(&self, policy: Arc<dyn Policy>) -> toclip::Result<Box<dyn Simulator>> {
        let (modes, step) = (self.modes, self.step.clone());
        Ok(match self.collapsed {
            true => Box::new(Collapsed::new(modes, step, policy)?),
            false => Box::new(Sgd::new(modes, step, policy)?),
        })
    }
}

/// A threshold, the rate that ends lowest with it, and where it ends: R(T), or the loss in
/// classification.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuned {
    pub c: f64,
    pub eta: f64,
    pub risk: f64,
}

impl Tuned {
    pub fn policy(&self) -> toclip::Result<Arc<dyn Policy>> {
        Ok(Arc::new(OpenLoop::constant(self.eta, self.c)?))
    }
}

/// Thresholds at equal ratios, both ends included.
pub fn log_spaced((low, high): (f64, f64), points: usize) -> Vec<f64> {
    let at = |k: usize| low * (high / low).powf(k as f64 / (points - 1) as f64);
    (0..points).map(at).collect()
}

/// The mean of runs at a point of a curve.
#[derive(Debug, Clone)]
pub struct Simulated {
    /// "clip at c = 0.3".
    pub name: String,
    pub at: Tuned,
    pub mean: f64,
    pub standard_error: f64,
    /// How far the mean is from the theory, as a share of it.
    pub gap: f64,
    /// How far it is beyond the error allowed to the theory, in standard errors.
    pub errors: f64,
    /// That error as a share of the risk, in units of 1/d.
    pub allowed: f64,
}

/// The risk at the end against the threshold, and runs at some of the points.
#[derive(Debug, Clone)]
pub struct TunedCurve {
    /// In the order of the thresholds.
    pub points: Vec<Tuned>,
    pub runs: Vec<Simulated>,
}

impl TunedCurve {
    /// R(T) at every threshold, with the best constant rate for it.
    pub fn new(problem: &TuningProblem, c: &[f64]) -> Result<Self> {
        let at = |&c: &f64| {
            let TunedRate { eta, risk } = tune_rate(problem.modes, &problem.step, c, problem.time)?;
            Ok(Tuned { c, eta, risk })
        };
        let points = c.par_iter().map(at).collect::<Result<_>>()?;
        Ok(TunedCurve { points, runs: Vec::new() })
    }

    /// Simulates the points with these numbers.
    pub fn simulate(
        &mut self,
        points: impl IntoIterator<Item = usize>,
        name: &str,
        problem: &TuningProblem,
    ) -> Result<()> {
        for index in points {
            let at = *self.points.get(index).context("no such threshold")?;
            self.runs.push(Simulated::new(format!("{name} at c = {}", digits(at.c)), at, problem)?);
        }
        Ok(())
    }

    /// The threshold that ends lowest.
    pub fn best(&self) -> Result<Tuned> {
        let lowest = self.points.iter().min_by(|a, b| a.risk.total_cmp(&b.risk));
        lowest.copied().context("no thresholds")
    }

    pub fn run_at(&self, at: &Tuned) -> Option<&Simulated> {
        self.runs.iter().find(|run| run.at == *at)
    }

    pub fn draw(&self, chart: Chart, name: &str, slot: usize) -> Chart {
        let theory = self.points.iter().map(|at| (at.c, at.risk));
        let runs = self.runs.iter().map(|run| (run.at.c, run.mean));
        line_and_points(chart, (name, slot), theory, runs)
    }
}

/// The theory as a line, and runs as points of the same colour.
pub fn line_and_points(
    chart: Chart,
    (name, slot): (&str, usize),
    theory: impl Iterator<Item = (f64, f64)>,
    runs: impl Iterator<Item = (f64, f64)>,
) -> Chart {
    let (x, y): (Vec<f64>, Vec<f64>) = theory.unzip();
    let (at, means): (Vec<f64>, Vec<f64>) = runs.unzip();
    chart
        .series(Series::line(name, &x, &y).slot(slot))
        .series(Series::points("", &at, &means).slot(slot))
}

/// A point of a curve, and the setting that the curve belongs to.
pub type Row<'a, S> = (S, &'a Tuned, Option<&'a Simulated>);

/// All points of all curves.
pub fn rows<'a, S: Copy>(curves: impl Iterator<Item = (S, &'a TunedCurve)>) -> Vec<Row<'a, S>> {
    let of = |(setting, curve): (S, &'a TunedCurve)| {
        let row = move |point| (setting, point, curve.run_at(point));
        curve.points.iter().map(row)
    };
    curves.flat_map(of).collect()
}

/// Adds the columns of the points to those of their settings.
pub fn point_columns<S>(table: Table, rows: &[Row<'_, S>]) -> Table {
    let run = |of: fn(&Simulated) -> f64| rows.iter().map(move |row| row.2.map_or(f64::NAN, of));
    table
        .numbers("c", rows.iter().map(|row| row.1.c))
        .numbers("eta", rows.iter().map(|row| row.1.eta))
        .numbers("ode", rows.iter().map(|row| row.1.risk))
        .numbers("sgd", run(|run| run.mean))
        .numbers("sgd_standard_error", run(|run| run.standard_error))
}

impl Simulated {
    pub fn new(name: String, at: Tuned, problem: &TuningProblem) -> Result<Self> {
        let simulator = problem.simulator(at.policy()?)?;
        let band = problem.ensemble.run(&*simulator, &[problem.time], None)?;
        let finished = band.diverged.is_empty();
        Ok(Self::of(name, at, &band.risk, finished, (ALLOWED, problem.modes.dim())))
    }

    /// From the statistics of runs at the end.
    pub fn of(
        name: String,
        at: Tuned,
        runs: &Statistics,
        all_finished: bool,
        (allowed, dim): (f64, f64),
    ) -> Self {
        let allowance = allowed * at.risk / dim;
        let times = &[0.0][..runs.mean.len()];
        let Agreement { gap, errors, .. } =
            Agreement::of(&[at.risk], times, runs, all_finished, allowance);
        let first = |values: &[f64]| values.first().copied().unwrap_or(f64::NAN);
        let (mean, standard_error) = (first(&runs.mean), first(&runs.standard_error));
        Simulated { name, at, mean, standard_error, gap, errors, allowed }
    }
}

/// That theory and simulation agree at all of these points.
pub fn agreement_claim<'a>(
    name: &str,
    all: impl Iterator<Item = &'a Simulated> + Clone,
    runs: u64,
) -> Claim {
    let Some(worst) = all.clone().max_by(|a, b| a.errors.total_cmp(&b.errors)) else {
        return check(name, "nothing was simulated", false);
    };
    let largest = percent(all.clone().map(|one| one.gap).fold(0.0, f64::max));
    let Simulated { name: point, gap, errors, allowed, .. } = worst;
    let (gap, points) = (percent(*gap), all.count());
    let measured = format!(
        "mean of {runs} runs at each of {points} points: largest difference from the ODE {largest}; worst \
         {point} ({gap}), {errors:.1} standard errors beyond {allowed}/d (allowed: {ERRORS})"
    );
    check(name, measured, worst.errors <= ERRORS)
}

/// How much lower or higher the second is than the first: "−12%".
pub fn change(from: f64, to: f64) -> String {
    let share = to / from - 1.0;
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(share.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;
    use toclip::noise::Gaussian;
    use toclip::spectrum::{Spectrum, Start};

    #[test]
    fn a_wrong_prediction_fails_the_claim() {
        let modes =
            Modes::new(&Spectrum::isotropic(400).unwrap(), &Start::Uniform { norm: 1.0 }).unwrap();
        let noise = Arc::new(Gaussian::new(0.5).unwrap());
        let step = Step::new(noise);
        let c = log_spaced((0.1, 10.0), 5);
        let ensemble = &Ensemble::new(40, 3);
        let problem = TuningProblem { modes: &modes, step, time: 2.0, collapsed: true, ensemble };
        let right = TunedCurve::new(&problem, &c).unwrap().best().unwrap();
        // Under Gaussian noise not clipping is best.
        assert_eq!((right.c, c.len()), (10.0, 5));
        let run = |at| Simulated::new("clip".into(), at, &problem).unwrap();
        let wrong = Tuned { risk: 1.2 * right.risk, ..right };
        let verdict = |all: &[Simulated]| agreement_claim("p", all.iter(), 40).verdict;
        assert_eq!(verdict(&[run(right)]), Verdict::Holds);
        assert_eq!(verdict(&[run(right), run(wrong)]), Verdict::Fails);
        assert_eq!(verdict(&[]), Verdict::Fails);
        assert_eq!((change(2.0, 1.5), change(2.0, 2.5)), ("−25%".into(), "+25%".into()));
    }
}
