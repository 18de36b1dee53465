//! C-SGD on the rows of a data matrix.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use toclip::dynamics::StreamData;
use toclip::ensemble::Ensemble;
use toclip::policy::Scaled;

use crate::args::arg;
use crate::convert::refuse;
use crate::noise::Noise;
use crate::schedule::policy;
use crate::simulate;
use crate::spectrum::Spectrum;

/// One pass of C-SGD over given data.
#[pyclass(frozen, module = "toclip._toclip")]
#[derive(Debug)]
pub struct Stream {
    inner: toclip::dynamics::Stream,
    /// Steps per unit of time.
    dim: f64,
}

#[pymethods]
impl Stream {
    /// See `toclip.Stream`; matrices are flat, row by row, and `spectrum` is that of the covariance.
    #[new]
    fn new(
        #[pyo3(from_py_with = arg::features)] features: Vec<f64>,
        #[pyo3(from_py_with = arg::targets)] targets: Vec<f64>,
        #[pyo3(from_py_with = arg::start)] start: Vec<f64>,
        #[pyo3(from_py_with = arg::optimum)] optimum: Vec<f64>,
        #[pyo3(from_py_with = arg::covariance)] covariance: Vec<f64>,
        spectrum: &Spectrum,
        noise: &Noise,
        learning_rate: &Bound<'_, PyAny>,
        clip: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arg::in_order)] in_order: bool,
        rule: Option<&Bound<'_, PyAny>>,
        groups: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let dim = spectrum.inner.intrinsic_dim();
        let data = StreamData { features, targets, start, optimum, covariance, dim };
        let spec = policy(learning_rate, clip, None)?;
        // The iteration runs in the units of the user, so only the numbers of the theory are rescaled.
        let back = spectrum.inner.rescaling().inverse();
        let own_rate = spec.learning_rate.schedule().is_some();
        let rate = if own_rate { 1.0 } else { back.learning_rate(1.0) };
        let threshold = if spec.has_own_thresholds() { 1.0 } else { back.threshold(1.0) };
        let rule = noise.training(rule, groups)?.reshaping().map_err(refuse)?;
        let step = noise.inner.clone().with_rule(rule.clone()).map_err(refuse)?;
        let unscaled = spec.unscaled(&step).map_err(refuse)?;
        let policy = Scaled::new(unscaled, rate, threshold);
        let inner = toclip::dynamics::Stream::new(data, policy)
            .and_then(|stream| stream.with_rule(rule))
            .map_err(refuse)?;
        Ok(Stream { inner: if in_order { inner.in_order() } else { inner }, dim })
    }

    /// The time at which the data end.
    #[getter]
    fn end(&self) -> f64 {
        self.inner.end()
    }

    /// Statistics of many passes, each in its own random order.
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arg::times)] times: Vec<f64>,
        #[pyo3(from_py_with = arg::runs)] runs: u64,
        #[pyo3(from_py_with = arg::seed)] seed: u64,
        #[pyo3(from_py_with = arg::confidence)] confidence: f64,
        #[pyo3(from_py_with = arg::threads)] threads: Option<usize>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (simulator, dim) = (&self.inner, self.dim);
        let ensemble = Ensemble { threads, ..Ensemble::new(runs, seed) };
        simulate::ensemble(py, simulator, ensemble, confidence, &times, dim, progress, |path| path)
    }

    /// Pass number `index` of those with this seed.
    fn run<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arg::times)] times: Vec<f64>,
        #[pyo3(from_py_with = arg::seed)] seed: u64,
        #[pyo3(from_py_with = arg::index)] index: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let path = simulate::one(py, &self.inner, &times, self.dim, seed, index)?;
        simulate::path(py, &path, None)
    }
}
