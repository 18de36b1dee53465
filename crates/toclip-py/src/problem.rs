//! A problem: spectrum, start, noise, learning rate and threshold, and the theory of it.

use std::borrow::Cow;
use std::sync::Arc;

use numpy::ToPyArray;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use toclip::criteria::{momentum_limits, stability_limits};
use toclip::dynamics::{
    Collapsed, Covariates, Hsgd, Ode, Sgd, Simulator, Trajectory, Volterra, effective_moments,
};
use toclip::ensemble::Ensemble;
use toclip::policy::{Policy, tune_kappa, tune_kappa_with_momentum, tune_private};
use toclip::spectrum::{Modes, Rescaling, Start};
use toclip::{Moments, Momentum, Rule};
use toclip_experiment::{BuiltOptimizer, Optimizer};

use crate::args::{Argument, Threshold, arg};
use crate::convert::{refuse, to_python};
use crate::noise::Noise;
use crate::schedule::policy;
use crate::simulate;
use crate::spectrum::Spectrum;
use crate::values::{from_dict, from_python, optional};

/// Clipped SGD on a linear model.
#[pyclass(frozen, module = "toclip._toclip")]
#[derive(Debug)]
pub struct Problem {
    modes: Modes,
    step: toclip::Step<'static>,
    momentum: Option<Momentum>,
    policy: Arc<dyn Policy>,
    /// The learning rate in the units of the user; `None` if it is greedy.
    eta: Option<toclip::policy::Schedule>,
    rescaling: Rescaling,
}

#[pymethods]
impl Problem {
    /// See `toclip.Problem`.
    #[new]
    fn new(
        py: Python<'_>,
        spectrum: &Spectrum,
        start: &Bound<'_, PyAny>,
        noise: &Noise,
        learning_rate: &Bound<'_, PyAny>,
        clip: &Bound<'_, PyAny>,
        margin: Option<&Bound<'_, PyAny>>,
        rule: Option<&Bound<'_, PyAny>>,
        groups: Option<&Bound<'_, PyAny>>,
        momentum: Option<&Bound<'_, PyAny>>,
        privacy: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let start: Start = from_python("start", start)?;
        let optimizer = Optimizer {
            momentum: optional("momentum", momentum)?,
            privacy: optional("privacy", privacy)?,
            ..noise.optimizer(rule, groups)?
        };
        let BuiltOptimizer { modes, step, momentum } =
            optimizer.build(noise.clipped()?, &spectrum.inner, &start).map_err(refuse)?;
        let rescaling = spectrum.inner.rescaling();
        let spec = policy(learning_rate, clip, margin)?;
        spec.check_momentum(momentum).map_err(refuse)?;
        let policy = py.detach(|| spec.build(&modes, &step, &rescaling)).map_err(refuse)?;
        let eta = spec.learning_rate.schedule().cloned();
        Ok(Problem { modes, step, momentum, policy, eta, rescaling })
    }

    /// d, the intrinsic dimension: steps per unit of time.
    #[getter]
    fn dim(&self) -> f64 {
        self.modes.dim()
    }

    /// R at the start.
    #[getter]
    fn risk(&self) -> f64 {
        self.modes.risk()
    }

    /// ‖θ₀ − θ*‖².
    #[getter]
    fn distance(&self) -> f64 {
        self.rescaling.inverse().distance(self.modes.distance())
    }

    /// The learning rates above which risk and distance grow at the start, at threshold `c`; with
    /// momentum, those above which the risk grows without bound and the fastest modes oscillate.
    fn stability_limits<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arg::c)] c: Threshold,
    ) -> PyResult<Bound<'py, PyDict>> {
        let c = self.rescaling.threshold(c.0);
        let limits = match self.momentum {
            None => {
                let limits = stability_limits(&self.modes, &self.step, c).map_err(refuse)?;
                [("risk", limits.risk), ("distance", limits.distance)]
            }
            Some(momentum) => {
                let limits =
                    momentum_limits(&self.modes, &self.step, c, momentum).map_err(refuse)?;
                [("stable", limits.stable), ("oscillating", limits.oscillating)]
            }
        };
        let back = self.rescaling.inverse();
        limits.map(|(name, limit)| (name, back.learning_rate(limit))).into_py_dict(py)
    }

    /// μ and m2 at the start and at threshold `c`, for each eigenvalue or each group: a dictionary
    /// of arrays, and those of the whole state under `effective`.
    fn factors<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arg::c)] c: Threshold,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (c, risk, norm) =
            (self.rescaling.threshold(c.0), self.modes.risk(), self.rescaling.norm());
        let found: toclip::Result<Vec<(f64, f64, Moments)>> = match self.step.rule() {
            Rule::PerGroup(groups) => (groups.sizes().into_iter().enumerate())
                .map(|(k, size)| Ok((k as f64, size as f64, self.step.group_moments(k, risk, c)?)))
                .collect(),
            _ => (self.modes.modes().iter())
                .map(|m| {
                    let x = self.step.eigenvalue_moments(m.lambda, risk, c)?;
                    Ok((m.lambda * norm, m.count, Moments { m2: x.m2 * norm, ..x }))
                })
                .collect(),
        };
        let found = found.map_err(refuse)?;
        let effective = effective_moments(&self.modes, &self.step, c).map_err(refuse)?;
        let column = |of: fn(&(f64, f64, Moments)) -> f64| {
            found.iter().map(of).collect::<Vec<f64>>().to_pyarray(py)
        };
        let columns = [
            ("at", column(|row| row.0)),
            ("multiplicity", column(|row| row.1)),
            ("mu", column(|row| row.2.mu)),
            ("m2", column(|row| row.2.m2)),
        ];
        let dict = columns.into_py_dict(py)?;
        dict.set_item("effective", (effective.mu, effective.m2))?;
        Ok(dict)
    }

    /// R and D at the given times, by the ODE or by the integral equation.
    ///
    /// With `compress` the eigenvalues are replaced by fewer nodes, to this accuracy.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arg::times)] times: Vec<f64>,
        #[pyo3(from_py_with = arg::method)] method: String,
        #[pyo3(from_py_with = arg::rtol)] rtol: f64,
        #[pyo3(from_py_with = arg::target)] target: Option<f64>,
        #[pyo3(from_py_with = arg::compress)] compress: Option<f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.check_thresholds(&times)?;
        let modes = &self.fewer(py, compress)?;
        let (step, policy) = (&self.step, &*self.policy);
        let (path, flow) = match method.as_str() {
            "ode" => py.detach(|| {
                let mut ode = Ode::new(modes, step, policy).tolerance(rtol, 0.0).keep_path(true);
                if let Some(risk) = target {
                    ode = ode.target(risk);
                }
                if let Some(momentum) = self.momentum {
                    ode = ode.with_momentum(momentum);
                }
                ode.solve(&times).map(|path| (path, None))
            }),
            "volterra" if self.momentum.is_some() => {
                return Err(refuse("method \"volterra\" does not support momentum; use \"ode\""));
            }
            "volterra" => py.detach(|| {
                let mut equation =
                    Volterra::new(modes, step, policy).tolerance(rtol, 0.0).keep_path(true);
                if let Some(risk) = target {
                    equation = equation.target(risk);
                }
                equation.solve(&times).map(|found| (found.trajectory, Some(found.flow)))
            }),
            other => return Err(unknown_method(other, "\"ode\", \"volterra\"")),
        }
        .map_err(refuse)?;
        simulate::path(py, &self.to_user(path), flow.as_deref())
    }

    /// Statistics of many runs of the iteration, or of its diffusion.
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arg::times)] times: Vec<f64>,
        #[pyo3(from_py_with = arg::runs)] runs: u64,
        #[pyo3(from_py_with = arg::seed)] seed: u64,
        #[pyo3(from_py_with = arg::method)] method: String,
        covariates: Option<Bound<'py, PyAny>>,
        #[pyo3(from_py_with = arg::confidence)] confidence: f64,
        #[pyo3(from_py_with = arg::threads)] threads: Option<usize>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.check_thresholds(&times)?;
        let covariates = covariates
            .map(|given| from_dict("covariates", &given, "{\"kind\": \"rademacher\"}"))
            .transpose()?;
        let simulator = &*self.simulator(&method, covariates)?;
        let ensemble = Ensemble { threads, ..Ensemble::new(runs, seed) };
        let to_user = |path| self.to_user(path);
        let dim = self.dim();
        simulate::ensemble(py, simulator, ensemble, confidence, &times, dim, progress, to_user)
    }

    /// Run number `index` of the ensemble with this seed.
    fn run<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arg::times)] times: Vec<f64>,
        #[pyo3(from_py_with = arg::seed)] seed: u64,
        #[pyo3(from_py_with = arg::index)] index: u64,
        #[pyo3(from_py_with = arg::method)] method: String,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.check_thresholds(&times)?;
        let simulator = self.simulator(&method, None)?;
        let path = simulate::one(py, &*simulator, &times, self.dim(), seed, index)?;
        simulate::path(py, &self.to_user(path), None)
    }

    /// κ* of c = κ·sqrt(2R + σ²), the best at the end of the predicted curve, and the risk there:
    /// a dictionary of `kappa` and `risk`. The threshold of the problem is ignored.
    fn tune_kappa<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arg::time)] time: f64,
        compensation: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arg::compress)] compress: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        String::read("compensation", compensation)?;
        let how = from_python("compensation", compensation)?;
        let Some(eta) = &self.eta else {
            return Err(refuse(
                "kappa cannot be tuned for a greedy learning rate; expected a number or a schedule",
            ));
        };
        let eta = eta.scaled(self.rescaling.learning_rate(1.0)).map_err(refuse)?;
        let modes = &self.fewer(py, compress)?;
        let step = self.step.clone();
        let tuned = py.detach(|| match self.momentum {
            Some(momentum) => tune_kappa_with_momentum(modes, step, eta, how, time, momentum),
            None => tune_kappa(modes, step, eta, how, time),
        });
        let tuned = tuned.map_err(refuse)?;
        to_python(py, &tuned)
    }

    /// The constant rate and threshold of private SGD with the lowest risk at `time`, and that risk:
    /// a dictionary of `learning_rate`, `c` and `risk`. Those of the problem are ignored.
    fn tune_private<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arg::time)] time: f64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let found = py.detach(|| tune_private(&self.modes, &self.step, time)).map_err(refuse)?;
        let back = self.rescaling.inverse();
        [
            ("learning_rate", back.learning_rate(found.eta)),
            ("c", back.threshold(found.c)),
            ("risk", found.risk),
        ]
        .into_py_dict(py)
    }
}

impl Problem {
    /// The random method of this name; only C-SGD takes features that are not Gaussian.
    fn simulator(
        &self,
        method: &str,
        covariates: Option<Covariates>,
    ) -> PyResult<Box<dyn Simulator>> {
        if covariates.is_some_and(|features| features != Covariates::Gaussian) && method != "sgd" {
            return Err(refuse("only method \"sgd\" supports covariates that are not Gaussian"));
        }
        let (modes, step, policy) = (&self.modes, self.step.clone(), self.policy.clone());
        let made: toclip::Result<Box<dyn Simulator>> = match method {
            "sgd" => Sgd::new(modes, step, policy)
                .and_then(|sgd| sgd.with_covariates(covariates.unwrap_or_default()))
                .and_then(|sgd| match self.momentum {
                    Some(momentum) => sgd.with_momentum(momentum),
                    None => Ok(sgd),
                })
                .map(|s| Box::new(s) as _),
            "collapsed" if self.momentum.is_some() => {
                return Err(refuse(
                    "method \"collapsed\" does not support momentum; use \"sgd\" or \"hsgd\"",
                ));
            }
            "collapsed" => Collapsed::new(modes, step, policy).map(|s| Box::new(s) as _),
            "hsgd" => Hsgd::new(modes, step, policy)
                .and_then(|hsgd| match self.momentum {
                    Some(momentum) => hsgd.with_momentum(momentum),
                    None => Ok(hsgd),
                })
                .map(|s| Box::new(s) as _),
            other => return Err(unknown_method(other, "\"sgd\", \"collapsed\", \"hsgd\"")),
        };
        made.map_err(refuse)
    }

    /// The eigenvalues, compressed to this accuracy if one is given.
    fn fewer(&self, py: Python<'_>, compress: Option<f64>) -> PyResult<Cow<'_, Modes>> {
        let Some(tolerance) = compress else { return Ok(Cow::Borrowed(&self.modes)) };
        let fewer = py.detach(|| self.modes.compress(tolerance));
        fewer.map(Cow::Owned).map_err(|error| refuse(format!("compress: {error}")))
    }

    /// A path in the units of the user.
    fn to_user(&self, path: Trajectory) -> Trajectory {
        path.rescaled(&self.rescaling.inverse())
    }

    /// A schedule may be zero, but a threshold must be positive.
    fn check_thresholds(&self, times: &[f64]) -> PyResult<()> {
        let risk = self.modes.risk();
        let end = times.last().copied().unwrap_or(0.0);
        let moments = self.policy.breakpoints().into_iter().filter(|t| *t <= end);
        let moments = moments.chain(times.iter().copied()).chain([0.0]);
        for t in moments {
            let c = self.policy.at(t, risk).c;
            if c <= 0.0 {
                return Err(refuse(format!(
                    "the threshold is {c} at t = {t}; it must be positive at all times"
                )));
            }
        }
        Ok(())
    }
}

fn unknown_method(method: &str, known: &str) -> PyErr {
    refuse(format!("unknown method \"{method}\"; expected one of: {known}"))
}
