//! Generalised linear models: the theory at a point, and the best threshold and learning rate.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use toclip::Problem;
use toclip::model::{Measures, Model, Overlaps};
use toclip::policy::OpenLoop;
use toclip::spectrum::{Modes, Start};
use toclip::tuning::{RateShape, tune_clip, tune_rate};
use toclip_experiment::ModelChoice;

use crate::args::{Threshold, arg};
use crate::convert::refuse;
use crate::noise::Noise;
use crate::spectrum::Spectrum;
use crate::values::from_python;

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
    let rescaling = spectrum.inner.rescaling();
    let best = py.detach(|| {
        // The policy is what is looked for.
        let problem = Problem::of_model(modes, model, OpenLoop::constant(1.0, f64::INFINITY)?)?;
        match c {
            Some(c) => tune_rate(&problem, rescaling.threshold(c), shape, time),
            None => tune_clip(&problem, shape, time),
        }
    });
    let (best, back) = (best.map_err(refuse)?, rescaling.inverse());
    let threshold = c.unwrap_or_else(|| back.threshold(best.c));
    Ok((back.learning_rate(best.eta), threshold, best.end))
}

fn rate_shape(name: &str) -> PyResult<RateShape> {
    match name {
        "constant" => Ok(RateShape::Constant),
        "cosine" => Ok(RateShape::Cosine),
        other => Err(refuse(format!(
            "shape: unknown shape \"{other}\"; expected one of: constant, cosine"
        ))),
    }
}

/// The modes of a model that starts at zero.
fn teacher_modes(spectrum: &Spectrum, teacher: &Bound<'_, PyAny>) -> PyResult<Modes> {
    let (teacher, zero) = (from_python("teacher", teacher)?, Start::Uniform { norm: 0.0 });
    let modes = Modes::with_teacher(&spectrum.inner, &teacher, &zero);
    modes.map_err(|e| refuse(format!("teacher: {e}")))
}
