//! Threshold rules, fed norm by norm.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use toclip::threshold_rules::{AutoClip, Fixed, Huber, Monitored, ThresholdRule, ZClip};

use crate::args::{count, maybe_count, maybe_number, number, text, whole};
use crate::convert::{numbers, refuse};
use crate::monitor::{Monitor, settings};

/// Any of the rules, as a state can be written and read.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Any {
    Fixed(Fixed),
    AutoClip(AutoClip),
    ZClip(ZClip),
    Huber(Huber),
    Monitored(Box<Monitored>),
}

impl Any {
    fn rule(&mut self) -> &mut dyn ThresholdRule {
        match self {
            Any::Fixed(rule) => rule,
            Any::AutoClip(rule) => rule,
            Any::ZClip(rule) => rule,
            Any::Huber(rule) => rule,
            Any::Monitored(rule) => &mut **rule,
        }
    }
}

/// A rule that sees the norm of each gradient before clipping and answers with a threshold.
#[pyclass(frozen, module = "toclip._toclip")]
#[derive(Debug)]
pub struct Rule {
    inner: Mutex<Any>,
}

impl Rule {
    fn lock(&self) -> MutexGuard<'_, Any> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(inner: toclip::Result<Any>) -> PyResult<Self> {
        inner.map(|inner| Rule { inner: Mutex::new(inner) }).map_err(refuse)
    }
}

#[pymethods]
impl Rule {
    /// Always the same threshold; infinite for no clipping.
    #[staticmethod]
    fn fixed(#[pyo3(from_py_with = number::threshold)] threshold: f64) -> PyResult<Self> {
        Rule::of(Fixed::new(threshold).map(Any::Fixed))
    }

    /// A percentile of all norms so far, or of the last `window`.
    #[staticmethod]
    #[pyo3(signature = (percentile = 10.0, window = None))]
    fn autoclip(
        #[pyo3(from_py_with = number::percentile)] percentile: f64,
        #[pyo3(from_py_with = maybe_count::window)] window: Option<usize>,
    ) -> PyResult<Self> {
        let rule = match window {
            Some(window) => AutoClip::windowed(percentile, window),
            None => AutoClip::new(percentile),
        };
        Rule::of(rule.map(Any::AutoClip))
    }

    /// Mean plus standard deviations of the norms, and less for worse spikes.
    #[staticmethod]
    #[pyo3(signature = (*, alpha = 0.97, z = 2.5, warmup = 25, cap = 1.0))]
    fn zclip(
        #[pyo3(from_py_with = number::alpha)] alpha: f64,
        #[pyo3(from_py_with = number::z)] z: f64,
        #[pyo3(from_py_with = count::warmup)] warmup: u32,
        #[pyo3(from_py_with = maybe_number::cap)] cap: Option<f64>,
    ) -> PyResult<Self> {
        let mut rule = ZClip::default();
        (rule.alpha, rule.z, rule.warmup, rule.cap) = (alpha, z, warmup, cap);
        Rule::of(rule.started().map(Any::ZClip))
    }

    /// `kappa` times the scale that the median of the last `window` norms shows.
    #[staticmethod]
    #[pyo3(signature = (kappa = 1.345, window = 1000, components = 1.0))]
    fn huber(
        #[pyo3(from_py_with = number::kappa)] kappa: f64,
        #[pyo3(from_py_with = count::window)] window: usize,
        #[pyo3(from_py_with = number::components)] components: f64,
    ) -> PyResult<Self> {
        Rule::of(Huber::new(kappa, window, components).map(Any::Huber))
    }

    /// Where a monitor of the same norms shows a gain, else no clipping; asked every `every` steps.
    #[staticmethod]
    #[pyo3(signature = (*, every = 200, components = None, memory = None, scale_memory = 200.0,
                        fixed_scale = None, confidence = 0.95, margin = 0.1))]
    fn monitored(
        #[pyo3(from_py_with = whole::every)] every: u64,
        #[pyo3(from_py_with = maybe_number::components)] components: Option<f64>,
        #[pyo3(from_py_with = maybe_count::memory)] memory: Option<usize>,
        #[pyo3(from_py_with = number::scale_memory)] scale_memory: f64,
        #[pyo3(from_py_with = maybe_number::fixed_scale)] fixed_scale: Option<f64>,
        #[pyo3(from_py_with = number::confidence)] confidence: f64,
        #[pyo3(from_py_with = number::margin)] margin: f64,
    ) -> PyResult<Self> {
        let settings =
            settings(components, memory, scale_memory, fixed_scale, None, confidence, margin);
        Rule::of(Monitored::new(settings, every).map(|rule| Any::Monitored(Box::new(rule))))
    }

    /// The threshold for each of these norms, in their order; learns from them.
    fn thresholds<'py>(
        &self,
        py: Python<'py>,
        norms: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let norms = numbers("norms", norms)?;
        let norms = norms.as_slice()?;
        let found: Vec<f64> = py.detach(|| {
            let mut rule = self.lock();
            norms.iter().map(|&norm| rule.rule().threshold(norm)).collect()
        });
        Ok(found.to_pyarray(py))
    }

    /// The threshold that the next step would get, and the factor for its learning rate; learns
    /// nothing.
    fn next<'py>(&self, py: Python<'py>) -> (f64, f64) {
        py.detach(|| {
            let next = self.lock().rule().next_step();
            (next.threshold, next.rate_factor)
        })
    }

    /// By what the learning rate is to be multiplied.
    #[getter]
    fn rate_factor(&self) -> f64 {
        self.lock().rule().rate_factor()
    }

    /// A copy of the monitor that is followed; `None` for rules without one.
    #[getter]
    fn monitor(&self) -> Option<Monitor> {
        match &*self.lock() {
            Any::Monitored(rule) => Some(Monitor::of(rule.monitor().clone())),
            _ => None,
        }
    }

    /// Everything it knows, as JSON.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&*self.lock()).map_err(refuse)
    }

    /// A rule as it was written by `to_json`.
    #[staticmethod]
    fn from_json(#[pyo3(from_py_with = text::text)] text: String) -> PyResult<Self> {
        serde_json::from_str(&text)
            .map(|inner| Rule { inner: Mutex::new(inner) })
            .map_err(|error| refuse(format!("this is not the state of a rule: {error}")))
    }

    fn __repr__(&self) -> String {
        format!("<toclip.Rule: {}>", self.lock().rule().describe())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("from_json")?, (slf.get().to_json()?,)))
    }
}
