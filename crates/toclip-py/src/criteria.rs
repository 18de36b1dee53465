//! Reduction factors, the best threshold, and limits that no clipping can exceed.

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use rayon::prelude::*;
use toclip::verdict::Verdict;
use toclip::{Factors, Step, criteria};

use crate::args::arg;
use crate::background::in_pool;
use crate::convert::{columns, refuse, to_python};
use crate::noise::Noise;

/// Arrays `mu` and `m2` at the points `(r[i], c[i])`, and `nu`, `csc` and `ccc` unless the noise has
/// infinite variance. Both arrays must have the same length.
#[pyfunction]
pub fn factors<'py>(
    py: Python<'py>,
    noise: &Noise,
    #[pyo3(from_py_with = arg::r)] r: Vec<f64>,
    #[pyo3(from_py_with = arg::c)] c: Vec<f64>,
) -> PyResult<Bound<'py, PyDict>> {
    if r.len() != c.len() {
        return Err(refuse(format!("r has {} numbers and c has {}", r.len(), c.len())));
    }
    let (step, points) = (&noise.inner, r.into_iter().zip(c).collect::<Vec<_>>());
    let all = py.detach(|| in_pool(|| Factors::at_points(step, &points)))?.map_err(refuse)?;
    let dict = columns!(py, all, mu m2)?;
    if step.noise().second_moment().is_finite() {
        let add = |name: &str, of: fn(&Factors) -> toclip::Result<f64>| {
            let values = all.iter().map(of).collect::<toclip::Result<Vec<f64>>>();
            dict.set_item(name, values.map_err(refuse)?.into_pyarray(py))
        };
        add("nu", Factors::nu)?;
        add("csc", Factors::csc)?;
        add("ccc", Factors::ccc)?;
    }
    Ok(dict)
}

/// The threshold with the largest CCC at each risk: arrays `c`, `mu`, `m2`, `ccc`, `efficiency`.
#[pyfunction]
pub fn best_threshold<'py>(
    py: Python<'py>,
    noise: &Noise,
    #[pyo3(from_py_with = arg::r)] r: Vec<f64>,
) -> PyResult<Bound<'py, PyDict>> {
    let found = each(py, noise, &r, |step, r| criteria::best_threshold(step, r))?;
    columns!(py, found, c mu m2 ccc efficiency)
}

/// The Fisher information of the residual at each risk: arrays `information`, `limit`, `reached`.
#[pyfunction]
pub fn fisher_limit<'py>(
    py: Python<'py>,
    noise: &Noise,
    #[pyo3(from_py_with = arg::r)] r: Vec<f64>,
) -> PyResult<Bound<'py, PyDict>> {
    let found = each(py, noise, &r, |step, r| criteria::fisher_limit(step, r))?;
    columns!(py, found, information limit reached)
}

/// Whether to clip at a risk, as a dictionary, with its words `headline` and `reason`.
#[pyfunction]
pub fn verdict<'py>(
    py: Python<'py>,
    noise: &Noise,
    #[pyo3(from_py_with = arg::r)] r: Vec<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    let &[r] = &r[..] else { return Err(refuse("r must be one number")) };
    let step = &noise.inner;
    let find = || Verdict::at_risk(step, r)?.with_fisher_limit(step);
    let found = py.detach(find).map_err(refuse)?;
    let dict = to_python(py, &found)?;
    dict.set_item("headline", toclip_words::verdict::headline(&found))?;
    dict.set_item("reason", toclip_words::verdict::reason(&found))?;
    Ok(dict)
}

/// The range of mu/min(1, y) and nu/min(1, y²), y = c/sqrt(2R + σ²), over a range of risks and one
/// of thresholds: a dictionary of pairs `mu` and `nu`.
#[pyfunction]
pub fn kappa_bounds<'py>(
    py: Python<'py>,
    noise: &Noise,
    #[pyo3(from_py_with = arg::risks)] risks: Vec<f64>,
    #[pyo3(from_py_with = arg::thresholds)] thresholds: Vec<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    let range = |name: &str, ends: &[f64]| match ends {
        &[low, high] => Ok((low, high)),
        _ => Err(refuse(format!(
            "{name} must be the two ends of a range, such as (0.1, 10.0), not {} numbers",
            ends.len()
        ))),
    };
    let risks = range("risks", &risks)?;
    let thresholds = range("thresholds", &thresholds)?;
    let step = &noise.inner;
    let found = py.detach(|| criteria::kappa_bounds(step, risks, thresholds)).map_err(refuse)?;
    to_python(py, &found)
}

fn each<T: Send>(
    py: Python<'_>,
    noise: &Noise,
    r: &[f64],
    find: fn(&Step<'static>, f64) -> toclip::Result<T>,
) -> PyResult<Vec<T>> {
    let step = &noise.inner;
    let all = || r.par_iter().map(|&r| find(step, r)).collect::<toclip::Result<_>>();
    py.detach(|| in_pool(all))?.map_err(refuse)
}
