//! Generalised linear models: curves of experiments, and the theory at a point.

use std::sync::Arc;

use numpy::ToPyArray;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use toclip::Batch;
use toclip::model::{
    GlmPath, GlmSummary, Measures, Model, Overlaps, Quantity, RateShape, TeacherModes, best_clip,
    best_rate,
};
use toclip_experiment::{GlmCurve, GlmOutcome, ModelChoice};

use crate::args::{Threshold, arg};
use crate::convert::{refuse, to_python};
use crate::noise::Noise;
use crate::simulate::statistics;
use crate::spectrum::Spectrum;
use crate::values::from_python;

/// The curve of one method as a dictionary of arrays.
pub fn curve<'py>(py: Python<'py>, curve: &GlmCurve) -> PyResult<Bound<'py, PyDict>> {
    match &curve.outcome {
        GlmOutcome::Path(found, measures) => path(py, found, measures),
        GlmOutcome::Band(found) => band(py, found),
    }
}

fn path<'py>(py: Python<'py>, of: &GlmPath, at: &[Measures]) -> PyResult<Bound<'py, PyDict>> {
    let overlap = |get: fn(&Overlaps) -> f64| of.overlaps.iter().map(get).collect::<Vec<_>>();
    let dict = PyDict::new(py);
    dict.set_item("t", of.times.to_pyarray(py))?;
    for quantity in Quantity::ALL {
        let values = at.iter().map(|m| m.get(quantity).unwrap_or(f64::NAN));
        dict.set_item(quantity.key(), values.collect::<Vec<_>>().to_pyarray(py))?;
    }
    dict.set_item("q", overlap(|o| o.q).to_pyarray(py))?;
    dict.set_item("p", overlap(|o| o.p).to_pyarray(py))?;
    dict.set_item("v", of.overlaps.first().map_or(f64::NAN, |o| o.v))?;
    dict.set_item("stop", to_python(py, &of.stop)?)?;
    Ok(dict)
}

fn band<'py>(py: Python<'py>, of: &GlmSummary) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("t", of.times.to_pyarray(py))?;
    dict.set_item("runs", of.runs)?;
    dict.set_item("alive", of.alive.to_pyarray(py))?;
    dict.set_item("diverged", of.diverged.clone())?;
    dict.set_item("probabilities", of.probabilities.clone())?;
    for quantity in Quantity::ALL {
        let found = of.get(quantity).map(|found| statistics(py, found)).transpose()?;
        dict.set_item(quantity.key(), found)?;
    }
    dict.set_item("q", statistics(py, &of.q)?)?;
    dict.set_item("p", statistics(py, &of.p)?)?;
    Ok(dict)
}

/// A model by the grammar of experiment files; Huber regression has the noise of its targets.
fn model(what: &Bound<'_, PyAny>, noise: Option<&Noise>) -> PyResult<Arc<dyn Model>> {
    let choice: ModelChoice = from_python("model", what)?;
    let single =
        noise.map(|noise| noise.single().ok_or("the noise of targets has no batch or rule"));
    let family = single.transpose().map_err(refuse)?;
    let noise = family.map(|family| Arc::new(family.clone()) as Arc<dyn toclip::noise::Noise>);
    choice.build(noise).map_err(|error| refuse(format!("model: {error}")))
}

/// a, b and m2 of the clipped residual, and loss, error rate, angle and calibration.
#[pyfunction]
pub fn glm_at<'py>(
    py: Python<'py>,
    model: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arg::q)] q: f64,
    #[pyo3(from_py_with = arg::p)] p: f64,
    #[pyo3(from_py_with = arg::v)] v: f64,
    #[pyo3(from_py_with = arg::c)] c: Threshold,
    noise: Option<&Noise>,
) -> PyResult<Bound<'py, PyDict>> {
    let model = self::model(model, noise)?;
    let at = Overlaps::new(q, p, v).map_err(refuse)?;
    if !(c.0 > 0.0) {
        return Err(refuse(format!("c = {} must be positive, or \"none\"", c.0)));
    }
    let found = py.detach(|| (model.coefficients(&at, c.0), Measures::new(&*model, &at)));
    let (x, measures) = found;
    let or_nan = |x: Option<f64>| x.unwrap_or(f64::NAN);
    let numbers = [
        ("a", x.a),
        ("b", x.b),
        ("m2", x.m2),
        ("loss", measures.loss),
        ("error_rate", or_nan(measures.error_rate)),
        ("angle", measures.angle),
        ("calibration", or_nan(measures.calibration)),
        // No number where one of the two has no variance or nothing is learnt.
        ("ccc", toclip::model::ccc(&*model, &at, c.0).unwrap_or(f64::NAN)),
    ];
    numbers.into_py_dict(py)
}

/// The threshold with the largest CCC, and that CCC.
#[pyfunction]
pub fn glm_best_threshold(
    py: Python<'_>,
    model: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = arg::q)] q: f64,
    #[pyo3(from_py_with = arg::p)] p: f64,
    #[pyo3(from_py_with = arg::v)] v: f64,
    noise: Option<&Noise>,
) -> PyResult<(f64, f64)> {
    let model = self::model(model, noise)?;
    let at = Overlaps::new(q, p, v).map_err(refuse)?;
    let best = py.detach(|| toclip::model::best_threshold(&*model, &at)).map_err(refuse)?;
    Ok((best.c, best.ccc))
}

/// κ of the fixed point κθ*.
#[pyfunction]
pub fn glm_fixed_point(
    py: Python<'_>,
    model: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = arg::v)] v: f64,
    #[pyo3(from_py_with = arg::c)] c: Threshold,
    noise: Option<&Noise>,
) -> PyResult<f64> {
    let model = self::model(model, noise)?;
    let found = py.detach(|| toclip::model::fixed_point(&*model, v, c.0));
    Ok(found.map_err(refuse)?.kappa)
}

/// η, c and the final loss: the best learning rate at the threshold `c`, or the best pair of both if
/// `c` is `None`.
#[pyfunction]
pub fn glm_best_clip(
    py: Python<'_>,
    spectrum: &Spectrum,
    teacher: &Bound<'_, PyAny>,
    model: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = arg::time)] time: f64,
    c: Option<f64>,
    #[pyo3(from_py_with = arg::shape)] shape: String,
    noise: Option<&Noise>,
) -> PyResult<(f64, f64, f64)> {
    let model = self::model(model, noise)?;
    let (shape, modes) = (rate_shape(&shape)?, teacher_modes(spectrum, teacher)?);
    let (to, batch) = (spectrum.inner.rescaling(), Batch::single());
    let best = py.detach(|| match c.map(|c| to.threshold(c)) {
        Some(c) => best_rate(&modes, &*model, batch, c, shape, time).map(|x| (x.eta, c, x.loss)),
        None => best_clip(&modes, &*model, batch, shape, time).map(|x| (x.eta, x.c, x.loss)),
    });
    let (eta, best_c, loss) = best.map_err(refuse)?;
    let back = to.inverse();
    Ok((back.learning_rate(eta), c.unwrap_or_else(|| back.threshold(best_c)), loss))
}

fn rate_shape(name: &str) -> PyResult<RateShape> {
    match name {
        "constant" => Ok(RateShape::Constant),
        "cosine" => Ok(RateShape::Cosine),
        other => {
            let expected = "expected one of: constant, cosine";
            Err(refuse(format!("shape: unknown shape \"{other}\"; {expected}")))
        }
    }
}

fn teacher_modes(spectrum: &Spectrum, teacher: &Bound<'_, PyAny>) -> PyResult<TeacherModes> {
    let teacher = from_python("teacher", teacher)?;
    let modes = TeacherModes::new(&spectrum.inner, &teacher);
    modes.map_err(|e| refuse(format!("teacher: {e}")))
}
