//! Where to clip, and what no reshaping of the residual can pass.

use numpy::ToPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::prelude::*;
use toclip::Step;
use toclip::criteria::{self, BestThreshold, FisherLimit};

use crate::convert::{numbers, refuse, to_python};
use crate::noise::Noise;
use crate::pool::pooled;

/// A column of a table: its name, and its number in a row.
type Column<T> = (&'static str, fn(&T) -> f64);

/// The threshold with the largest CCC at each risk: arrays `c`, `mu`, `m2`, `ccc`, `efficiency`.
#[pyfunction]
pub fn best_threshold<'py>(
    py: Python<'py>,
    noise: &Noise,
    r: &Bound<'_, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let found = each(py, noise, r, |step, r| criteria::best_threshold(step, r))?;
    let columns: [Column<BestThreshold>; 5] = [
        ("c", |b| b.c),
        ("mu", |b| b.mu),
        ("m2", |b| b.m2),
        ("ccc", |b| b.ccc),
        ("efficiency", |b| b.efficiency),
    ];
    table(py, &found, &columns)
}

/// The Fisher information of the residual at each risk: arrays `information`, `limit`, `reached`.
#[pyfunction]
pub fn fisher_limit<'py>(
    py: Python<'py>,
    noise: &Noise,
    r: &Bound<'_, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let found = each(py, noise, r, |step, r| criteria::fisher_limit(step, r))?;
    let columns: [Column<FisherLimit>; 3] =
        [("information", |f| f.information), ("limit", |f| f.limit), ("reached", |f| f.reached)];
    table(py, &found, &columns)
}

/// The range of mu/min(1, y) and nu/min(1, y²), y = c/sqrt(2R + σ²), over a range of risks and one
/// of thresholds: a dictionary of pairs `mu` and `nu`.
#[pyfunction]
pub fn kappa_bounds<'py>(
    py: Python<'py>,
    noise: &Noise,
    risks: &Bound<'_, PyAny>,
    thresholds: &Bound<'_, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let pair = |name: &str, value: &Bound<'_, PyAny>| match numbers(name, value)?.as_slice()? {
        &[low, high] => Ok((low, high)),
        other => Err(refuse(format!(
            "{name} must be the two ends of a range, such as (0.1, 10.0), not {} numbers",
            other.len()
        ))),
    };
    let (risks, thresholds) = (pair("risks", risks)?, pair("thresholds", thresholds)?);
    let step = &noise.inner;
    let found = py.detach(|| criteria::kappa_bounds(step, risks, thresholds)).map_err(refuse)?;
    to_python(py, &found)
}

fn each<T: Send>(
    py: Python<'_>,
    noise: &Noise,
    r: &Bound<'_, PyAny>,
    find: fn(&Step<'static>, f64) -> toclip::Result<T>,
) -> PyResult<Vec<T>> {
    let (step, r) = (&noise.inner, numbers("r", r)?);
    let r = r.as_slice()?;
    let all = || r.par_iter().map(|&r| find(step, r)).collect::<toclip::Result<_>>();
    py.detach(|| pooled(all))?.map_err(refuse)
}

fn table<'py, T>(
    py: Python<'py>,
    rows: &[T],
    columns: &[Column<T>],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, of) in columns {
        dict.set_item(*name, rows.iter().map(of).collect::<Vec<f64>>().to_pyarray(py))?;
    }
    Ok(dict)
}
