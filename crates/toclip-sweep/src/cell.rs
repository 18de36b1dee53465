//! Running one cell.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;

use toclip::criteria::best_threshold;
use toclip::dynamics::Stop;
use toclip::ensemble::Statistics;
use toclip::model::Quantity;
use toclip_experiment::run::{MethodCurve, Plan};
use toclip_experiment::{Error, Method, Prepared, of_values, run};

use crate::keep::{Keep, Measure};
use crate::row::{CellCurve, Row};
use crate::sweep::Sweep;

/// The result of a method for any model: its curves by measure, and how it ended.
struct MethodResult {
    method: Method,
    curves: Vec<(Measure, CellCurve)>,
    /// Whether it reached the last time.
    complete: bool,
    /// When it diverged, or the share of its runs that did.
    diverged: f64,
}

impl Sweep {
    /// Runs a cell on one thread; `None` if it was cancelled. A cell that fails has a row
    /// with the reason.
    pub fn run(&self, cell: u64, cancel: &AtomicBool) -> Option<Row> {
        self.run_on(cell, Some(1), cancel)
    }

    /// Runs a cell, its ensembles on so many threads; `None` for all. The bits are the same.
    pub fn run_on(&self, cell: u64, threads: Option<usize>, cancel: &AtomicBool) -> Option<Row> {
        let plan = Plan { threads, cancel, tick: &|_| {} };
        // A panic in one cell must not end the others.
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
        let (file, origin) = of_values(&self.values(cell), self.folder()).map_err(sentence)?;
        let experiment = file.into_trajectories(&origin).map_err(sentence)?;
        let prepared = Prepared::new(&experiment, &origin).map_err(sentence)?;
        let curves = run::run(&experiment, &prepared, plan, None, &[]).map_err(sentence)?;
        let Some(curves) = curves else { return Ok(None) };
        let result = |curve: &MethodCurve| MethodResult::new(curve, prepared.times.len());
        let found: Vec<MethodResult> = curves.iter().map(result).collect();
        let mut of_cell = self.best_thresholds(&prepared, &found).map_err(|e| e.to_string())?;
        let main = Measure::main(self.model);
        let mut values = Vec::new();
        for of in &found {
            for keep in &self.keep {
                match *keep {
                    Keep::Final(measure) => values.extend(of.last(measure)),
                    Keep::TimeTo(level) => values.push(of.time_to(main, level)),
                    Keep::BestThreshold(_) | Keep::Curves => {}
                }
            }
            values.push(of.diverged);
        }
        values.append(&mut of_cell);
        let kept = self.keep.contains(&Keep::Curves);
        let curves = found.iter().filter(|_| kept).filter_map(|of| of.curve(main).cloned());
        let curves = curves.collect();
        Ok(Some(Row { cell, values, error: None, curves }))
    }

    /// An error message with files named as the sweep names them: equal sweeps give equal tables in any
    /// folder.
    fn without_folder(&self, said: String) -> String {
        self.named_files().into_iter().fold(said, |said, name| {
            said.replace(&self.folder().join(&name).display().to_string(), &name)
        })
    }

    /// The thresholds of the largest CCC, in the coordinates of the user, each with that CCC.
    fn best_thresholds(
        &self,
        prepared: &Prepared,
        found: &[MethodResult],
    ) -> toclip::Result<Vec<f64>> {
        let mut values = Vec::new();
        for keep in &self.keep {
            let Keep::BestThreshold(at) = *keep else { continue };
            let risk =
                at.unwrap_or_else(|| found.first().map_or(f64::NAN, |f| f.last(Measure::Risk)[0]));
            if risk.is_finite() {
                let best = best_threshold(&prepared.problem, risk)?;
                values.extend([prepared.rescaling().inverse().threshold(best.c), best.ccc]);
            } else {
                values.extend([f64::NAN; 2]);
            }
        }
        Ok(values)
    }
}

/// When a path diverged, or the share of an ensemble that did; NaN for a path that did not.
fn diverged(stop: Option<Stop>, runs: Option<(usize, u64)>) -> f64 {
    match (stop, runs) {
        (Some(Stop::Diverged { t } | Stop::InfiniteVariance { t }), _) => t,
        (_, Some((diverged, all))) => diverged as f64 / all as f64,
        _ => f64::NAN,
    }
}

/// The values of a path, or those of an ensemble between the first and the last quantile.
fn cell_curve(curve: &MethodCurve, value: Vec<f64>, band: Option<&Statistics>) -> CellCurve {
    let edge = |quantile: Option<&Vec<f64>>| quantile.cloned().unwrap_or_default();
    let low = edge(band.and_then(|band| band.quantiles.first()));
    let high = edge(band.and_then(|band| band.quantiles.last()));
    CellCurve { method: curve.method, times: curve.times().to_vec(), value, low, high }
}

impl MethodResult {
    fn new(curve: &MethodCurve, times: usize) -> Self {
        let (reached, band) = (curve.times().len(), curve.band());
        let of = |quantity| {
            let value = |k| curve.at(quantity, k).unwrap_or(f64::NAN);
            let statistics = band.and_then(|b| b.measures.as_ref()?.get(quantity));
            let curve = cell_curve(curve, (0..reached).map(value).collect(), statistics);
            (Measure::Model(quantity), curve)
        };
        let is_model = Quantity::ALL.into_iter().any(|quantity| curve.has(quantity));
        let risk = || cell_curve(curve, curve.risk().to_vec(), band.map(|b| &b.risk));
        MethodResult {
            method: curve.method,
            complete: reached == times,
            curves: match is_model {
                true => Quantity::ALL.map(of).to_vec(),
                false => vec![(Measure::Risk, risk())],
            },
            diverged: diverged(curve.stop(), band.map(|b| (b.diverged.len(), b.runs))),
        }
    }

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
