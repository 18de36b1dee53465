//! Running one cell.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;

use toclip::criteria::best_threshold;
use toclip::dynamics::Stop;
use toclip::ensemble::Statistics;
use toclip::glm::{Measures, Quantity};
use toclip_experiment::run::{Outcome, Plan};
use toclip_experiment::{
    Error, Experiment, GlmCurve, GlmExperiment, GlmOutcome, GlmProblem, Method, Origin, Problem,
    of_values_in, run, run_glm,
};

use crate::keep::{Keep, Measure};
use crate::row::{CellCurve, Row};
use crate::sweep::Sweep;

/// What a method gave, whatever the model: its curves by measure, and how it ended.
struct Found {
    method: Method,
    curves: Vec<(Measure, CellCurve)>,
    /// Whether it reached the last time.
    complete: bool,
    /// When it diverged, or the share of its runs that did.
    diverged: f64,
}

impl Sweep {
    /// Runs a cell on one thread; `None` if it was cancelled on the way. A cell that fails has a row
    /// with the reason.
    pub fn run(&self, cell: u64, cancel: &AtomicBool) -> Option<Row> {
        self.run_on(cell, Some(1), cancel)
    }

    /// Runs a cell, its ensembles on so many threads; `None` for all. The bits are the same.
    pub fn run_on(&self, cell: u64, threads: Option<usize>, cancel: &AtomicBool) -> Option<Row> {
        let plan = Plan { threads, cancel, tick: &|_| {} };
        // One cell must not end the others.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.compute(cell, &plan)));
        let failed = |why: String| {
            let values = vec![f64::NAN; self.columns().len()];
            Some(Row { cell, values, error: Some(why), curves: Vec::new() })
        };
        match outcome {
            Ok(Ok(row)) => row,
            Ok(Err(why)) => failed(why),
            Err(_) => failed("internal error; please report it with the file of the cell".into()),
        }
    }

    fn compute(&self, cell: u64, plan: &Plan<'_>) -> Result<Option<Row>, String> {
        let sentence = |e: Error| self.without_folder(e.sentence());
        let (file, origin) = of_values_in(&self.values(cell), self.folder()).map_err(sentence)?;
        let (found, mut of_cell) = match (&file.trajectories, &file.glm) {
            (Some(experiment), _) => {
                let found = least_squares(experiment, &origin, plan).map_err(sentence)?;
                let Some((problem, found)) = found else { return Ok(None) };
                let best = self.best_thresholds(&problem, &found).map_err(|e| e.to_string())?;
                (found, best)
            }
            (None, Some(experiment)) => {
                let found = model(experiment, &origin, plan).map_err(sentence)?;
                let Some(found) = found else { return Ok(None) };
                (found, Vec::new())
            }
            (None, None) => return Err("the cell has no trajectories".into()),
        };
        let mut values = Vec::new();
        for of in &found {
            for keep in &self.keep {
                match *keep {
                    Keep::Final(measure) => values.extend(of.last(measure)),
                    Keep::TimeTo(level) => {
                        values.push(of.time_to(Measure::main(self.model), level))
                    }
                    Keep::BestThreshold(_) | Keep::Curves => {}
                }
            }
            values.push(of.diverged);
        }
        values.append(&mut of_cell);
        let mut curves = Vec::new();
        if self.keep.contains(&Keep::Curves) {
            let main = Measure::main(self.model);
            for of in found {
                curves.extend(of.curves.into_iter().filter(|(m, _)| *m == main).map(|(_, c)| c));
            }
        }
        Ok(Some(Row { cell, values, error: None, curves }))
    }

    /// What is said of a cell, with files named as the sweep names them: equal sweeps give equal tables,
    /// wherever they lie.
    fn without_folder(&self, said: String) -> String {
        self.named_files().into_iter().fold(said, |said, name| {
            said.replace(&self.folder().join(&name).display().to_string(), &name)
        })
    }

    /// The thresholds of the largest CCC, in the coordinates of the user, each with that CCC.
    fn best_thresholds(&self, problem: &Problem, found: &[Found]) -> toclip::Result<Vec<f64>> {
        let mut values = Vec::new();
        for keep in &self.keep {
            let Keep::BestThreshold(at) = *keep else { continue };
            let risk =
                at.unwrap_or_else(|| found.first().map_or(f64::NAN, |f| f.last(Measure::Risk)[0]));
            if risk.is_finite() {
                let best = best_threshold(&problem.step, risk)?;
                values.extend([problem.rescaling().inverse().threshold(best.c), best.ccc]);
            } else {
                values.extend([f64::NAN; 2]);
            }
        }
        Ok(values)
    }
}

fn least_squares(
    experiment: &Experiment,
    origin: &Origin,
    plan: &Plan<'_>,
) -> toclip_experiment::Result<Option<(Problem, Vec<Found>)>> {
    let problem = Problem::new(experiment, origin)?;
    let Some(curves) = run::run(experiment, &problem, plan, None, Vec::new())? else {
        return Ok(None);
    };
    let found = curves.into_iter().map(|curve| {
        let method = curve.method;
        let (risk, diverged) = match curve.outcome {
            Outcome::Path { path, .. } => {
                let diverged = diverged_at(path.stop);
                (path_curve(method, &path.times, path.risk), diverged)
            }
            Outcome::Band(band) => {
                let share = band.diverged.len() as f64 / band.runs as f64;
                (band_curve(method, &band.times, &band.risk), share)
            }
        };
        let complete = risk.times.len() == problem.times.len();
        Found { method, curves: vec![(Measure::Risk, risk)], complete, diverged }
    });
    let found = found.collect();
    Ok(Some((problem, found)))
}

fn model(
    experiment: &GlmExperiment,
    origin: &Origin,
    plan: &Plan<'_>,
) -> toclip_experiment::Result<Option<Vec<Found>>> {
    let problem = GlmProblem::new(experiment, origin)?;
    let Some(curves) = run_glm(experiment, &problem, plan, None, &[])? else { return Ok(None) };
    let found = curves.into_iter().map(|curve| {
        let complete = curve.times().len() == problem.times.len();
        let GlmCurve { method, outcome, .. } = curve;
        let (curves, diverged) = match outcome {
            GlmOutcome::Path(path, measures) => {
                let of = |quantity| {
                    let value = |m: &Measures| m.get(quantity).unwrap_or(f64::NAN);
                    let values = measures.iter().map(value).collect();
                    (Measure::Model(quantity), path_curve(method, &path.times, values))
                };
                (Quantity::ALL.map(of).to_vec(), diverged_at(path.stop))
            }
            GlmOutcome::Band(band) => {
                let of = |quantity| {
                    let curve = band_curve(method, &band.times, band.get(quantity)?);
                    Some((Measure::Model(quantity), curve))
                };
                let curves = Quantity::ALL.into_iter().filter_map(of).collect();
                (curves, band.diverged.len() as f64 / band.runs as f64)
            }
        };
        Found { method, curves, complete, diverged }
    });
    Ok(Some(found.collect()))
}

fn diverged_at(stop: Stop) -> f64 {
    match stop {
        Stop::Diverged { t } | Stop::InfiniteVariance { t } => t,
        _ => f64::NAN,
    }
}

fn path_curve(method: Method, times: &[f64], value: Vec<f64>) -> CellCurve {
    CellCurve { method, times: times.to_vec(), value, low: Vec::new(), high: Vec::new() }
}

/// The median, between the first and the last quantile.
fn band_curve(method: Method, times: &[f64], of: &Statistics) -> CellCurve {
    let (low, high) = (of.quantiles.first(), of.quantiles.last());
    let copy = |quantile: Option<&Vec<f64>>| quantile.cloned().unwrap_or_default();
    CellCurve {
        method,
        times: times.to_vec(),
        value: of.median.clone(),
        low: copy(low),
        high: copy(high),
    }
}

impl Found {
    fn curve(&self, measure: Measure) -> Option<&CellCurve> {
        self.curves.iter().find(|(of, _)| *of == measure).map(|(_, curve)| curve)
    }

    /// The value at the last time, infinite where it diverged before; of an ensemble also the band.
    fn last(&self, measure: Measure) -> Vec<f64> {
        let end = |values: &[f64]| match (self.complete, values.last()) {
            (true, Some(value)) => *value,
            (false, _) if matches!(measure, Measure::Risk | Measure::Model(Quantity::Loss)) => {
                f64::INFINITY
            }
            _ => f64::NAN,
        };
        let Some(curve) = self.curve(measure) else {
            return vec![f64::NAN; if self.method.is_ensemble() { 3 } else { 1 }];
        };
        match self.method.is_ensemble() {
            false => vec![end(&curve.value)],
            true => vec![end(&curve.value), end(&curve.low), end(&curve.high)],
        }
    }

    /// When the curve first reaches the level, between saved times linearly in the logarithm.
    fn time_to(&self, measure: Measure, level: f64) -> f64 {
        let Some(curve) = self.curve(measure) else { return f64::NAN };
        let Some(at) = curve.value.iter().position(|value| *value <= level) else {
            return f64::NAN;
        };
        let Some(before) = at.checked_sub(1) else { return curve.times[0] };
        let (high, low) = (curve.value[before].ln(), curve.value[at].ln());
        let share = if low.is_finite() { (high - level.ln()) / (high - low) } else { 1.0 };
        curve.times[before] + share * (curve.times[at] - curve.times[before])
    }
}
