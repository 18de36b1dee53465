//! Training logs, and advice from them.

use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;

use numpy::{PyArray1, ToPyArray};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use toclip_logs::{AdviceOptions, Point, ReadOptions, advise};

use crate::args::{flag, maybe_number, maybe_text, number, path as path_of};
use crate::convert::{refuse, to_python};

/// A training log, read and put in order.
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
    /// Reads a log whole.
    #[new]
    #[pyo3(signature = (path, *, format = None, norm = None, step = None, loss = None,
                        learning_rate = None, unscale = false))]
    #[expect(clippy::too_many_arguments, reason = "all but the first are named")]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = path_of)] path: PathBuf,
        #[pyo3(from_py_with = maybe_text::format)] format: Option<String>,
        #[pyo3(from_py_with = maybe_text::norm)] norm: Option<String>,
        #[pyo3(from_py_with = maybe_text::step)] step: Option<String>,
        #[pyo3(from_py_with = maybe_text::loss)] loss: Option<String>,
        #[pyo3(from_py_with = maybe_text::learning_rate)] learning_rate: Option<String>,
        #[pyo3(from_py_with = flag::unscale)] unscale: bool,
    ) -> PyResult<Self> {
        let format = format.map(|format| format.parse()).transpose().map_err(refuse)?;
        let options = ReadOptions { format, norm, step, loss, learning_rate, unscale };
        let file = File::open(&path).map_err(|error| {
            let what = format!("cannot read {}: {error}", path.display());
            match error.kind() {
                ErrorKind::NotFound => PyFileNotFoundError::new_err(what),
                _ => PyOSError::new_err(what),
            }
        })?;
        let inner = py.detach(|| toclip_logs::load(file, &options));
        let inner = inner.map_err(|error| refuse(format!("{}: {error}", path.display())))?;
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

    /// The losses; NaN where there is none.
    #[getter]
    fn losses<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(py, |p| p.loss)
    }

    /// The learning rates; NaN where there is none.
    #[getter]
    fn learning_rates<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(py, |p| p.learning_rate)
    }

    /// What a reader of the numbers must know, in sentences.
    #[getter]
    fn findings(&self) -> Vec<String> {
        self.inner.findings.iter().map(|finding| finding.sentence()).collect()
    }

    /// How it was read: format, columns, rows.
    #[getter]
    fn reading<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.inner.summary)
    }

    /// Everything found out, as a dictionary, with the answers in words under `answers`.
    #[pyo3(signature = (*, clip = None, batch_size = None, outputs = None, optimizer = None, confidence = 0.95))]
    fn advise<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = maybe_number::clip)] clip: Option<f64>,
        #[pyo3(from_py_with = maybe_number::batch_size)] batch_size: Option<f64>,
        #[pyo3(from_py_with = maybe_number::outputs)] outputs: Option<f64>,
        #[pyo3(from_py_with = maybe_text::optimizer)] optimizer: Option<String>,
        #[pyo3(from_py_with = number::confidence)] confidence: f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let optimizer = optimizer.map(|name| name.parse()).transpose().map_err(refuse)?;
        let clip = clip.map(Into::into);
        let options = AdviceOptions { clip, batch_size, outputs, optimizer, confidence };
        let advice = py.detach(|| advise(&self.inner, &options)).map_err(refuse)?;
        let dict = to_python(py, &advice)?;
        dict.cast::<PyDict>()?.set_item("answers", to_python(py, &advice.answers())?)?;
        Ok(dict)
    }
}
