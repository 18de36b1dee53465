//! The monitor.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use toclip::monitor::{Advice, Memory, NormScale, Reason, Settings};

use crate::args::{maybe_count, maybe_number, number, text};
use crate::convert::{numbers, refuse, to_python};
use crate::halves::Halves;

/// Running estimates of what clipping does, from the norms of a run's gradients before clipping.
#[pyclass(frozen, module = "toclip._toclip")]
#[derive(Debug)]
pub struct Monitor {
    inner: Mutex<toclip::monitor::Monitor>,
}

/// What a monitor is told, as Python says it.
pub fn settings(
    components: Option<f64>,
    memory: Option<usize>,
    scale_memory: f64,
    fixed_scale: Option<f64>,
    watched: Option<f64>,
    confidence: f64,
    margin: f64,
) -> Settings {
    Settings {
        components,
        memory: memory.map_or(Memory::All, Memory::Last),
        scale: fixed_scale.map_or(NormScale::Running(scale_memory), NormScale::Fixed),
        watched,
        confidence,
        margin,
    }
}

/// An advice as a dictionary: `kind` (`clip`, `loosen` or `stay`), `sentence`, and either the
/// choice's numbers or the reason with the best candidate's.
pub fn advice_dict<'py>(py: Python<'py>, advice: &Advice) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let (kind, reason, choice) = match advice {
        Advice::Clip(choice) => ("clip", None, Some(choice)),
        Advice::Loosen(choice) => ("loosen", None, Some(choice)),
        Advice::Stay(Reason::NoGain(best)) => ("stay", Some("no_gain"), Some(best)),
        Advice::Stay(Reason::NormsAlone { best, .. }) => ("stay", Some("norms_alone"), Some(best)),
        Advice::Stay(Reason::NoBetter(best)) => ("stay", Some("no_better"), Some(best)),
        Advice::Stay(Reason::TooFew { .. }) => ("stay", Some("too_few"), None),
        Advice::Stay(Reason::Drift(_)) => ("stay", Some("drift"), None),
        Advice::Stay(Reason::OneStretch { best, .. }) => ("stay", Some("one_stretch"), Some(best)),
        Advice::Stay(Reason::Swings { best, .. }) => ("stay", Some("swings"), Some(best)),
    };
    dict.set_item("kind", kind)?;
    dict.set_item("sentence", advice.to_string())?;
    dict.set_item("reason", reason)?;
    dict.set_item("choice", choice.map(|choice| to_python(py, choice)).transpose()?)?;
    Ok(dict)
}

impl Monitor {
    fn lock(&self) -> MutexGuard<'_, toclip::monitor::Monitor> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn of(inner: toclip::monitor::Monitor) -> Self {
        Monitor { inner: Mutex::new(inner) }
    }
}

#[pymethods]
impl Monitor {
    /// See `toclip.Monitor`.
    #[new]
    #[pyo3(signature = (*, components = None, memory = None, scale_memory = 200.0, fixed_scale = None,
                        watched = None, confidence = 0.95, margin = 0.1))]
    fn new(
        #[pyo3(from_py_with = maybe_number::components)] components: Option<f64>,
        #[pyo3(from_py_with = maybe_count::memory)] memory: Option<usize>,
        #[pyo3(from_py_with = number::scale_memory)] scale_memory: f64,
        #[pyo3(from_py_with = maybe_number::fixed_scale)] fixed_scale: Option<f64>,
        #[pyo3(from_py_with = maybe_number::watched)] watched: Option<f64>,
        #[pyo3(from_py_with = number::confidence)] confidence: f64,
        #[pyo3(from_py_with = number::margin)] margin: f64,
    ) -> PyResult<Self> {
        let settings =
            settings(components, memory, scale_memory, fixed_scale, watched, confidence, margin);
        toclip::monitor::Monitor::new(settings).map(Monitor::of).map_err(refuse)
    }

    /// Takes in the norms of steps, in their order.
    fn observe(&self, py: Python<'_>, norms: &Bound<'_, PyAny>) -> PyResult<()> {
        let norms = numbers("norms", norms)?;
        let norms = norms.as_slice()?;
        py.detach(|| {
            let mut monitor = self.lock();
            norms.iter().for_each(|&norm| monitor.observe(norm));
        });
        Ok(())
    }

    /// Takes in norms and inner products with an independent estimate of the mean gradient.
    fn observe_aligned(
        &self,
        py: Python<'_>,
        norms: &Bound<'_, PyAny>,
        inners: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (norms, inners) = (numbers("norms", norms)?, numbers("inners", inners)?);
        let (norms, inners) = (norms.as_slice()?, inners.as_slice()?);
        if norms.len() != inners.len() {
            let (n, m) = (norms.len(), inners.len());
            return Err(refuse(format!("{n} norms came with {m} inner products: give one each")));
        }
        py.detach(|| {
            let mut monitor = self.lock();
            norms.iter().zip(inners).for_each(|(&n, &p)| monitor.observe_aligned(n, p));
        });
        Ok(())
    }

    /// Takes in a whole gradient, with the other half of the steps for reference; gives its norm.
    fn observe_vector(
        &self,
        py: Python<'_>,
        halves: &Halves,
        gradient: &Bound<'_, PyAny>,
    ) -> PyResult<f64> {
        let gradient = numbers("gradient", gradient)?;
        let gradient = gradient.as_slice()?;
        py.detach(|| self.lock().observe_vector(&mut halves.lock(), gradient)).map_err(refuse)
    }

    /// Takes in all that another monitor with the same settings has seen.
    fn merge(&self, py: Python<'_>, other: &Monitor) -> PyResult<()> {
        // A copy, so that two locks are never held at once.
        let other = other.lock().clone();
        py.detach(|| self.lock().merge(&other)).map_err(refuse)
    }

    /// Steps that are counted at present.
    #[getter]
    fn steps(&self) -> u64 {
        self.lock().steps()
    }

    /// The present scale of the norms; `None` before the first.
    #[getter]
    fn scale(&self) -> Option<f64> {
        self.lock().scale()
    }

    /// Norms that were left out: `zero` and `not_finite`.
    #[getter]
    fn left_out<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.lock().left_out())
    }

    /// The settings.
    #[getter]
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.lock().settings())
    }

    /// The threshold to use: the advised one, or the one in force; infinite without either.
    fn threshold(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.lock().threshold())
    }

    /// What to do about the threshold.
    fn advice<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let advice = py.detach(|| self.lock().advice());
        advice_dict(py, &advice)
    }

    /// The estimates at the 64 candidates, lowest first: a list of dictionaries.
    fn curve<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let curve = py.detach(|| self.lock().curve());
        to_python(py, &curve)
    }

    /// The estimates at the watched threshold.
    fn watched<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let watched = py.detach(|| self.lock().watched());
        to_python(py, &watched)
    }

    /// The tail of the norms; `None` while fewer than thirty are in it.
    fn tail<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let tail = py.detach(|| self.lock().tail());
        to_python(py, &tail)
    }

    /// Whether the law of the norms changed; `None` before the first steps.
    fn drift<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let drift = py.detach(|| self.lock().drift());
        to_python(py, &drift)
    }

    /// Everything it knows, as JSON.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&*self.lock()).map_err(refuse)
    }

    /// A monitor as it was written by `to_json`.
    #[staticmethod]
    fn from_json(#[pyo3(from_py_with = text::text)] text: String) -> PyResult<Self> {
        serde_json::from_str(&text)
            .map(Monitor::of)
            .map_err(|error| refuse(format!("this is not the state of a monitor: {error}")))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Monitor>().is_ok_and(|other| {
            let other = other.get().lock().clone();
            *self.lock() == other
        })
    }

    fn __repr__(&self) -> String {
        let monitor = self.lock();
        let scale = monitor.scale().map_or("none".into(), |scale| format!("{scale:.4}"));
        format!("<toclip.Monitor: {} steps, scale {scale}>", monitor.steps())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("from_json")?, (slf.get().to_json()?,)))
    }
}
