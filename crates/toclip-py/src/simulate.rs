//! Ensembles that can be watched and interrupted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use numpy::ToPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use toclip::dynamics::{Collapsed, Covariates, Hsgd, Sgd, Simulator, Trajectory};
use toclip::ensemble::{Ensemble, Statistics, Summary};

use crate::convert::refuse;
use crate::problem::Problem;

/// How often Ctrl-C is looked for and progress is told.
const BEAT: Duration = Duration::from_millis(50);

/// What is asked of an ensemble.
pub struct Asked<'a> {
    pub times: &'a [f64],
    pub runs: u64,
    pub seed: u64,
    pub confidence: f64,
    pub threads: Option<usize>,
}

/// The random method of this name; C-SGD may see other features than Gaussian ones.
pub fn simulator(
    problem: &Problem,
    method: &str,
    covariates: Option<Covariates>,
) -> PyResult<Box<dyn Simulator>> {
    if covariates.is_some_and(|law| law != Covariates::Gaussian) && method != "sgd" {
        return Err(refuse("only method \"sgd\" knows other covariates than Gaussian ones"));
    }
    let (modes, noise, policy) = (&problem.modes, problem.noise.clone(), problem.policy.clone());
    let made: toclip::Result<Box<dyn Simulator>> = match method {
        "sgd" => Sgd::new(modes, noise, policy)
            .and_then(|sgd| sgd.with_covariates(covariates.unwrap_or_default()))
            .map(|s| Box::new(s) as _),
        "collapsed" => Collapsed::new(modes, noise, policy).map(|s| Box::new(s) as _),
        "hsgd" => Hsgd::new(modes, noise, policy).map(|s| Box::new(s) as _),
        other => {
            return Err(refuse(format!(
                "method \"{other}\" is not known: \"sgd\", \"collapsed\" or \"hsgd\""
            )));
        }
    };
    made.map_err(refuse)
}

/// One run by its index.
pub fn one(
    py: Python<'_>,
    problem: &Problem,
    method: &str,
    times: &[f64],
    seed: u64,
    index: u64,
) -> PyResult<Trajectory> {
    let simulator = simulator(problem, method, None)?;
    // An ensemble refuses times that cannot be; a single run would not.
    let check = Ensemble { threads: Some(1), ..Ensemble::new(1, seed) };
    let all = BTreeSet::from([0]);
    check
        .run_missing(&*simulator, times, &all, &AtomicBool::new(false), &|_, _| {})
        .map_err(refuse)?;
    Ok(problem.to_user(py.detach(|| simulator.run(seed, index, times))))
}

/// All runs, on a thread of their own, while this one listens to Python.
pub fn ensemble<'py>(
    py: Python<'py>,
    problem: &Problem,
    simulator: &dyn Simulator,
    asked: &Asked<'_>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut ensemble =
        Ensemble::new(asked.runs, asked.seed).confidence(asked.confidence).map_err(refuse)?;
    ensemble.threads = asked.threads;
    let progress = progress.map(Bound::unbind);
    let (cancel, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let finished = Mutex::new(BTreeMap::new());

    let work = || {
        ensemble.run_missing(simulator, asked.times, &BTreeSet::new(), &cancel, &|index, run| {
            finished.lock().unwrap_or_else(PoisonError::into_inner).insert(index, run);
            done.fetch_add(1, Ordering::Relaxed);
        })
    };
    let tell = |told: &mut u64| -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            let now = done.load(Ordering::Relaxed);
            match &progress {
                Some(progress) if now != *told => {
                    *told = now;
                    progress.call1(py, (now, asked.runs)).map(drop)
                }
                _ => Ok(()),
            }
        })
    };
    let outcome = py.detach(|| {
        thread::scope(|scope| {
            let worker = scope.spawn(work);
            let mut told = 0;
            while !worker.is_finished() {
                thread::park_timeout(BEAT);
                if let Err(error) = tell(&mut told) {
                    // Runs under way are finished, no other is begun.
                    cancel.store(true, Ordering::Relaxed);
                    let _ = worker.join();
                    return Err(error);
                }
            }
            match worker.join() {
                Ok(result) => result.map_err(refuse)?,
                Err(_) => return Err(refuse("a thread of the ensemble failed")),
            };
            tell(&mut told)
        })
    });
    outcome?;
    let finished = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
    let runs = finished.into_iter().map(|(index, run)| (index, problem.to_user(run))).collect();
    let summary = Summary::of(asked.times, &runs, &ensemble.probabilities).map_err(refuse)?;
    table(py, &summary)
}

fn table<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("t", summary.times.to_pyarray(py))?;
    dict.set_item("runs", summary.runs)?;
    dict.set_item("alive", summary.alive.to_pyarray(py))?;
    dict.set_item("diverged", summary.diverged.clone())?;
    dict.set_item("probabilities", summary.probabilities.clone())?;
    dict.set_item("risk", statistics(py, &summary.risk)?)?;
    dict.set_item("distance", statistics(py, &summary.distance)?)?;
    Ok(dict)
}

fn statistics<'py>(py: Python<'py>, of: &Statistics) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, values) in [
        ("mean", &of.mean),
        ("standard_error", &of.standard_error),
        ("median", &of.median),
        ("min", &of.min),
        ("max", &of.max),
    ] {
        dict.set_item(name, values.to_pyarray(py))?;
    }
    let quantiles: Vec<_> = of.quantiles.iter().map(|values| values.to_pyarray(py)).collect();
    if let [low, high] = &quantiles[..] {
        dict.set_item("low", low)?;
        dict.set_item("high", high)?;
    }
    Ok(dict)
}
