//! Learning rates and thresholds as functions of time.

use std::sync::Arc;

use numpy::{PyArray1, PyReadonlyArray1, ToPyArray};
use pyo3::prelude::*;
use serde::Deserialize;
use toclip::schedule::{
    Compensation, Greedy, Margin, MaxCcc, Online, OpenLoop, Policy, Proportional, ScaleEstimate,
    Scaled, Shape,
};
use toclip::spectrum::{Modes, Rescaling};

use crate::args::{arg, is_no_clipping};
use crate::convert::{refuse, shown, to_python};
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
        #[pyo3(from_py_with = arg::times)] times: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let times = times.as_slice()?;
        if let Some(t) = times.iter().find(|t| !(**t >= 0.0 && t.is_finite())) {
            return Err(refuse(format!("times has {t} in it; expected finite times from 0 on")));
        }
        Ok(times.iter().map(|&t| self.inner.at(t)).collect::<Vec<f64>>().to_pyarray(py))
    }

    /// Its specification as a number or a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.inner.shape())
    }
}

/// `count` equally spaced times from 0 to `end`.
#[pyfunction]
pub fn linear_times(
    py: Python<'_>,
    #[pyo3(from_py_with = arg::end)] end: f64,
    #[pyo3(from_py_with = arg::count)] count: usize,
) -> PyResult<Bound<'_, PyArray1<f64>>> {
    Ok(toclip::dynamics::linear_times(end, count).map_err(refuse)?.to_pyarray(py))
}

/// `count` logarithmically spaced times from `first` to `end`.
#[pyfunction]
pub fn log_times(
    py: Python<'_>,
    #[pyo3(from_py_with = arg::first)] first: f64,
    #[pyo3(from_py_with = arg::end)] end: f64,
    #[pyo3(from_py_with = arg::count)] count: usize,
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

/// The threshold rules that depend on the risk or on residuals.
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

/// A policy, and which of its numbers the user gave.
pub struct UserPolicy {
    pub policy: Arc<dyn Policy>,
    /// The learning rate, unless it is greedy.
    pub eta: Option<toclip::schedule::Schedule>,
    /// Whether the user gave the thresholds, in the user's units.
    pub has_thresholds: bool,
}

impl UserPolicy {
    /// The policy in the units of the theory, where the spectrum has norm 1.
    pub fn in_theory_units(&self, rescaling: &Rescaling) -> Arc<dyn Policy> {
        let rate = if self.eta.is_some() { rescaling.learning_rate(1.0) } else { 1.0 };
        let threshold = if self.has_thresholds { rescaling.threshold(1.0) } else { 1.0 };
        self.scaled(rate, threshold)
    }

    /// The policy in the units of the user: only the numbers of the theory are rescaled.
    pub fn in_user_units(&self, rescaling: &Rescaling) -> Arc<dyn Policy> {
        let back = rescaling.inverse();
        let rate = if self.eta.is_some() { 1.0 } else { back.learning_rate(1.0) };
        let threshold = if self.has_thresholds { 1.0 } else { back.threshold(1.0) };
        self.scaled(rate, threshold)
    }

    fn scaled(&self, rate: f64, threshold: f64) -> Arc<dyn Policy> {
        let policy = Arc::clone(&self.policy);
        if (rate, threshold) == (1.0, 1.0) {
            policy
        } else {
            Arc::new(Scaled::new(policy, rate, threshold))
        }
    }
}

/// A policy from a learning rate and a threshold; `fastest` says whether the rate may be infinite.
pub fn policy(
    eta: &Bound<'_, PyAny>,
    clip: &Bound<'_, PyAny>,
    step: &toclip::Step<'static>,
    fastest: bool,
) -> PyResult<UserPolicy> {
    let word: Option<String> = clip.extract().ok();
    let kind: Option<String> =
        word.clone().or_else(|| clip.get_item("kind").ok().and_then(|kind| kind.extract().ok()));
    let none = clip.is_none() || is_no_clipping(clip);
    if let Ok(word) = eta.extract::<String>() {
        let policy = match (word.as_str(), kind.as_deref()) {
            ("greedy", _) if none => Greedy::unclipped(step.clone()),
            ("greedy", Some("max_ccc")) => Greedy::clipped(step.clone()),
            ("greedy", _) => {
                return Err(refuse(
                    "the greedy learning rate needs clip = \"none\" or clip = \"max_ccc\"",
                ));
            }
            _ => {
                return Err(refuse(format!(
                    "learning_rate: unknown word \"{word}\"; expected a number such as 0.5, a schedule or \
                     \"greedy\""
                )));
            }
        };
        return Ok(UserPolicy { policy: Arc::new(policy), eta: None, has_thresholds: false });
    }
    let eta = read("learning_rate", eta)?;
    if let Shape::Constant { value } = eta.shape()
        && value.is_infinite()
        && !fastest
    {
        return Err(refuse("learning_rate: inf is not allowed; expected a finite learning rate"));
    }
    let made = |policy: Arc<dyn Policy>, has_thresholds| {
        Ok(UserPolicy { policy, eta: Some(eta.clone()), has_thresholds })
    };
    if none {
        return made(Arc::new(OpenLoop::unclipped(eta.clone())), false);
    }
    if let Some(word) = &word
        && word != "max_ccc"
    {
        return Err(refuse(format!(
            "clip: unknown word \"{word}\"; expected a threshold such as 0.9, \"none\", \"max_ccc\", or a \
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

/// A share of the stability limit that the learning rate stays below: certified for every path, or
/// predicted up to a time.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Cap {
    Certified { margin: f64 },
    Predicted { margin: f64, time: f64 },
}

const EXAMPLE: &str = "{\"kind\": \"predicted\", \"margin\": 0.9, \"time\": 10.0}";

/// Whether a margin is for the predicted path, for which the learning rate may be infinite.
pub fn is_predicted(margin: &Bound<'_, PyAny>) -> bool {
    let kind = margin.get_item("kind").and_then(|kind| kind.extract::<String>());
    kind.is_ok_and(|kind| kind == "predicted")
}

/// The policy kept below the stability limit, in the units of the theory.
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
