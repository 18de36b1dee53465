//! Runs and ensembles of all random methods.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use numpy::ToPyArray;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use toclip::dynamics::{Simulator, Trajectory};
use toclip::ensemble::{Ensemble, Statistics, Summary};
use toclip::model::Quantity;
use toclip_experiment::run::all_runs;
use toclip_experiment::{check_memory, check_steps};

use crate::background::in_background;
use crate::convert::{columns, refuse, to_python};

/// Run number `index`; `dim` is the number of steps per unit of time.
pub fn one(
    py: Python<'_>,
    simulator: &dyn Simulator,
    times: &[f64],
    dim: f64,
    seed: u64,
    index: u64,
) -> PyResult<Trajectory> {
    check_steps(times.last().copied().unwrap_or(0.0), dim).map_err(refuse)?;
    // An ensemble checks the times; a single run does not.
    let check = Ensemble { threads: Some(1), ..Ensemble::new(1, seed) };
    let all = BTreeSet::from([0]);
    check
        .run_missing(simulator, times, &all, &AtomicBool::new(false), &|_, _| {})
        .map_err(refuse)?;
    in_background(py, None, 1, |_| simulator.run(seed, index, times))
}

/// All runs, each converted to the units of the user.
pub fn ensemble<'py>(
    py: Python<'py>,
    simulator: &dyn Simulator,
    ensemble: Ensemble,
    confidence: f64,
    times: &[f64],
    dim: f64,
    progress: Option<Bound<'py, PyAny>>,
    to_user: impl Fn(Trajectory) -> Trajectory,
) -> PyResult<Bound<'py, PyDict>> {
    let ensemble = ensemble.confidence(confidence).map_err(refuse)?;
    check_memory(ensemble.runs, times.len()).map_err(refuse)?;
    check_steps(times.last().copied().unwrap_or(0.0), dim).map_err(refuse)?;
    let finished = in_background(py, progress, ensemble.runs, |shared| {
        all_runs(&ensemble, simulator, times, &shared.cancel, &|| shared.tick())
    })?
    .map_err(refuse)?;
    let runs = finished.into_iter().map(|(index, run)| (index, to_user(run))).collect();
    band(py, &Summary::of(times, &runs, &ensemble.probabilities).map_err(refuse)?)
}

/// The statistics of many runs as a dictionary of arrays.
pub fn band<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("t", summary.times.to_pyarray(py))?;
    dict.set_item("runs", summary.runs)?;
    dict.set_item("alive", summary.alive.to_pyarray(py))?;
    dict.set_item("diverged", summary.diverged.clone())?;
    dict.set_item("probabilities", summary.probabilities.clone())?;
    let Some(measures) = &summary.measures else {
        dict.set_item("risk", statistics(py, &summary.risk)?)?;
        dict.set_item("distance", statistics(py, &summary.distance)?)?;
        return Ok(dict);
    };
    for quantity in Quantity::ALL {
        let found = measures.get(quantity).map(|found| statistics(py, found)).transpose()?;
        dict.set_item(quantity.key(), found)?;
    }
    dict.set_item("q", statistics(py, &measures.q)?)?;
    dict.set_item("p", statistics(py, &measures.p)?)?;
    Ok(dict)
}

fn statistics<'py>(py: Python<'py>, of: &Statistics) -> PyResult<Bound<'py, PyDict>> {
    let mut found = vec![
        ("mean", &of.mean),
        ("standard_error", &of.standard_error),
        ("median", &of.median),
        ("min", &of.min),
        ("max", &of.max),
    ];
    if let [low, high] = &of.quantiles[..] {
        found.extend([("low", low), ("high", high)]);
    }
    found.into_iter().map(|(name, values)| (name, values.to_pyarray(py))).into_py_dict(py)
}

/// A path, and the risk of gradient flow if it is known, as a dictionary of arrays.
pub fn path<'py>(
    py: Python<'py>,
    path: &Trajectory,
    flow: Option<&[f64]>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = match &path.path {
        Some(points) => columns!(py, points, mu m2 eta c)?,
        None => PyDict::new(py),
    };
    dict.set_item("t", path.times.to_pyarray(py))?;
    dict.set_item("stop", to_python(py, &path.stop)?)?;
    let (Some(measures), Some(overlaps)) = (&path.measures, &path.overlaps) else {
        dict.set_item("risk", path.risk.to_pyarray(py))?;
        dict.set_item("distance", path.distance.to_pyarray(py))?;
        if let Some(flow) = flow {
            dict.set_item("flow", flow.to_pyarray(py))?;
        }
        dict.set_item("counts", to_python(py, &path.counts)?)?;
        return Ok(dict);
    };
    for quantity in Quantity::ALL {
        let values = measures.iter().map(|at| at.get(quantity).unwrap_or(f64::NAN));
        dict.set_item(quantity.key(), values.collect::<Vec<_>>().to_pyarray(py))?;
    }
    dict.update(columns!(py, overlaps, q p)?.as_mapping())?;
    dict.set_item("v", overlaps.first().map_or(f64::NAN, |at| at.v))?;
    Ok(dict)
}
