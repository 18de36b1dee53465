//! The mean gradient of two halves of the steps.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::args::arg;
use crate::convert::refuse;
use crate::state::State;

/// Running means of the gradients of even and of odd steps, each the reference for the other.
#[pyclass(frozen, eq, module = "toclip._toclip")]
#[derive(Debug, PartialEq)]
pub struct Halves(pub State<toclip::monitor::Halves>);

#[pymethods]
impl Halves {
    /// For gradients of `dimension` numbers, with means over about the last `memory` of each half.
    #[new]
    fn new(
        #[pyo3(from_py_with = arg::dimension)] dimension: usize,
        #[pyo3(from_py_with = arg::memory)] memory: f64,
    ) -> PyResult<Self> {
        let halves = toclip::monitor::Halves::new(dimension, memory).map_err(refuse)?;
        Ok(Halves(State::new(halves)))
    }

    /// The inner product with the mean of the other half so far; `None` for the first gradient and
    /// for one with numbers that are not finite.
    fn inner(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arg::gradient)] gradient: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Option<f64>> {
        let gradient = gradient.as_slice()?;
        py.detach(|| self.0.lock().inner(gradient)).map_err(refuse)
    }

    /// The whole state as JSON.
    fn to_json(&self) -> PyResult<String> {
        self.0.to_json()
    }

    /// Reads the state that `to_json` wrote.
    #[staticmethod]
    fn from_json(#[pyo3(from_py_with = arg::state)] state: String) -> PyResult<Self> {
        State::from_json("Halves", &state).map(Halves)
    }
}
