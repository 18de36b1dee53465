//! Learning rates and thresholds along time.

use std::sync::Arc;

use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;
use serde::Deserialize;
use toclip::schedule::{
    Compensation, Greedy, Margin, MaxCcc, Online, OpenLoop, Policy, Proportional, ScaleEstimate,
    Shape,
};
use toclip::spectrum::Modes;

use crate::args::{count, number};
use crate::convert::{numbers, refuse, shown, to_python};
use crate::values::{from_dict, from_python, is_dict};

/// A number that changes with time.
#[pyclass(frozen, module = "toclip._toclip")]
#[derive(Debug)]
pub struct Schedule {
    pub inner: toclip::schedule::Schedule,
}

#[pymethods]
impl Schedule {
    /// From a number, or a dictionary such as `{"kind": "cosine", "from": 0.7, "over": 15.0}`.
    #[new]
    fn new(shape: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Schedule { inner: read("schedule", shape)? })
    }

    /// The values at these times.
    fn at<'py>(
        &self,
        py: Python<'py>,
        times: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let times = numbers("times", times)?;
        let times = times.as_slice()?;
        if let Some(t) = times.iter().find(|t| !(**t >= 0.0 && t.is_finite())) {
            let what = format!("times = {t} is not allowed: times must be finite and not negative");
            return Err(refuse(what));
        }
        Ok(times.iter().map(|&t| self.inner.at(t)).collect::<Vec<f64>>().to_pyarray(py))
    }

    /// What it was made from.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.inner.shape())
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>,))> {
        Ok((slf.get_type().into_any(), (slf.get().to_dict(slf.py())?,)))
    }
}

/// `count` times at equal distances from 0 to `end`.
#[pyfunction]
pub fn linear_times(
    py: Python<'_>,
    #[pyo3(from_py_with = number::end)] end: f64,
    #[pyo3(from_py_with = count::count)] count: usize,
) -> PyResult<Bound<'_, PyArray1<f64>>> {
    Ok(toclip::dynamics::linear_times(end, count).map_err(refuse)?.to_pyarray(py))
}

/// `count` times at equal ratios from `first` to `end`.
#[pyfunction]
pub fn log_times(
    py: Python<'_>,
    #[pyo3(from_py_with = number::first)] first: f64,
    #[pyo3(from_py_with = number::end)] end: f64,
    #[pyo3(from_py_with = count::count)] count: usize,
) -> PyResult<Bound<'_, PyArray1<f64>>> {
    Ok(toclip::dynamics::log_times(first, end, count).map_err(refuse)?.to_pyarray(py))
}

fn read(name: &str, shape: &Bound<'_, PyAny>) -> PyResult<toclip::schedule::Schedule> {
    let named = |error: toclip::Error| refuse(format!("{name}: {error}"));
    if let Ok(schedule) = shape.cast::<Schedule>() {
        return Ok(schedule.get().inner.clone());
    }
    if let Ok(value) = shape.extract::<f64>() {
        return toclip::schedule::Schedule::constant(value).map_err(named);
    }
    if !is_dict(shape) {
        return Err(refuse(format!(
            "{name} must be a number or a dictionary such as {{\"kind\": \"cosine\", \"from\": 0.7, \
             \"over\": 15.0}}, not {}",
            shown(shape)
        )));
    }
    toclip::schedule::Schedule::new(from_python(name, shape)?).map_err(named)
}

/// The rules for a threshold that look at the risk or at residuals.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum ClipRule {
    MaxCcc {},
    Proportional {
        #[serde(default = "huber")]
        kappa: f64,
        #[serde(default)]
        compensation: Compensation,
    },
    Online {
        #[serde(default = "huber")]
        kappa: f64,
        #[serde(default)]
        compensation: Compensation,
        #[serde(default)]
        scale: ScaleEstimate,
        memory: f64,
    },
}

fn huber() -> f64 {
    Proportional::HUBER
}

const RULES: [&str; 3] = ["max_ccc", "proportional", "online"];

/// What a policy was made from.
pub struct Made {
    pub policy: Arc<dyn Policy>,
    /// The learning rate, unless it is greedy.
    pub eta: Option<toclip::schedule::Schedule>,
    /// Whether its thresholds are numbers of the user's, and so in the user's units.
    pub in_units: bool,
}

/// A policy from a learning rate and a threshold; `fastest` says whether the rate may be infinite.
pub fn policy(
    eta: &Bound<'_, PyAny>,
    clip: &Bound<'_, PyAny>,
    step: &toclip::Step<'static>,
    fastest: bool,
) -> PyResult<Made> {
    let word: Option<String> = clip.extract().ok();
    let kind: Option<String> =
        word.clone().or_else(|| clip.get_item("kind").ok().and_then(|kind| kind.extract().ok()));
    let none = clip.is_none() || word.as_deref() == Some("none");
    if let Ok(word) = eta.extract::<String>() {
        let policy = match (word.as_str(), kind.as_deref()) {
            ("greedy", _) if none => Greedy::unclipped(step.clone()),
            ("greedy", Some("max_ccc")) => Greedy::clipped(step.clone()),
            ("greedy", _) => {
                return Err(refuse(
                    "the greedy learning rate goes with clip = \"none\" or clip = \"max_ccc\"",
                ));
            }
            _ => {
                return Err(refuse(format!(
                    "learning_rate: \"{word}\" is not known: give a number such as 0.5, a schedule or \
                     \"greedy\""
                )));
            }
        };
        return Ok(Made { policy: Arc::new(policy), eta: None, in_units: false });
    }
    let eta = read("learning_rate", eta)?;
    if let Shape::Constant { value } = eta.shape()
        && value.is_infinite()
        && !fastest
    {
        return Err(refuse("learning_rate: inf is not allowed: a learning rate is finite"));
    }
    let made =
        |policy: Arc<dyn Policy>, in_units| Ok(Made { policy, eta: Some(eta.clone()), in_units });
    if none {
        return made(Arc::new(OpenLoop::unclipped(eta.clone())), false);
    }
    if let Some(word) = &word
        && word != "max_ccc"
    {
        return Err(refuse(format!(
            "clip: \"{word}\" is not known: give a threshold such as 0.9, \"none\", \"max_ccc\", or a \
             dictionary such as {{\"kind\": \"proportional\", \"kappa\": 1.345}}"
        )));
    }
    if !kind.is_some_and(|kind| RULES.contains(&kind.as_str())) {
        return made(Arc::new(OpenLoop::new(eta.clone(), read("clip", clip)?)), true);
    }
    let rule = if word.is_some() { ClipRule::MaxCcc {} } else { from_python("clip", clip)? };
    let named = |error: toclip::Error| refuse(format!("clip: {error}"));
    let proportional = |kappa, compensation| {
        Proportional::new(kappa, eta.clone(), step.clone(), compensation).map_err(named)
    };
    let policy: Arc<dyn Policy> = match rule {
        ClipRule::MaxCcc {} => Arc::new(MaxCcc::new(eta.clone(), step.clone())),
        ClipRule::Proportional { kappa, compensation } => {
            Arc::new(proportional(kappa, compensation)?)
        }
        ClipRule::Online { kappa, compensation, scale, memory } => {
            let oracle = proportional(kappa, compensation)?;
            Arc::new(Online::new(oracle, scale, memory).map_err(named)?)
        }
    };
    made(policy, false)
}

/// A share of the stability limit that the learning rate stays below: one that holds whatever
/// happens, or the predicted one up to a time.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Cap {
    Certified { margin: f64 },
    Predicted { margin: f64, time: f64 },
}

const EXAMPLE: &str = "{\"kind\": \"predicted\", \"margin\": 0.9, \"time\": 10.0}";

/// Whether a margin looks at the predicted path, which an infinite learning rate may be below.
pub fn is_predicted(margin: &Bound<'_, PyAny>) -> bool {
    let kind = margin.get_item("kind").and_then(|kind| kind.extract::<String>());
    kind.is_ok_and(|kind| kind == "predicted")
}

/// The policy kept below the stability limit; all in the coordinates of the theory.
pub fn with_margin(
    py: Python<'_>,
    policy: Arc<dyn Policy>,
    margin: &Bound<'_, PyAny>,
    modes: &Modes,
    step: &toclip::Step<'static>,
) -> PyResult<Arc<dyn Policy>> {
    let cap = match margin.extract::<f64>() {
        Ok(margin) => Cap::Certified { margin },
        Err(_) => from_dict("margin", margin, EXAMPLE)?,
    };
    let step = step.clone();
    let capped = py.detach(|| match cap {
        Cap::Certified { margin } => Margin::certified(policy, modes, step, margin),
        Cap::Predicted { margin, time } => Margin::predicted(policy, modes, step, margin, time),
    });
    Ok(Arc::new(capped.map_err(refuse)?))
}
