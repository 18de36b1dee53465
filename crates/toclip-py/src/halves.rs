//! The mean gradient of two halves of the steps.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use crate::args::{count, number, text};
use crate::convert::{numbers, refuse};

/// Running means of the gradients of even and of odd steps, each the reference for the other.
#[pyclass(frozen, module = "toclip._toclip")]
#[derive(Debug)]
pub struct Halves {
    inner: Mutex<toclip::monitor::Halves>,
}

impl Halves {
    pub fn lock(&self) -> MutexGuard<'_, toclip::monitor::Halves> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(inner: toclip::monitor::Halves) -> Self {
        Halves { inner: Mutex::new(inner) }
    }
}

#[pymethods]
impl Halves {
    /// For gradients of `dimension` numbers, with means over about the last `memory` of each half.
    #[new]
    fn new(
        #[pyo3(from_py_with = count::dimension)] dimension: usize,
        #[pyo3(from_py_with = number::memory)] memory: f64,
    ) -> PyResult<Self> {
        toclip::monitor::Halves::new(dimension, memory).map(Halves::of).map_err(refuse)
    }

    /// The inner product with the mean of the other half so far; `None` for the first gradient and
    /// for one with numbers that are not finite.
    fn inner(&self, py: Python<'_>, gradient: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        let gradient = numbers("gradient", gradient)?;
        let gradient = gradient.as_slice()?;
        py.detach(|| self.lock().inner(gradient)).map_err(refuse)
    }

    /// Everything it knows, as JSON.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&*self.lock()).map_err(refuse)
    }

    /// Halves as they were written by `to_json`.
    #[staticmethod]
    fn from_json(#[pyo3(from_py_with = text::text)] text: String) -> PyResult<Self> {
        serde_json::from_str(&text)
            .map(Halves::of)
            .map_err(|error| refuse(format!("this is not the state of halves: {error}")))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Halves>().is_ok_and(|other| {
            // A copy, so that two locks are never held at once.
            let other = other.get().lock().clone();
            *self.lock() == other
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("from_json")?, (slf.get().to_json()?,)))
    }
}
