//! The rate of Theorem 1, measured.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use toclip::convergence::Convergence;
use toclip::schedule::{Policy, Scaled};
use toclip::spectrum::{Modes, Start};
use toclip_experiment::check_steps;

use crate::args::{maybe_count, number, whole};
use crate::convert::{refuse, to_python};
use crate::noise::Noise;
use crate::schedule::{Made, policy};
use crate::spectrum::Spectrum;
use crate::values::from_python;
use crate::watch::watched;

/// E sup |R of SGD - R of the ODE| for each spectrum, and the power of the dimension through them:
/// a dictionary.
#[pyfunction]
#[pyo3(signature = (spectra, start, noise, *, learning_rate, clip, time, runs, seed, confidence,
                    threads, progress))]
#[expect(clippy::too_many_arguments, reason = "all but three are named")]
pub fn convergence<'py>(
    py: Python<'py>,
    spectra: Vec<PyRef<'py, Spectrum>>,
    start: &Bound<'py, PyAny>,
    noise: &Noise,
    learning_rate: &Bound<'py, PyAny>,
    clip: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = number::time)] time: f64,
    #[pyo3(from_py_with = whole::runs)] runs: u64,
    #[pyo3(from_py_with = whole::seed)] seed: u64,
    #[pyo3(from_py_with = number::confidence)] confidence: f64,
    #[pyo3(from_py_with = maybe_count::threads)] threads: Option<usize>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let start: Start = from_python("start", start)?;
    let modes: toclip::Result<Vec<Modes>> =
        spectra.iter().map(|spectrum| Modes::new(&spectrum.inner, &start)).collect();
    let modes = modes.map_err(refuse)?;
    let noise = noise.inner.clone();
    let Made { policy: rule, eta, in_units } = policy(learning_rate, clip, &noise, false)?;
    let rescaling = spectra.first().map(|spectrum| spectrum.inner.rescaling());
    let policy: Arc<dyn Policy> = match rescaling.filter(|rescaling| !rescaling.is_identity()) {
        None => rule,
        Some(rescaling) => {
            let rate = if eta.is_some() { rescaling.learning_rate(1.0) } else { 1.0 };
            let threshold = if in_units { rescaling.threshold(1.0) } else { 1.0 };
            Arc::new(Scaled::new(rule, rate, threshold))
        }
    };
    let norms: Vec<f64> = spectra.iter().map(|spectrum| spectrum.inner.norm()).collect();
    if let Some(other) = norms.iter().find(|norm| **norm != norms[0]) {
        return Err(refuse(format!(
            "the largest eigenvalues of the spectra are {} and {other}: give spectra of one family, \
             with the same",
            norms[0]
        )));
    }
    if modes.iter().all(|one| one.dim() == modes[0].dim()) {
        return Err(refuse("a slope needs at least two different dimensions"));
    }
    for modes in &modes {
        check_steps(time, modes.dim()).map_err(refuse)?;
    }
    let experiment = Convergence { time, runs, seed, confidence, threads };
    let places: Vec<u64> = (0..modes.len() as u64).collect();
    let family = |place: u64| Ok(modes[place as usize].clone());
    let all = runs.saturating_mul(modes.len() as u64);
    let rate = watched(py, progress, all, |watch| {
        let tell = |done| watch.done.store(done, Ordering::Relaxed);
        experiment.measure_until(&places, &family, noise, policy, Some(&tell), &watch.cancel)
    })?
    .map_err(refuse)?;
    to_python(py, &rate)
}
