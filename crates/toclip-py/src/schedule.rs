//! Learning rates and thresholds along time.

use std::sync::Arc;

use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;
use serde::Deserialize;
use toclip::schedule::{
    Compensation, Greedy, MaxCcc, Online, OpenLoop, Policy, Proportional, Scale,
};

use crate::convert::{from_python, numbers, refuse, to_python};

/// A number that changes with time.
#[pyclass(frozen, module = "toclip._toclip")]
#[derive(Debug)]
pub struct Schedule {
    inner: toclip::schedule::Schedule,
}

#[pymethods]
impl Schedule {
    /// From a number, or a dictionary such as `{"kind": "cosine", "from": 0.7, "over": 15.0}`.
    #[new]
    fn new(shape: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Schedule { inner: read(shape)? })
    }

    /// The values at these times.
    fn at<'py>(
        &self,
        py: Python<'py>,
        times: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let times = numbers("times", times)?;
        let times = times.as_slice()?;
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
pub fn linear_times(py: Python<'_>, end: f64, count: usize) -> PyResult<Bound<'_, PyArray1<f64>>> {
    Ok(toclip::dynamics::linear_times(end, count).map_err(refuse)?.to_pyarray(py))
}

/// `count` times at equal ratios from `first` to `end`.
#[pyfunction]
pub fn log_times(
    py: Python<'_>,
    first: f64,
    end: f64,
    count: usize,
) -> PyResult<Bound<'_, PyArray1<f64>>> {
    Ok(toclip::dynamics::log_times(first, end, count).map_err(refuse)?.to_pyarray(py))
}

fn read(shape: &Bound<'_, PyAny>) -> PyResult<toclip::schedule::Schedule> {
    if let Ok(schedule) = shape.cast::<Schedule>() {
        return Ok(schedule.get().inner.clone());
    }
    if let Ok(value) = shape.extract::<f64>() {
        return toclip::schedule::Schedule::constant(value).map_err(refuse);
    }
    toclip::schedule::Schedule::new(from_python(shape)?).map_err(refuse)
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
        scale: Scale,
        memory: f64,
    },
}

fn huber() -> f64 {
    Proportional::HUBER
}

const RULES: [&str; 3] = ["max_ccc", "proportional", "online"];

/// A policy, and whether its thresholds are numbers of the user's and so in the user's units.
pub fn policy(
    eta: &Bound<'_, PyAny>,
    clip: &Bound<'_, PyAny>,
    noise: &Arc<dyn toclip::noise::Noise>,
) -> PyResult<(Arc<dyn Policy>, bool)> {
    let word: Option<String> = clip.extract().ok();
    let kind: Option<String> =
        word.clone().or_else(|| clip.get_item("kind").ok().and_then(|kind| kind.extract().ok()));
    let none = clip.is_none() || word.as_deref() == Some("none");
    if eta.extract::<String>().is_ok_and(|word| word == "greedy") {
        return match kind.as_deref() {
            _ if none => Ok((Arc::new(Greedy::unclipped(noise.clone())), false)),
            Some("max_ccc") => Ok((Arc::new(Greedy::clipped(noise.clone())), false)),
            _ => Err(refuse(
                "the greedy learning rate goes with clip = \"none\" or clip = \"max_ccc\"",
            )),
        };
    }
    let eta = read(eta)?;
    if none {
        return Ok((Arc::new(OpenLoop::unclipped(eta)), false));
    }
    if let Some(word) = &word
        && word != "max_ccc"
    {
        return Err(refuse(format!(
            "\"{word}\" is not known: give a threshold such as 0.9, \"none\", \"max_ccc\", or a \
             dictionary such as {{\"kind\": \"proportional\", \"kappa\": 1.345}}"
        )));
    }
    if !kind.is_some_and(|kind| RULES.contains(&kind.as_str())) {
        let clip = read(clip)?;
        return Ok((Arc::new(OpenLoop::new(eta, clip)), true));
    }
    let rule = if word.is_some() { ClipRule::MaxCcc {} } else { from_python(clip)? };
    let proportional = |kappa, compensation| {
        Proportional::new(kappa, eta.clone(), noise.clone(), compensation).map_err(refuse)
    };
    let policy: Arc<dyn Policy> = match rule {
        ClipRule::MaxCcc {} => Arc::new(MaxCcc::new(eta, noise.clone())),
        ClipRule::Proportional { kappa, compensation } => {
            Arc::new(proportional(kappa, compensation)?)
        }
        ClipRule::Online { kappa, compensation, scale, memory } => Arc::new(
            Online::new(proportional(kappa, compensation)?, scale, memory).map_err(refuse)?,
        ),
    };
    Ok((policy, false))
}
