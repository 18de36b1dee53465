//! A problem: spectrum, start, noise, learning rate and threshold, and what the theory says of it.

use std::sync::Arc;

use numpy::ToPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use toclip::criteria::stability_limits;
use toclip::dynamics::{Collapsed, Covariates, Hsgd, Ode, Sgd, Simulator, Trajectory, Volterra};
use toclip::schedule::{Policy, tune_kappa};
use toclip::spectrum::{Modes, Rescaling, Start};

use crate::args::{maybe_count, maybe_number, number, text, whole};
use crate::convert::{numbers, refuse, to_python};
use crate::noise::Noise;
use crate::schedule::policy;
use crate::simulate;
use crate::spectrum::Spectrum;
use crate::values::{from_dict, from_python};

/// Clipped SGD on a linear model: everything that the theory needs to know.
#[pyclass(frozen, module = "toclip._toclip")]
#[derive(Debug)]
pub struct Problem {
    modes: Modes,
    noise: Arc<dyn toclip::noise::Noise>,
    policy: Arc<dyn Policy>,
    /// As the user means it; none where it is greedy.
    eta: Option<toclip::schedule::Schedule>,
    rescaling: Rescaling,
}

#[pymethods]
impl Problem {
    /// See `toclip.Problem`.
    #[new]
    #[pyo3(signature = (spectrum, start, noise, learning_rate, clip, margin = None))]
    fn new(
        py: Python<'_>,
        spectrum: &Spectrum,
        start: &Bound<'_, PyAny>,
        noise: &Noise,
        learning_rate: &Bound<'_, PyAny>,
        clip: &Bound<'_, PyAny>,
        margin: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let start: Start = from_python("start", start)?;
        let modes = Modes::new(&spectrum.inner, &start).map_err(refuse)?;
        let noise = Arc::clone(&noise.inner);
        let rescaling = spectrum.inner.rescaling();
        let spec = policy(learning_rate, clip, margin)?;
        let policy = py.detach(|| spec.build(&modes, &noise, &rescaling)).map_err(refuse)?;
        let eta = spec.learning_rate.schedule().cloned();
        Ok(Problem { modes, noise, policy, eta, rescaling })
    }

    /// d, the intrinsic dimension: steps in a unit of time.
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

    /// The learning rates above which risk and distance grow at the start, at threshold `c`.
    fn stability_limits<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = number::c)] c: f64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let c = self.rescaling.threshold(c);
        let limits = stability_limits(&self.modes, &*self.noise, c).map_err(refuse)?;
        let back = self.rescaling.inverse();
        let dict = PyDict::new(py);
        dict.set_item("risk", back.learning_rate(limits.risk))?;
        dict.set_item("distance", back.learning_rate(limits.distance))?;
        Ok(dict)
    }

    /// R and D at the given times, by the ODE or by the integral equation.
    ///
    /// With `compress` the eigenvalues are replaced by fewer that stand for them to this accuracy.
    #[pyo3(signature = (times, *, method, rtol, target, compress))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        times: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = text::method)] method: String,
        #[pyo3(from_py_with = number::rtol)] rtol: f64,
        #[pyo3(from_py_with = maybe_number::target)] target: Option<f64>,
        #[pyo3(from_py_with = maybe_number::compress)] compress: Option<f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let times = numbers("times", times)?;
        let times = times.as_slice()?;
        self.check_thresholds(times)?;
        let fewer = self.fewer(py, compress)?;
        let modes = fewer.as_ref().unwrap_or(&self.modes);
        let (noise, policy) = (&*self.noise, &*self.policy);
        let (path, flow) = match method.as_str() {
            "ode" => py.detach(|| {
                let ode = Ode::new(modes, noise, policy).tolerance(rtol, 0.0).keep_path(true);
                let ode = target.map_or(ode, |risk| ode.target(risk));
                ode.solve(times).map(|path| (path, None))
            }),
            "volterra" => py.detach(|| {
                let equation =
                    Volterra::new(modes, noise, policy).tolerance(rtol, 0.0).keep_path(true);
                let equation = target.map_or(equation, |risk| equation.target(risk));
                equation.solve(times).map(|found| (found.trajectory, Some(found.flow)))
            }),
            other => {
                let what = format!("method \"{other}\" is not known: \"ode\" or \"volterra\"");
                return Err(refuse(what));
            }
        }
        .map_err(refuse)?;
        let dict = simulate::path(py, &self.to_user(path))?;
        if let Some(flow) = flow {
            dict.set_item("flow", flow.to_pyarray(py))?;
        }
        Ok(dict)
    }

    /// Statistics of many runs of the iteration, or of its diffusion.
    #[pyo3(signature = (times, *, runs, seed, method, covariates, confidence, threads, progress))]
    #[expect(clippy::too_many_arguments, reason = "all but the first are named")]
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        times: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = whole::runs)] runs: u64,
        #[pyo3(from_py_with = whole::seed)] seed: u64,
        #[pyo3(from_py_with = text::method)] method: String,
        covariates: Option<Bound<'py, PyAny>>,
        #[pyo3(from_py_with = number::confidence)] confidence: f64,
        #[pyo3(from_py_with = maybe_count::threads)] threads: Option<usize>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let times = numbers("times", times)?;
        let times = times.as_slice()?;
        self.check_thresholds(times)?;
        let covariates = covariates
            .map(|law| from_dict("covariates", &law, "{\"kind\": \"rademacher\"}"))
            .transpose()?;
        let asked = simulate::Asked { times, dim: self.dim(), runs, seed, confidence, threads };
        let simulator = self.simulator(&method, covariates)?;
        simulate::ensemble(py, &*simulator, &asked, progress, |path| self.to_user(path))
    }

    /// Run number `index` of the ensemble with this seed.
    #[pyo3(signature = (times, *, seed, index, method))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        times: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = whole::seed)] seed: u64,
        #[pyo3(from_py_with = whole::index)] index: u64,
        #[pyo3(from_py_with = text::method)] method: String,
    ) -> PyResult<Bound<'py, PyDict>> {
        let times = numbers("times", times)?;
        let times = times.as_slice()?;
        self.check_thresholds(times)?;
        let simulator = self.simulator(&method, None)?;
        let path = simulate::one(py, &*simulator, times, self.dim(), seed, index)?;
        simulate::path(py, &self.to_user(path))
    }

    /// κ* of c = κ·sqrt(2R + σ²), the best at the end of the predicted curve, and the risk there:
    /// a dictionary of `kappa` and `risk`. The problem's own threshold is put aside.
    #[pyo3(signature = (time, *, compensation, compress))]
    fn tune_kappa<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = number::time)] time: f64,
        compensation: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = maybe_number::compress)] compress: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        text::compensation(compensation)?;
        let how = from_python("compensation", compensation)?;
        let Some(eta) = &self.eta else {
            return Err(refuse("kappa is tuned for a learning rate, and this problem's is greedy"));
        };
        let eta = eta.scaled(self.rescaling.learning_rate(1.0)).map_err(refuse)?;
        let fewer = self.fewer(py, compress)?;
        let modes = fewer.as_ref().unwrap_or(&self.modes);
        let noise = Arc::clone(&self.noise);
        let tuned = py.detach(|| tune_kappa(modes, noise, eta, how, time)).map_err(refuse)?;
        to_python(py, &tuned)
    }
}

impl Problem {
    /// The random method of this name; C-SGD may see other features than Gaussian ones.
    fn simulator(
        &self,
        method: &str,
        covariates: Option<Covariates>,
    ) -> PyResult<Box<dyn Simulator>> {
        if covariates.is_some_and(|law| law != Covariates::Gaussian) && method != "sgd" {
            return Err(refuse("only method \"sgd\" knows other covariates than Gaussian ones"));
        }
        let (modes, noise, policy) = (&self.modes, self.noise.clone(), self.policy.clone());
        let made: toclip::Result<Box<dyn Simulator>> = match method {
            "sgd" => Sgd::new(modes, noise, policy)
                .and_then(|sgd| sgd.with_covariates(covariates.unwrap_or_default()))
                .map(|s| Box::new(s) as _),
            "collapsed" => Collapsed::new(modes, noise, policy).map(|s| Box::new(s) as _),
            "hsgd" => Hsgd::new(modes, noise, policy).map(|s| Box::new(s) as _),
            other => {
                return Err(refuse(format!(
                    "method \"{other}\" is not known: \"sgd\", \"collapsed\" or \"hsgd\""
                )));
            }
        };
        made.map_err(refuse)
    }

    /// Few eigenvalues that stand for all to this accuracy, where one is asked for.
    fn fewer(&self, py: Python<'_>, compress: Option<f64>) -> PyResult<Option<Modes>> {
        let made = compress.map(|tolerance| py.detach(|| self.modes.compress(tolerance)));
        made.transpose().map_err(|error| refuse(format!("compress: {error}")))
    }

    /// A path in the units of the user.
    fn to_user(&self, path: Trajectory) -> Trajectory {
        path.rescaled(&self.rescaling.inverse())
    }

    /// A schedule may be zero, a threshold may not.
    fn check_thresholds(&self, times: &[f64]) -> PyResult<()> {
        let risk = self.modes.risk();
        let end = times.last().copied().unwrap_or(0.0);
        let moments = self.policy.breakpoints().into_iter().filter(|t| *t <= end);
        let moments = moments.chain(times.iter().copied()).chain([0.0]);
        for t in moments {
            let c = self.policy.at(t, risk).c;
            if c <= 0.0 {
                return Err(refuse(format!("the threshold is {c} at t = {t}: keep it positive")));
            }
        }
        Ok(())
    }
}
