//! Training logs and advice from them.

use std::io;
use std::path::PathBuf;

use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use toclip_logs::{AdviceOptions, Error, Point, ReadOptions, advise, find_logs, load_files};

use crate::args::{Threshold, arg};
use crate::convert::{refuse, to_python};

/// A training log in the order of its steps.
#[pyclass(frozen, module = "toclip._toclip")]
#[derive(Debug)]
pub struct Log {
    inner: toclip_logs::Log,
}

impl Log {
    fn column<'py>(&self, py: Python<'py>, of: fn(&Point) -> f64) -> Bound<'py, PyArray1<f64>> {
        self.inner.points.iter().map(of).collect::<Vec<f64>>().to_pyarray(py)
    }
}

#[pymethods]
impl Log {
    /// Reads the whole log.
    #[new]
    #[pyo3(signature = (path, *, format = None, norm = None, step = None, loss = None,
                        learning_rate = None, unscale = false))]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = arg::path)] path: PathBuf,
        #[pyo3(from_py_with = arg::format)] format: Option<String>,
        #[pyo3(from_py_with = arg::norm)] norm: Option<String>,
        #[pyo3(from_py_with = arg::step)] step: Option<String>,
        #[pyo3(from_py_with = arg::loss)] loss: Option<String>,
        #[pyo3(from_py_with = arg::learning_rate)] learning_rate: Option<String>,
        #[pyo3(from_py_with = arg::unscale)] unscale: bool,
    ) -> PyResult<Self> {
        let format = format.map(|format| format.parse()).transpose().map_err(refuse)?;
        let options = ReadOptions { format, norm, step, loss, learning_rate, unscale };
        let refuse_path = |error| match error {
            Error::Io(error) => {
                let text = format!("cannot read {}: {error}", path.display());
                io::Error::new(error.kind(), text).into()
            }
            error => refuse(format!("{}: {error}", path.display())),
        };
        let found = py.detach(|| find_logs(&path, &options)).map_err(refuse_path)?;
        let [log] = &found[..] else {
            let names: Vec<&str> = found.iter().map(|log| log.name.as_str()).take(20).collect();
            let (path, count, names) = (path.display(), found.len(), names.join(", "));
            return Err(refuse(format!("{path} has {count} logs; give one of them: {names}")));
        };
        let inner = py.detach(|| load_files(log, &options, &mut |_| {})).map_err(refuse_path)?;
        Ok(Log { inner })
    }

    /// The steps with a finite norm.
    #[getter]
    fn steps<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(py, |p| p.step)
    }

    /// The norms.
    #[getter]
    fn norms<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(py, |p| p.norm)
    }

    /// The losses; NaN where the log has none.
    #[getter]
    fn losses<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(py, |p| p.loss)
    }

    /// The learning rates; NaN where the log has none.
    #[getter]
    fn learning_rates<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(py, |p| p.learning_rate)
    }

    /// Findings about the log, in sentences.
    #[getter]
    fn findings(&self) -> Vec<String> {
        self.inner.findings.iter().map(|finding| finding.sentence()).collect()
    }

    /// How it was read: format, columns, rows.
    #[getter]
    fn reading<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.inner.summary)
    }

    /// The whole analysis as a dictionary, with the answers in words under `answers`.
    #[pyo3(signature = (*, clip = None, batch_size = None, outputs = None, optimizer = None, confidence = 0.95))]
    fn advise<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arg::clip)] clip: Option<Threshold>,
        #[pyo3(from_py_with = arg::batch_size)] batch_size: Option<f64>,
        #[pyo3(from_py_with = arg::outputs)] outputs: Option<f64>,
        #[pyo3(from_py_with = arg::optimizer)] optimizer: Option<String>,
        #[pyo3(from_py_with = arg::confidence)] confidence: f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let optimizer = optimizer.map(|name| name.parse()).transpose().map_err(refuse)?;
        let clip = clip.map(|threshold| threshold.0);
        let options = AdviceOptions { clip, batch_size, outputs, optimizer, confidence };
        let advice = py.detach(|| advise(&self.inner, &options)).map_err(refuse)?;
        let dict = to_python(py, &advice)?;
        dict.cast::<PyDict>()?.set_item("answers", to_python(py, &advice.answers())?)?;
        Ok(dict)
    }
}
