//! Experiments, read and run by the same crate as `toclip run`.

use std::path::{Path, PathBuf};

use numpy::ToPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use toclip_experiment::run::{Outcome, Plan, run};
use toclip_experiment::{
    CriteriaCurves, Error, GlmOutcome, GlmProblem, Problem, of_values, read, run_glm,
};

use crate::args::{Argument, arg};
use crate::background::in_background;
use crate::convert::{refuse, to_python, unreadable};
use crate::values::{EXPERIMENT, from_python, is_dict};
use crate::{glm, simulate};

/// The curves of an experiment, from a dictionary or the path of a TOML file: for each method the kind
/// of its curve and the curve, and the curves of the criteria, if it has any.
#[pyfunction]
pub fn experiment<'py>(
    py: Python<'py>,
    what: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arg::threads)] threads: Option<usize>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyDict>, Option<Bound<'py, PyDict>>)> {
    let (file, origin) = if is_dict(what) {
        of_values(&from_python(EXPERIMENT, what)?, Path::new(""))
    } else {
        read(&PathBuf::read("what", what)?)
    }
    .map_err(python_error)?;
    let dict = PyDict::new(py);
    if let Some(experiment) = &file.trajectories {
        let problem = py.detach(|| Problem::new(experiment, &origin)).map_err(python_error)?;
        let ensembles = experiment.methods.iter().filter(|method| method.is_ensemble()).count();
        let runs = ensembles as u64 * experiment.ensemble.runs;
        let curves = planned(py, progress.clone(), runs, threads, |plan| {
            run(experiment, &problem, plan, None, &[])
        })?;
        for curve in curves {
            let found = match &curve.outcome {
                Outcome::Band(band) => ("band", simulate::band(py, band)?),
                Outcome::Path { path, flow } => {
                    ("path", simulate::path(py, path, flow.as_deref())?)
                }
            };
            dict.set_item(curve.method.key(), found)?;
        }
    }
    if let Some(experiment) = &file.glm {
        let problem = py.detach(|| GlmProblem::new(experiment, &origin)).map_err(python_error)?;
        let simulated = experiment.methods.iter().any(|method| method.is_ensemble());
        let runs = if simulated { experiment.ensemble.runs } else { 0 };
        let curves = planned(py, progress, runs, threads, |plan| {
            run_glm(experiment, &problem, plan, None, &[])
        })?;
        for curve in curves {
            let kind = match &curve.outcome {
                GlmOutcome::Path(..) => "glm_path",
                GlmOutcome::Band(_) => "glm_band",
            };
            dict.set_item(curve.method.key(), (kind, glm::curve(py, &curve)?))?;
        }
    }
    let Some(criteria) = &file.criteria else { return Ok((dict, None)) };
    let curves = py.detach(|| criteria.curves(&origin)).map_err(python_error)?;
    Ok((dict, Some(criteria_curves(py, &curves)?)))
}

/// The curves of all methods, computed in the background.
fn planned<T: Send>(
    py: Python<'_>,
    progress: Option<Bound<'_, PyAny>>,
    runs: u64,
    threads: Option<usize>,
    work: impl FnOnce(&Plan<'_>) -> Result<Option<Vec<T>>, Error> + Send,
) -> PyResult<Vec<T>> {
    let curves = in_background(py, progress, runs, |shared| {
        let tick = |_| shared.tick();
        work(&Plan { threads, cancel: &shared.cancel, tick: &tick })
    })?;
    Ok(curves.map_err(python_error)?.unwrap_or_default())
}

/// The values on the horizontal axis under `c` or `R`, and for each criterion a dictionary of curves
/// by the label of the noise.
fn criteria_curves<'py>(py: Python<'py>, of: &CriteriaCurves) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item(of.against, of.x.to_pyarray(py))?;
    for curve in &of.curves {
        let name = to_python(py, &curve.criterion)?;
        if !dict.contains(&name)? {
            dict.set_item(&name, PyDict::new(py))?;
        }
        dict.as_any().get_item(name)?.set_item(&curve.label, curve.y.to_pyarray(py))?;
    }
    Ok(dict)
}

fn python_error(error: Error) -> PyErr {
    let message = error.sentence();
    match error {
        Error::Read { source, .. } => unreadable(&source, message),
        _ => refuse(message),
    }
}
