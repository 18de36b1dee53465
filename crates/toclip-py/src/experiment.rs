//! Experiments, read and run by the crate that the command `toclip run` uses.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;

use numpy::ToPyArray;
use pyo3::exceptions::{PyFileNotFoundError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use toclip_experiment::run::{Outcome, Plan, run};
use toclip_experiment::{CriteriaCurves, Error, Experiment, Origin, Problem, of_values, read};

use crate::args::{maybe_count, path};
use crate::convert::refuse;
use crate::simulate;
use crate::values::{EXPERIMENT, is_dict, table};
use crate::watch::watched;

/// The curves of an experiment by their methods, from a dictionary or from the path of a TOML file;
/// curves of the criteria, where it asks for them, under `criteria`.
#[pyfunction]
#[pyo3(signature = (what, *, threads = None, progress = None))]
pub fn experiment<'py>(
    py: Python<'py>,
    what: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = maybe_count::threads)] threads: Option<usize>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (asked, origin) =
        if is_dict(what) { of_values(&table(EXPERIMENT, what)?) } else { read(&path(what)?) }
            .map_err(said)?;
    let dict = match &asked.trajectories {
        Some(experiment) => trajectories(py, experiment, &origin, threads, progress)?,
        None => PyDict::new(py),
    };
    if let Some(criteria) = &asked.criteria {
        let found = py.detach(|| criteria.curves(&origin)).map_err(said)?;
        dict.set_item("criteria", curves(py, &found)?)?;
    }
    Ok(dict)
}

/// The abscissae under `c` or `R`, and under each criterion the curves by the labels of the noises.
fn curves<'py>(py: Python<'py>, found: &CriteriaCurves) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item(found.against, found.x.to_pyarray(py))?;
    for curve in &found.curves {
        let name = curve.criterion.title();
        let by_label = match dict.get_item(name)? {
            Some(known) => known.cast_into::<PyDict>()?,
            None => PyDict::new(py),
        };
        by_label.set_item(&curve.label, curve.y.to_pyarray(py))?;
        dict.set_item(name, by_label)?;
    }
    Ok(dict)
}

fn trajectories<'py>(
    py: Python<'py>,
    experiment: &Experiment,
    origin: &Origin,
    threads: Option<usize>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let problem = py.detach(|| Problem::new(experiment, origin)).map_err(said)?;
    let ensembles = experiment.methods.iter().filter(|method| method.is_ensemble()).count() as u64;
    let curves = watched(py, progress, ensembles * experiment.ensemble.runs, |watch| {
        let tick = |_| {
            watch.done.fetch_add(1, Ordering::Relaxed);
        };
        let plan = Plan { threads, cancel: &watch.cancel, tick: &tick };
        run(experiment, &problem, &plan, None, Vec::new())
    })?
    .map_err(said)?;
    let dict = PyDict::new(py);
    for curve in curves.into_iter().flatten() {
        let found = match &curve.outcome {
            Outcome::Band(band) => simulate::band(py, band)?,
            Outcome::Path { path, flow } => {
                let found = simulate::path(py, path)?;
                if let Some(flow) = flow {
                    found.set_item("flow", flow.to_pyarray(py))?;
                }
                found
            }
        };
        dict.set_item(curve.method.key(), found)?;
    }
    Ok(dict)
}

/// The same sentence as the command's; what has to do with a file is an `OSError`.
fn said(error: Error) -> PyErr {
    let text = error.sentence();
    match error {
        Error::Read { source, .. } => match source.kind() {
            ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
            ErrorKind::InvalidData => refuse(text),
            _ => PyOSError::new_err(text),
        },
        _ => refuse(text),
    }
}
