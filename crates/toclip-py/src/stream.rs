//! C-SGD on the rows of a data matrix.

use std::sync::Arc;

use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use toclip::dynamics::Data;
use toclip::schedule::{Policy, Scaled};

use crate::args::{flag, maybe_count, number, whole};
use crate::convert::{array, numbers, refuse};
use crate::noise::Noise;
use crate::schedule::policy;
use crate::simulate;
use crate::spectrum::Spectrum;

/// One pass of C-SGD over given data.
#[pyclass(frozen, module = "toclip._toclip")]
#[derive(Debug)]
pub struct Stream {
    inner: toclip::dynamics::Stream,
    /// Steps in a unit of time.
    dim: f64,
}

#[pymethods]
impl Stream {
    /// See `toclip.Stream`; `spectrum` is that of the covariance.
    #[new]
    #[pyo3(signature = (features, targets, start, optimum, covariance, spectrum, noise,
                        learning_rate, clip, in_order))]
    #[expect(clippy::too_many_arguments, reason = "all of them from one place in Python")]
    fn new(
        features: &Bound<'_, PyAny>,
        targets: &Bound<'_, PyAny>,
        start: &Bound<'_, PyAny>,
        optimum: &Bound<'_, PyAny>,
        covariance: &Bound<'_, PyAny>,
        spectrum: &Spectrum,
        noise: &Noise,
        learning_rate: &Bound<'_, PyAny>,
        clip: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = flag::in_order)] in_order: bool,
    ) -> PyResult<Self> {
        let targets = numbers("targets", targets)?.as_slice()?.to_vec();
        let start = numbers("start", start)?.as_slice()?.to_vec();
        let (n, p) = (targets.len(), start.len());
        let data = Data {
            features: matrix("features", features, [n, p])?,
            optimum: numbers("optimum", optimum)?.as_slice()?.to_vec(),
            covariance: matrix("covariance", covariance, [p, p])?,
            dim: spectrum.inner.intrinsic_dim(),
            targets,
            start,
        };
        let spec = policy(learning_rate, clip, None)?;
        let rule = spec.rule(&noise.inner).map_err(refuse)?;
        let rescaling = spectrum.inner.rescaling();
        // The iteration is that of the user's own coordinates, so what the user gave stays as it is
        // and what the theory gives is brought back.
        let back = rescaling.inverse();
        let rate =
            if spec.learning_rate.schedule().is_some() { 1.0 } else { back.learning_rate(1.0) };
        let threshold = if spec.has_own_thresholds() { 1.0 } else { back.threshold(1.0) };
        let policy: Arc<dyn Policy> = if (rate, threshold) == (1.0, 1.0) {
            rule
        } else if rule.session().is_some() {
            return Err(refuse(format!(
                "online rules need features of norm 1, and the norm of these is {}: divide the \
                 features by its root",
                rescaling.norm()
            )));
        } else {
            Arc::new(Scaled::new(rule, rate, threshold))
        };
        let inner = toclip::dynamics::Stream::new(data, policy).map_err(refuse)?;
        let dim = spectrum.inner.intrinsic_dim();
        Ok(Stream { inner: if in_order { inner.in_order() } else { inner }, dim })
    }

    /// The time at which the data end.
    #[getter]
    fn end(&self) -> f64 {
        self.inner.end()
    }

    /// Statistics of many passes, each in an order of its own.
    #[pyo3(signature = (times, *, runs, seed, confidence, threads, progress))]
    #[expect(clippy::too_many_arguments, reason = "all but the first are named")]
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        times: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = whole::runs)] runs: u64,
        #[pyo3(from_py_with = whole::seed)] seed: u64,
        #[pyo3(from_py_with = number::confidence)] confidence: f64,
        #[pyo3(from_py_with = maybe_count::threads)] threads: Option<usize>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let times = numbers("times", times)?;
        let times = times.as_slice()?;
        let asked = simulate::Asked { times, dim: self.dim, runs, seed, confidence, threads };
        simulate::ensemble(py, &self.inner, &asked, progress, |path| path)
    }

    /// Pass number `index` of those with this seed.
    #[pyo3(signature = (times, *, seed, index))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        times: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = whole::seed)] seed: u64,
        #[pyo3(from_py_with = whole::index)] index: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let times = numbers("times", times)?;
        let path = simulate::one(py, &self.inner, times.as_slice()?, self.dim, seed, index)?;
        simulate::path(py, &path)
    }
}

/// The numbers of a matrix, row by row.
fn matrix(name: &str, value: &Bound<'_, PyAny>, shape: [usize; 2]) -> PyResult<Vec<f64>> {
    let given = array(name, value)?;
    if given.shape() != shape {
        return Err(refuse(format!(
            "{name} must have the shape {shape:?}, not {:?}: a row for each target, a column for each \
             coordinate of start",
            given.shape()
        )));
    }
    let flat = given.into_any().call_method0("ravel")?;
    Ok(numbers(name, &flat)?.as_slice()?.to_vec())
}
