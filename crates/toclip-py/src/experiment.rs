//! Experiments, read and run by the same crate as `toclip run`.

use std::path::{Path, PathBuf};

use numpy::ToPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};
use toclip_experiment::run::{Outcome, Plan, run};
use toclip_experiment::{CriteriaCurves, Error, Prepared, of_values, read};

use crate::args::{Argument, arg};
use crate::background::in_background;
use crate::convert::{refuse, to_python, unreadable};
use crate::simulate;
use crate::values::experiment_values;

/// A method, whether it is an ensemble, and its curve.
type MethodCurve<'py> = (&'static str, bool, Bound<'py, PyDict>);

/// Whether it is a generalised linear model, the curves in the order of the methods, and the curves of the
/// criteria if it has any; from a dictionary or the path of a TOML file.
#[pyfunction]
pub fn experiment<'py>(
    py: Python<'py>,
    what: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arg::threads)] threads: Option<usize>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(bool, Vec<MethodCurve<'py>>, Option<Bound<'py, PyDict>>)> {
    let (file, origin) = match what.cast::<PyMapping>() {
        Ok(mapping) => of_values(&experiment_values(mapping)?, Path::new("")),
        Err(_) => read(&PathBuf::read("what", what)?),
    }
    .map_err(python_error)?;
    let (mut is_model, mut found) = (false, Vec::new());
    if let Some(experiment) = file.experiment() {
        let prepared = py.detach(|| Prepared::new(experiment, &origin)).map_err(python_error)?;
        let ensembles = experiment.methods.iter().filter(|method| method.is_ensemble()).count();
        let runs = ensembles as u64 * experiment.ensemble.runs;
        let curves = in_background(py, progress, runs, |shared| {
            let tick = |_| shared.tick();
            let plan = Plan { threads, cancel: &shared.cancel, tick: &tick };
            run(experiment, &prepared, &plan, None, &[])
        })?;
        is_model = prepared.problem.model().is_some();
        for curve in curves.map_err(python_error)?.unwrap_or_default() {
            let (is_band, dict) = match &curve.outcome {
                Outcome::Band(band) => (true, simulate::band(py, band)?),
                Outcome::Path { path, flow } => (false, simulate::path(py, path, flow.as_deref())?),
            };
            found.push((curve.method.key(), is_band, dict));
        }
    }
    let criteria = file.criteria().map(|criteria| {
        let curves = py.detach(|| criteria.curves(&origin)).map_err(python_error)?;
        criteria_curves(py, &curves)
    });
    Ok((is_model, found, criteria.transpose()?))
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
