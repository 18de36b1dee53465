//! Learning rates and thresholds as functions of time.

use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;
use toclip_experiment::{Clip, PolicySpec};

use crate::args::arg;
use crate::convert::{refuse, shown, to_python};
use crate::values::{from_python, is_dict, optional};

/// A number that changes with time.
#[pyclass(frozen, eq, module = "toclip._toclip")]
#[derive(Debug, PartialEq)]
pub struct Schedule {
    pub inner: toclip::policy::Schedule,
}

#[pymethods]
impl Schedule {
    /// From a number, or a dictionary such as `{"kind": "cosine", "from": 0.7, "over": 15.0}`.
    #[new]
    fn new(shape: &Bound<'_, PyAny>) -> PyResult<Self> {
        let inner = if let Ok(value) = shape.extract() {
            toclip::policy::Schedule::constant(value)
        } else if is_dict(shape) || shape.is_instance_of::<Schedule>() {
            toclip::policy::Schedule::new(from_python("schedule", shape)?)
        } else {
            return Err(refuse(format!(
                "schedule must be a number or a dictionary such as {{\"kind\": \"cosine\", \"from\": \
                 0.7, \"over\": 15.0}}, not {}",
                shown(shape)
            )));
        };
        let inner = inner.map_err(|error| refuse(format!("schedule: {error}")))?;
        Ok(Schedule { inner })
    }

    /// The values at these times.
    fn at<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arg::times)] times: Vec<f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        if let Some(t) = times.iter().find(|t| !(**t >= 0.0 && t.is_finite())) {
            return Err(refuse(format!("times has {t} in it; expected finite times from 0 on")));
        }
        Ok(times.iter().map(|&t| self.inner.at(t)).collect::<Vec<f64>>().to_pyarray(py))
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<String> {
        Ok(format!("toclip.Schedule({})", shown(&self.to_dict(py)?)))
    }

    /// Its specification as a number or a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.inner.shape())
    }
}

/// `count` equally spaced times from 0 to `end`.
#[pyfunction]
pub fn linear_times(
    py: Python<'_>,
    #[pyo3(from_py_with = arg::end)] end: f64,
    #[pyo3(from_py_with = arg::count)] count: usize,
) -> PyResult<Bound<'_, PyArray1<f64>>> {
    Ok(toclip::dynamics::linear_times(end, count).map_err(refuse)?.to_pyarray(py))
}

/// `count` logarithmically spaced times from `first` to `end`.
#[pyfunction]
pub fn log_times(
    py: Python<'_>,
    #[pyo3(from_py_with = arg::first)] first: f64,
    #[pyo3(from_py_with = arg::end)] end: f64,
    #[pyo3(from_py_with = arg::count)] count: usize,
) -> PyResult<Bound<'_, PyArray1<f64>>> {
    Ok(toclip::dynamics::log_times(first, end, count).map_err(refuse)?.to_pyarray(py))
}

/// A policy in the grammar of experiment files; `None` as a threshold also means no clipping.
pub fn policy(
    learning_rate: &Bound<'_, PyAny>,
    clip: &Bound<'_, PyAny>,
    margin: Option<&Bound<'_, PyAny>>,
) -> PyResult<PolicySpec> {
    Ok(PolicySpec {
        learning_rate: from_python("learning_rate", learning_rate)?,
        clip: if clip.is_none() { Clip::None } else { from_python("clip", clip)? },
        margin: optional("margin", margin)?,
    })
}
