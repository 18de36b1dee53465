//! Threshold rules, fed norm by norm.

use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::{Deserialize, Serialize};
use toclip::threshold_rules::{
    self, AutoClip, EmpiricalCcc, Fixed, HuberThreshold, Monitored, SkipAbove, ZClip,
};

use crate::args::{Threshold, arg};
use crate::convert::refuse;
use crate::monitor::Monitor;
use crate::state::State;

/// Any of the rules, with its state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AnyRule {
    Fixed(Fixed),
    AutoClip(AutoClip),
    ZClip(ZClip),
    Huber(HuberThreshold),
    EmpiricalCcc(Box<EmpiricalCcc>),
    SkipAbove(SkipAbove),
    Monitored(Box<Monitored>),
}

impl AnyRule {
    fn get(&mut self) -> &mut dyn threshold_rules::ThresholdRule {
        match self {
            AnyRule::Fixed(rule) => rule,
            AnyRule::AutoClip(rule) => rule,
            AnyRule::ZClip(rule) => rule,
            AnyRule::Huber(rule) => rule,
            AnyRule::EmpiricalCcc(rule) => &mut **rule,
            AnyRule::SkipAbove(rule) => rule,
            AnyRule::Monitored(rule) => &mut **rule,
        }
    }
}

/// A rule that is given the norm of each gradient before clipping and returns a threshold for it.
#[pyclass(frozen, module = "toclip._toclip")]
#[derive(Debug)]
pub struct ThresholdRule(State<AnyRule>);

impl ThresholdRule {
    fn of(rule: toclip::Result<AnyRule>) -> PyResult<Self> {
        rule.map(|rule| ThresholdRule(State::new(rule))).map_err(refuse)
    }
}

#[pymethods]
impl ThresholdRule {
    /// Always the same threshold; `"none"` or infinite for no clipping.
    #[staticmethod]
    fn fixed(#[pyo3(from_py_with = arg::threshold)] threshold: Threshold) -> PyResult<Self> {
        ThresholdRule::of(Fixed::new(threshold.0).map(AnyRule::Fixed))
    }

    /// A percentile of all norms so far, or of the last `window`.
    #[staticmethod]
    #[pyo3(signature = (percentile = 10.0, window = None))]
    fn autoclip(
        #[pyo3(from_py_with = arg::percentile)] percentile: f64,
        #[pyo3(from_py_with = arg::window)] window: Option<usize>,
    ) -> PyResult<Self> {
        let rule = match window {
            Some(window) => AutoClip::windowed(percentile, window),
            None => AutoClip::new(percentile),
        };
        ThresholdRule::of(rule.map(AnyRule::AutoClip))
    }

    /// Mean plus `z` standard deviations of the norms, and lower for larger spikes; at most `cap`.
    #[staticmethod]
    #[pyo3(signature = (*, alpha = 0.97, z = 2.5, warmup = 25, cap = Threshold(1.0)),
           text_signature = "(*, alpha=0.97, z=2.5, warmup=25, cap=1.0)")]
    fn zclip(
        #[pyo3(from_py_with = arg::alpha)] alpha: f64,
        #[pyo3(from_py_with = arg::z)] z: f64,
        #[pyo3(from_py_with = arg::warmup)] warmup: u32,
        #[pyo3(from_py_with = arg::cap)] cap: Threshold,
    ) -> PyResult<Self> {
        let mut rule = ZClip::default();
        (rule.alpha, rule.z, rule.warmup) = (alpha, z, warmup);
        rule.cap = (cap.0 != f64::INFINITY).then_some(cap.0);
        ThresholdRule::of(rule.started().map(AnyRule::ZClip))
    }

    /// `kappa` times the scale estimated from the median of the last `window` norms.
    #[staticmethod]
    #[pyo3(signature = (kappa = 1.345, window = 1000, components = 1.0))]
    fn huber(
        #[pyo3(from_py_with = arg::kappa)] kappa: f64,
        #[pyo3(from_py_with = arg::window)] window: usize,
        #[pyo3(from_py_with = arg::components)] components: f64,
    ) -> PyResult<Self> {
        ThresholdRule::of(HuberThreshold::new(kappa, window, components).map(AnyRule::Huber))
    }

    /// The threshold with the largest CCC under the distribution of the last 400 norms, and its
    /// learning-rate factor. `components` is the batch size times the outputs, if known.
    #[staticmethod]
    #[pyo3(signature = (components = None))]
    fn empirical_ccc(
        #[pyo3(from_py_with = arg::components)] components: Option<f64>,
    ) -> PyResult<Self> {
        let rule = EmpiricalCcc::new(components);
        ThresholdRule::of(rule.map(|rule| AnyRule::EmpiricalCcc(Box::new(rule))))
    }

    /// Skips a step whose norm is above `multiple` times the median of the last `window` norms.
    #[staticmethod]
    #[pyo3(signature = (multiple = 4.0, window = 100))]
    fn skip_above(
        #[pyo3(from_py_with = arg::multiple)] multiple: f64,
        #[pyo3(from_py_with = arg::window)] window: usize,
    ) -> PyResult<Self> {
        ThresholdRule::of(SkipAbove::new(multiple, window).map(AnyRule::SkipAbove))
    }

    /// Whether a step above the threshold is to be skipped, not clipped.
    #[getter]
    fn skips(&self) -> bool {
        self.0.lock().get().skips()
    }

    /// The threshold that a monitor of the same norms advises, else no clipping; updated every
    /// `every` steps. The settings are those of `toclip.Monitor`.
    #[staticmethod]
    #[pyo3(signature = (*, every = 200, **settings))]
    fn monitored(
        py: Python<'_>,
        #[pyo3(from_py_with = arg::every)] every: u64,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let monitor = py.get_type::<Monitor>().call((), settings)?.cast_into::<Monitor>()?;
        let rule = Monitored::new(*monitor.get().0.lock().settings(), every);
        ThresholdRule::of(rule.map(|rule| AnyRule::Monitored(Box::new(rule))))
    }

    /// The threshold for each of these norms, in their order; the rule learns from them.
    fn thresholds<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arg::norms)] norms: Vec<f64>,
    ) -> Bound<'py, PyArray1<f64>> {
        let thresholds: Vec<f64> = py.detach(|| {
            let mut rule = self.0.lock();
            norms.iter().map(|&norm| rule.get().threshold(norm)).collect()
        });
        thresholds.to_pyarray(py)
    }

    /// The threshold of the next step and the factor for its learning rate; the rule does not change.
    fn next(&self, py: Python<'_>) -> (f64, f64) {
        py.detach(|| {
            let next = self.0.lock().get().next_step();
            (next.threshold, next.rate_factor)
        })
    }

    /// The factor by which to multiply the learning rate.
    #[getter]
    fn rate_factor(&self) -> f64 {
        self.0.lock().get().rate_factor()
    }

    /// A copy of the monitor that the rule follows; `None` for rules without one.
    #[getter]
    fn monitor(&self) -> Option<Monitor> {
        match &*self.0.lock() {
            AnyRule::Monitored(rule) => Some(Monitor(State::new(rule.monitor().clone()))),
            _ => None,
        }
    }

    /// The whole state as JSON.
    fn to_json(&self) -> PyResult<String> {
        self.0.to_json()
    }

    /// Reads the state that `to_json` wrote.
    #[staticmethod]
    fn from_json(#[pyo3(from_py_with = arg::state)] state: String) -> PyResult<Self> {
        State::from_json("a threshold rule", &state).map(ThresholdRule)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<ThresholdRule>() else { return Ok(false) };
        Ok(self.to_json()? == other.get().to_json()?)
    }

    fn __repr__(&self) -> String {
        format!("<toclip.ThresholdRule: {}>", self.0.lock().get().describe())
    }
}
