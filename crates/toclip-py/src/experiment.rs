//! Experiments, read and run by the same crate as `toclip run`.

use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use toclip_experiment::run::{Outcome, Plan, run};
use toclip_experiment::{Error, Problem, of_values, read};

use crate::args::{Argument, arg};
use crate::background::in_background;
use crate::convert::refuse;
use crate::simulate;
use crate::values::{EXPERIMENT, from_python, is_dict};

/// The curves of an experiment by method, from a dictionary or the path of a TOML file.
#[pyfunction]
#[pyo3(signature = (what, *, threads = None, progress = None))]
pub fn experiment<'py>(
    py: Python<'py>,
    what: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arg::threads)] threads: Option<usize>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (experiment, source) = if is_dict(what) {
        of_values(&from_python(EXPERIMENT, what)?)
    } else {
        read(&PathBuf::read("what", what)?)
    }
    .map_err(python_error)?;
    let problem = py.detach(|| Problem::new(&experiment, &source)).map_err(python_error)?;
    let ensembles = experiment.methods.iter().filter(|method| method.is_ensemble()).count() as u64;
    let curves = in_background(py, progress, ensembles * experiment.ensemble.runs, |shared| {
        let tick = |_| {
            shared.done.fetch_add(1, Ordering::Relaxed);
        };
        let plan = Plan { threads, cancel: &shared.cancel, tick: &tick };
        run(&experiment, &problem, &plan, None, Vec::new())
    })?
    .map_err(python_error)?;
    let dict = PyDict::new(py);
    for curve in curves.into_iter().flatten() {
        let found = match &curve.outcome {
            Outcome::Band(band) => simulate::band(py, band)?,
            Outcome::Path { path, flow } => simulate::path(py, path, flow.as_deref())?,
        };
        dict.set_item(curve.method.key(), found)?;
    }
    Ok(dict)
}

/// The message of the command; an `OSError` if the file cannot be read.
fn python_error(error: Error) -> PyErr {
    let message = error.sentence();
    match error {
        Error::Read { source, .. } if source.kind() != ErrorKind::InvalidData => {
            io::Error::new(source.kind(), message).into()
        }
        _ => refuse(message),
    }
}
