//! The monitor, and the mean gradients it compares with.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyType;
use toclip::monitor::{MonitorMemory, MonitorSettings, NormScale};

use crate::args::{Threshold, arg};
use crate::convert::{refuse, to_python};
use crate::state::State;

/// Running estimates of what clipping does, from the gradient norms of a run before clipping.
#[pyclass(frozen, eq, subclass, module = "toclip._toclip")]
#[derive(Debug, PartialEq)]
pub struct Monitor(pub State<toclip::monitor::Monitor>);

#[pymethods]
impl Monitor {
    /// See `toclip.Monitor`.
    #[new]
    #[pyo3(signature = (*, components = None, memory = None, scale_memory = 200.0, fixed_scale = None,
                        watched = None, confidence = 0.95, margin = 0.1))]
    fn new(
        #[pyo3(from_py_with = arg::components)] components: Option<f64>,
        #[pyo3(from_py_with = arg::memory)] memory: Option<usize>,
        #[pyo3(from_py_with = arg::scale_memory)] scale_memory: f64,
        #[pyo3(from_py_with = arg::fixed_scale)] fixed_scale: Option<f64>,
        #[pyo3(from_py_with = arg::watched)] watched: Option<Threshold>,
        #[pyo3(from_py_with = arg::confidence)] confidence: f64,
        #[pyo3(from_py_with = arg::margin)] margin: f64,
    ) -> PyResult<Self> {
        let settings = MonitorSettings {
            components,
            memory: memory.map_or(MonitorMemory::All, MonitorMemory::Last),
            scale: fixed_scale.map_or(NormScale::Running(scale_memory), NormScale::Fixed),
            watched: watched.map(|threshold| threshold.0),
            confidence,
            margin,
        };
        let monitor = toclip::monitor::Monitor::new(settings).map_err(refuse)?;
        Ok(Monitor(State::new(monitor)))
    }

    /// Adds the norm of a step, or the norms of several steps in their order.
    ///
    /// Zeros and norms that are not finite are only counted (`left_out`).
    fn observe(&self, py: Python<'_>, #[pyo3(from_py_with = arg::norms)] norms: Vec<f64>) {
        py.detach(|| {
            let mut monitor = self.0.lock();
            norms.iter().for_each(|&norm| monitor.observe(norm));
        });
    }

    /// Adds norms, and the inner product of each gradient with an independent estimate of the mean
    /// gradient, from which mu is measured directly.
    fn observe_aligned(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arg::norms)] norms: Vec<f64>,
        #[pyo3(from_py_with = arg::inners)] inners: Vec<f64>,
    ) -> PyResult<()> {
        if norms.len() != inners.len() {
            return Err(refuse(format!(
                "norms has {} numbers but inners has {}; expected one inner product for each norm",
                norms.len(),
                inners.len()
            )));
        }
        py.detach(|| {
            let mut monitor = self.0.lock();
            norms.iter().zip(&inners).for_each(|(&n, &p)| monitor.observe_aligned(n, p));
        });
        Ok(())
    }

    /// Adds a whole gradient, with the other half of the steps for reference; returns its norm.
    fn observe_vector(
        &self,
        py: Python<'_>,
        halves: &Halves,
        #[pyo3(from_py_with = arg::gradient)] gradient: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<f64> {
        let gradient = gradient.as_slice()?;
        py.detach(|| self.0.lock().observe_vector(&mut halves.0.lock(), gradient)).map_err(refuse)
    }

    /// Adds everything that another monitor with the same settings has observed.
    fn merge(&self, py: Python<'_>, other: &Monitor) -> PyResult<()> {
        // A copy, so that two locks are never held at once.
        let other = other.0.lock().clone();
        py.detach(|| self.0.lock().merge(&other)).map_err(refuse)
    }

    /// Steps that count at present.
    #[getter]
    fn steps(&self) -> u64 {
        self.0.lock().steps()
    }

    /// The present scale of the norms; `None` before the first.
    #[getter]
    fn scale(&self) -> Option<f64> {
        self.0.lock().scale()
    }

    /// How many norms were `zero` and `not_finite`.
    #[getter]
    fn left_out<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.lock().left_out())
    }

    /// The settings.
    #[getter]
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.0.lock().settings())
    }

    /// The advised threshold, else the one in force, else infinite.
    fn threshold(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.0.lock().threshold())
    }

    /// What to do about the threshold: the sentence, the advice with its numbers, and the advised
    /// threshold or the best candidate.
    fn advice<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(String, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let advice = py.detach(|| self.0.lock().advice());
        Ok((advice.to_string(), to_python(py, &advice)?, to_python(py, &advice.choice())?))
    }

    /// The margin for this many components: the error of CCC from norms alone, measured in networks.
    #[staticmethod]
    fn measured_margin(#[pyo3(from_py_with = arg::components)] components: Option<f64>) -> f64 {
        MonitorSettings::measured_margin(components)
    }

    /// The estimates at the 64 candidates, lowest first: a list of dictionaries.
    fn curve<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &py.detach(|| self.0.lock().curve()))
    }

    /// The estimates at the watched threshold.
    fn watched<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &py.detach(|| self.0.lock().watched()))
    }

    /// The tail of the norms; `None` while it has fewer than 30 norms.
    fn tail<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &py.detach(|| self.0.lock().tail()))
    }

    /// Whether the distribution of the norms changed; `None` before the first steps.
    fn drift<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &py.detach(|| self.0.lock().drift()))
    }

    /// The whole state as JSON, at most a few hundred kilobytes.
    fn to_json(&self) -> PyResult<String> {
        self.0.to_json()
    }

    /// Reads the state that `to_json` wrote.
    #[classmethod]
    fn from_json<'py>(
        class: &Bound<'py, PyType>,
        #[pyo3(from_py_with = arg::state)] state: String,
    ) -> PyResult<Bound<'py, PyAny>> {
        let read = State::from_json("a monitor", &state)?;
        let monitor = class.call0()?;
        monitor.cast::<Monitor>()?.get().0.replace(read);
        Ok(monitor)
    }

    fn __repr__(&self) -> String {
        let monitor = self.0.lock();
        let scale = monitor.scale().map_or("none".into(), |scale| format!("{scale:.4}"));
        format!("<toclip.Monitor: {} steps, scale {scale}>", monitor.steps())
    }
}

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

    fn __repr__(&self) -> &'static str {
        "<toclip.Halves: means of the gradients of even and of odd steps>"
    }
}
