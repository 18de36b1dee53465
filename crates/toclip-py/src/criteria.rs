//! The best threshold, and limits that no clipping can exceed.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use rayon::prelude::*;
use toclip::criteria;

use crate::args::arg;
use crate::convert::{columns, refuse, to_python};
use crate::noise::Noise;
use crate::pool::pooled;

/// The threshold with the largest CCC at each risk: arrays `c`, `mu`, `m2`, `ccc`, `efficiency`.
#[pyfunction]
pub fn best_threshold<'py>(
    py: Python<'py>,
    noise: &Noise,
    #[pyo3(from_py_with = arg::r)] r: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyDict>> {
    let found = each(py, noise, r.as_slice()?, criteria::best_threshold)?;
    columns!(py, found, c mu m2 ccc efficiency)
}

/// The Fisher information of the residual at each risk: arrays `information`, `limit`, `reached`.
#[pyfunction]
pub fn fisher_limit<'py>(
    py: Python<'py>,
    noise: &Noise,
    #[pyo3(from_py_with = arg::r)] r: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyDict>> {
    let found = each(py, noise, r.as_slice()?, criteria::fisher_limit)?;
    columns!(py, found, information limit reached)
}

/// The range of mu/min(1, y) and nu/min(1, y²), y = c/sqrt(2R + σ²), over a range of risks and one
/// of thresholds: a dictionary of pairs `mu` and `nu`.
#[pyfunction]
pub fn kappa_bounds<'py>(
    py: Python<'py>,
    noise: &Noise,
    #[pyo3(from_py_with = arg::risks)] risks: PyReadonlyArray1<'py, f64>,
    #[pyo3(from_py_with = arg::thresholds)] thresholds: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyAny>> {
    let range = |name: &str, ends: &[f64]| match ends {
        &[low, high] => Ok((low, high)),
        _ => Err(refuse(format!(
            "{name} must be the two ends of a range, such as (0.1, 10.0), not {} numbers",
            ends.len()
        ))),
    };
    let risks = range("risks", risks.as_slice()?)?;
    let thresholds = range("thresholds", thresholds.as_slice()?)?;
    let noise = &*noise.inner;
    let found = py.detach(|| criteria::kappa_bounds(noise, risks, thresholds)).map_err(refuse)?;
    to_python(py, &found)
}

fn each<T: Send>(
    py: Python<'_>,
    noise: &Noise,
    r: &[f64],
    find: fn(&dyn toclip::noise::Noise, f64) -> toclip::Result<T>,
) -> PyResult<Vec<T>> {
    let noise = &*noise.inner;
    let all = || r.par_iter().map(|&r| find(noise, r)).collect::<toclip::Result<_>>();
    py.detach(|| pooled(all))?.map_err(refuse)
}
