//! Runs and ensembles of any of the random methods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use numpy::ToPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use toclip::dynamics::{Simulator, Trajectory};
use toclip::ensemble::{Ensemble, Statistics, Summary};
use toclip_experiment::{check_memory, check_steps};

use crate::convert::{refuse, to_python};
use crate::watch::watched;

/// What is asked of an ensemble.
pub struct Asked<'a> {
    pub times: &'a [f64],
    /// Steps in a unit of time.
    pub dim: f64,
    pub runs: u64,
    pub seed: u64,
    pub confidence: f64,
    pub threads: Option<usize>,
}

/// One run by its index.
pub fn one(
    py: Python<'_>,
    simulator: &dyn Simulator,
    times: &[f64],
    dim: f64,
    seed: u64,
    index: u64,
) -> PyResult<Trajectory> {
    check_steps(times.last().copied().unwrap_or(0.0), dim).map_err(refuse)?;
    // An ensemble refuses times that cannot be; a single run would not.
    let check = Ensemble { threads: Some(1), ..Ensemble::new(1, seed) };
    let all = BTreeSet::from([0]);
    check
        .run_missing(simulator, times, &all, &AtomicBool::new(false), &|_, _| {})
        .map_err(refuse)?;
    watched(py, None, 1, |_| simulator.run(seed, index, times))
}

/// All runs, each turned into the units of the user.
pub fn ensemble<'py>(
    py: Python<'py>,
    simulator: &dyn Simulator,
    asked: &Asked<'_>,
    progress: Option<Bound<'py, PyAny>>,
    to_user: impl Fn(Trajectory) -> Trajectory,
) -> PyResult<Bound<'py, PyDict>> {
    check_memory(asked.runs, asked.times.len()).map_err(refuse)?;
    check_steps(asked.times.last().copied().unwrap_or(0.0), asked.dim).map_err(refuse)?;
    let mut ensemble =
        Ensemble::new(asked.runs, asked.seed).confidence(asked.confidence).map_err(refuse)?;
    ensemble.threads = asked.threads;
    let finished = Mutex::new(BTreeMap::new());
    watched(py, progress, asked.runs, |watch| {
        let none = BTreeSet::new();
        ensemble.run_missing(simulator, asked.times, &none, &watch.cancel, &|index, run| {
            finished.lock().unwrap_or_else(PoisonError::into_inner).insert(index, run);
            watch.done.fetch_add(1, Ordering::Relaxed);
        })
    })?
    .map_err(refuse)?;
    let finished = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
    let runs = finished.into_iter().map(|(index, run)| (index, to_user(run))).collect();
    let summary = Summary::of(asked.times, &runs, &ensemble.probabilities).map_err(refuse)?;
    band(py, &summary)
}

/// The statistics of many runs as a dictionary of arrays.
pub fn band<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Bound<'py, PyDict>> {
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

/// A path as a dictionary of arrays.
pub fn path<'py>(py: Python<'py>, path: &Trajectory) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, values) in [("t", &path.times), ("risk", &path.risk), ("distance", &path.distance)] {
        dict.set_item(name, values.to_pyarray(py))?;
    }
    if let Some(points) = &path.path {
        let columns: [(&str, Vec<f64>); 4] = [
            ("mu", points.iter().map(|p| p.mu).collect()),
            ("m2", points.iter().map(|p| p.m2).collect()),
            ("eta", points.iter().map(|p| p.eta).collect()),
            ("c", points.iter().map(|p| p.c).collect()),
        ];
        for (name, values) in columns {
            dict.set_item(name, values.to_pyarray(py))?;
        }
    }
    dict.set_item("stop", to_python(py, &path.stop)?)?;
    dict.set_item("counts", to_python(py, &path.counts)?)?;
    Ok(dict)
}
