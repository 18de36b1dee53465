//! A problem: spectrum, start, noise, learning rate and threshold, and the theory of it.

use numpy::ToPyArray;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use toclip::criteria::{momentum_limits, stability_limits};
use toclip::dynamics::{
    Collapsed, Covariates, Hsgd, Ode, Sgd, Simulator, Trajectory, Volterra, effective_moments,
};
use toclip::ensemble::Ensemble;
use toclip::policy::Schedule;
use toclip::spectrum::{Rescaling, Start};
use toclip::tuning::{tune_kappa, tune_private};
use toclip::{Moments, Rule};
use toclip_experiment::{BuiltTraining, TrainingChoice};

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
    inner: toclip::Problem,
    /// The learning rate in the units of the user; `None` if it is greedy.
    eta: Option<Schedule>,
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
        let training = TrainingChoice {
            momentum: optional("momentum", momentum)?,
            privacy: optional("privacy", privacy)?,
            ..noise.training(rule, groups)?
        };
        let BuiltTraining { modes, step, optimizer } =
            training.build(noise.clipped()?, &spectrum.inner, &start).map_err(refuse)?;
        let rescaling = spectrum.inner.rescaling();
        let spec = policy(learning_rate, clip, margin)?;
        spec.check_optimizer(&optimizer).map_err(refuse)?;
        let policy = py.detach(|| spec.build(&modes, &step, &rescaling)).map_err(refuse)?;
        let inner = toclip::Problem::new(modes, step, policy)
            .and_then(|problem| problem.with_optimizer(optimizer))
            .map_err(refuse)?;
        let eta = spec.learning_rate.schedule().cloned();
        Ok(Problem { inner, eta, rescaling })
    }

    /// d, the intrinsic dimension: steps per unit of time.
    #[getter]
    fn dim(&self) -> f64 {
        self.inner.dim()
    }

    /// R at the start.
    #[getter]
    fn risk(&self) -> f64 {
        self.inner.risk()
    }

    /// ‖θ₀ − θ*‖².
    #[getter]
    fn distance(&self) -> f64 {
        self.rescaling.inverse().distance(self.inner.modes().distance())
    }

    /// The learning rates above which risk and distance grow at the start, at threshold `c`; with
    /// momentum, those above which the risk grows without bound and the fastest modes oscillate.
    fn stability_limits<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arg::c)] c: Threshold,
    ) -> PyResult<Bound<'py, PyDict>> {
        let c = self.rescaling.threshold(c.0);
        let limits = match momentum_limits(&self.inner, c).map_err(refuse)? {
            None => {
                let limits = stability_limits(&self.inner, c).map_err(refuse)?;
                [("risk", limits.risk), ("distance", limits.distance)]
            }
            Some(limits) => [("stable", limits.stable), ("oscillating", limits.oscillating)],
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
        let (modes, step) = (self.inner.modes(), self.inner.step());
        let (c, risk, norm) = (self.rescaling.threshold(c.0), modes.risk(), self.rescaling.norm());
        let found: toclip::Result<Vec<(f64, f64, Moments)>> = match step.rule() {
            Rule::PerGroup(groups) => (groups.sizes().into_iter().enumerate())
                .map(|(k, size)| Ok((k as f64, size as f64, step.group_moments(k, risk, c)?)))
                .collect(),
            _ => (modes.modes().iter())
                .map(|m| {
                    let x = step.eigenvalue_moments(m.lambda, risk, c)?;
                    Ok((m.lambda * norm, m.count, Moments { m2: x.m2 * norm, ..x }))
                })
                .collect(),
        };
        let found = found.map_err(refuse)?;
        let effective = effective_moments(&self.inner, c).map_err(refuse)?;
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
        let problem = &self.compressed(py, compress)?;
        let (path, flow) = match method.as_str() {
            "ode" => py.detach(|| {
                let mut ode = Ode::new(problem)?.tolerance(rtol, 0.0).keep_path(true);
                if let Some(risk) = target {
                    ode = ode.target(risk);
                }
                ode.solve(&times).map(|path| (path, None))
            }),
            "volterra" if self.has_momentum() => {
                return Err(refuse("method \"volterra\" does not support momentum; use \"ode\""));
            }
            "volterra" => py.detach(|| {
                let mut equation = Volterra::new(problem)?.tolerance(rtol, 0.0).keep_path(true);
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
        let problem = &self.compressed(py, compress)?;
        let tuned = py.detach(|| tune_kappa(problem, eta, how, time)).map_err(refuse)?;
        to_python(py, &tuned)
    }

    /// The constant rate and threshold of private SGD with the lowest risk at `time`, and that risk:
    /// a dictionary of `learning_rate`, `c` and `risk`. Those of the problem are ignored.
    fn tune_private<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arg::time)] time: f64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let found = py.detach(|| tune_private(&self.inner, time)).map_err(refuse)?;
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
        let problem = &self.inner;
        let made: toclip::Result<Box<dyn Simulator>> = match method {
            "sgd" => Sgd::new(problem)
                .and_then(|sgd| sgd.with_covariates(covariates.unwrap_or_default()))
                .map(|sgd| Box::new(sgd) as _),
            "collapsed" if self.has_momentum() => {
                return Err(refuse(
                    "method \"collapsed\" does not support momentum; use \"sgd\" or \"hsgd\"",
                ));
            }
            "collapsed" => Collapsed::new(problem).map(|sgd| Box::new(sgd) as _),
            "hsgd" => Hsgd::new(problem).map(|hsgd| Box::new(hsgd) as _),
            other => return Err(unknown_method(other, "\"sgd\", \"collapsed\", \"hsgd\"")),
        };
        made.map_err(refuse)
    }

    fn has_momentum(&self) -> bool {
        self.inner.optimizer().momentum().is_some()
    }

    /// The problem, with its eigenvalues compressed to this accuracy if one is given.
    fn compressed(&self, py: Python<'_>, compress: Option<f64>) -> PyResult<toclip::Problem> {
        let Some(tolerance) = compress else { return Ok(self.inner.clone()) };
        let fewer = py.detach(|| self.inner.with_modes(self.inner.modes().compress(tolerance)?));
        fewer.map_err(|error| refuse(format!("compress: {error}")))
    }

    /// A path in the units of the user.
    fn to_user(&self, path: Trajectory) -> Trajectory {
        path.rescaled(&self.rescaling.inverse())
    }

    /// A schedule may be zero, but a threshold must be positive.
    fn check_thresholds(&self, times: &[f64]) -> PyResult<()> {
        let (policy, risk) = (self.inner.policy(), self.inner.risk());
        let end = times.last().copied().unwrap_or(0.0);
        let moments = policy.breakpoints().into_iter().filter(|t| *t <= end);
        let moments = moments.chain(times.iter().copied()).chain([0.0]);
        for t in moments {
            let c = policy.at(t, risk).c;
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
