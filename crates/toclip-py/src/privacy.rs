//! The privacy of one pass of private SGD.

use pyo3::prelude::*;
use toclip::privacy;

use crate::args::arg;
use crate::convert::refuse;

/// δ(ε) of one pass.
#[pyfunction]
pub fn privacy_delta(
    #[pyo3(from_py_with = arg::noise_multiplier)] noise_multiplier: f64,
    #[pyo3(from_py_with = arg::epsilon)] epsilon: f64,
) -> PyResult<f64> {
    privacy::delta(noise_multiplier, epsilon).map_err(refuse)
}

/// ε(δ) of one pass.
#[pyfunction]
pub fn privacy_epsilon(
    #[pyo3(from_py_with = arg::noise_multiplier)] noise_multiplier: f64,
    #[pyo3(from_py_with = arg::delta)] delta: f64,
) -> PyResult<f64> {
    privacy::epsilon(noise_multiplier, delta).map_err(refuse)
}

/// The noise multiplier with which one pass is (ε, δ)-private.
#[pyfunction]
pub fn privacy_noise_multiplier(
    #[pyo3(from_py_with = arg::epsilon)] epsilon: f64,
    #[pyo3(from_py_with = arg::delta)] delta: f64,
) -> PyResult<f64> {
    privacy::noise_multiplier(epsilon, delta).map_err(refuse)
}
