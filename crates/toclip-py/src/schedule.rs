//! Learning rates and thresholds along time.

use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;
use toclip_experiment::{Clip, PolicySpec};

use crate::args::{count, number};
use crate::convert::{numbers, refuse, shown, to_python};
use crate::values::{from_python, is_dict};

/// A number that changes with time.
#[pyclass(frozen, module = "toclip._toclip")]
#[derive(Debug)]
pub struct Schedule {
    pub inner: toclip::schedule::Schedule,
}

#[pymethods]
impl Schedule {
    /// From a number, or a dictionary such as `{"kind": "cosine", "from": 0.7, "over": 15.0}`.
    #[new]
    fn new(shape: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Schedule { inner: read("schedule", shape)? })
    }

    /// The values at these times.
    fn at<'py>(
        &self,
        py: Python<'py>,
        times: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let times = numbers("times", times)?;
        let times = times.as_slice()?;
        if let Some(t) = times.iter().find(|t| !(**t >= 0.0 && t.is_finite())) {
            let what = format!("times = {t} is not allowed: times must be finite and not negative");
            return Err(refuse(what));
        }
        Ok(times.iter().map(|&t| self.inner.at(t)).collect::<Vec<f64>>().to_pyarray(py))
    }

    /// What it was made from.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.inner.shape())
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>,))> {
        Ok((slf.get_type().into_any(), (slf.get().to_dict(slf.py())?,)))
    }
}

/// `count` times at equal distances from 0 to `end`.
#[pyfunction]
pub fn linear_times(
    py: Python<'_>,
    #[pyo3(from_py_with = number::end)] end: f64,
    #[pyo3(from_py_with = count::count)] count: usize,
) -> PyResult<Bound<'_, PyArray1<f64>>> {
    Ok(toclip::dynamics::linear_times(end, count).map_err(refuse)?.to_pyarray(py))
}

/// `count` times at equal ratios from `first` to `end`.
#[pyfunction]
pub fn log_times(
    py: Python<'_>,
    #[pyo3(from_py_with = number::first)] first: f64,
    #[pyo3(from_py_with = number::end)] end: f64,
    #[pyo3(from_py_with = count::count)] count: usize,
) -> PyResult<Bound<'_, PyArray1<f64>>> {
    Ok(toclip::dynamics::log_times(first, end, count).map_err(refuse)?.to_pyarray(py))
}

fn read(name: &str, shape: &Bound<'_, PyAny>) -> PyResult<toclip::schedule::Schedule> {
    let named = |error: toclip::Error| refuse(format!("{name}: {error}"));
    if let Ok(schedule) = shape.cast::<Schedule>() {
        return Ok(schedule.get().inner.clone());
    }
    if let Ok(value) = shape.extract::<f64>() {
        return toclip::schedule::Schedule::constant(value).map_err(named);
    }
    if !is_dict(shape) {
        return Err(refuse(format!(
            "{name} must be a number or a dictionary such as {{\"kind\": \"cosine\", \"from\": 0.7, \
             \"over\": 15.0}}, not {}",
            shown(shape)
        )));
    }
    toclip::schedule::Schedule::new(from_python(name, shape)?).map_err(named)
}

/// A policy from the arguments of Python, by the grammar of experiment files; `None` as a threshold
/// is no clipping.
pub fn policy(
    learning_rate: &Bound<'_, PyAny>,
    clip: &Bound<'_, PyAny>,
    margin: Option<&Bound<'_, PyAny>>,
) -> PyResult<PolicySpec> {
    Ok(PolicySpec {
        learning_rate: from_python("learning_rate", learning_rate)?,
        clip: if clip.is_none() { Clip::None } else { from_python("clip", clip)? },
        margin: margin.map(|margin| from_python("margin", margin)).transpose()?,
    })
}
