//! Measures the rate of Theorem 1.

use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use toclip::Problem;
use toclip::convergence::Convergence;
use toclip::spectrum::{Modes, Start};
use toclip_experiment::check_steps;

use crate::args::arg;
use crate::background::in_background;
use crate::convert::{refuse, to_python};
use crate::noise::Noise;
use crate::schedule::policy;
use crate::spectrum::Spectrum;
use crate::values::from_python;

/// E sup |R of SGD - R of the ODE| for each spectrum, and the power of the dimension fitted to them,
/// as a dictionary.
#[pyfunction]
pub fn convergence<'py>(
    py: Python<'py>,
    spectra: Vec<PyRef<'py, Spectrum>>,
    start: &Bound<'py, PyAny>,
    noise: &Noise,
    learning_rate: &Bound<'py, PyAny>,
    clip: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arg::time)] time: f64,
    #[pyo3(from_py_with = arg::runs)] runs: u64,
    #[pyo3(from_py_with = arg::seed)] seed: u64,
    #[pyo3(from_py_with = arg::confidence)] confidence: f64,
    #[pyo3(from_py_with = arg::threads)] threads: Option<usize>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let start: Start = from_python("start", start)?;
    let modes: toclip::Result<Vec<Modes>> =
        spectra.iter().map(|spectrum| Modes::new(&spectrum.inner, &start)).collect();
    let modes = modes.map_err(refuse)?;
    let spec = policy(learning_rate, clip, None)?;
    let norms: Vec<f64> = spectra.iter().map(|spectrum| spectrum.inner.norm()).collect();
    if let Some(other) = norms.iter().find(|norm| **norm != norms[0]) {
        return Err(refuse(format!(
            "the largest eigenvalues of the spectra are {} and {other}; expected spectra with the \
             same largest eigenvalue",
            norms[0]
        )));
    }
    if modes.iter().all(|one| one.dim() == modes[0].dim()) {
        return Err(refuse("the slope needs at least two different dimensions"));
    }
    for modes in &modes {
        check_steps(time, modes.dim()).map_err(refuse)?;
    }
    let (step, rescaling) = (noise.inner.clone(), spectra[0].inner.rescaling());
    let policy = spec.build(&modes[0], &step, &rescaling).map_err(refuse)?;
    let experiment = Convergence { time, runs, seed, confidence, threads };
    let places: Vec<u64> = (0..modes.len() as u64).collect();
    let family =
        |place: u64| Problem::new(modes[place as usize].clone(), step.clone(), policy.clone());
    let all = runs.saturating_mul(modes.len() as u64);
    let rate = in_background(py, progress, all, |shared| {
        let tell = |done| shared.done.store(done, Ordering::Relaxed);
        experiment.measure_until(&places, &family, Some(&tell), &shared.cancel)
    })?
    .map_err(refuse)?;
    to_python(py, &rate)
}
