//! A problem: spectrum, start, noise, learning rate and threshold, and what the theory says of it.

use std::sync::Arc;

use numpy::ToPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use toclip::criteria::stability_limits;
use toclip::dynamics::{Ode, Trajectory, Volterra};
use toclip::schedule::{Policy, Scaled};
use toclip::spectrum::{Modes, Rescaling, Start};

use crate::convert::{from_python, numbers, refuse, to_python};
use crate::noise::Noise;
use crate::schedule::policy;
use crate::simulate;
use crate::spectrum::Spectrum;

/// Clipped SGD on a linear model: everything that the theory needs to know.
#[pyclass(frozen, module = "toclip._toclip")]
#[derive(Debug)]
pub struct Problem {
    pub modes: Modes,
    pub noise: Arc<dyn toclip::noise::Noise>,
    pub policy: Arc<dyn Policy>,
    rescaling: Rescaling,
}

#[pymethods]
impl Problem {
    /// See `toclip.Problem`.
    #[new]
    fn new(
        spectrum: &Spectrum,
        start: &Bound<'_, PyAny>,
        noise: &Noise,
        learning_rate: &Bound<'_, PyAny>,
        clip: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let start: Start = from_python(start)?;
        let modes = Modes::new(&spectrum.inner, &start).map_err(refuse)?;
        let noise = Arc::clone(&noise.inner);
        let (rule, in_units) = policy(learning_rate, clip, &noise)?;
        let rescaling = spectrum.inner.rescaling();
        let policy = if rescaling.is_identity() {
            rule
        } else if rule.session().is_some() {
            return Err(refuse(format!(
                "online rules need a spectrum of norm 1, and this one's is {}: divide the \
                 eigenvalues by it and multiply the learning rate",
                rescaling.norm()
            )));
        } else {
            let threshold = if in_units { rescaling.threshold(1.0) } else { 1.0 };
            Arc::new(Scaled::new(rule, rescaling.learning_rate(1.0), threshold))
        };
        Ok(Problem { modes, noise, policy, rescaling })
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
    fn stability_limits<'py>(&self, py: Python<'py>, c: f64) -> PyResult<Bound<'py, PyDict>> {
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
    #[pyo3(signature = (times, *, method = "ode", rtol = 1e-8, target = None, compress = None))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        times: &Bound<'_, PyAny>,
        method: &str,
        rtol: f64,
        target: Option<f64>,
        compress: Option<f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let times = numbers("times", times)?;
        let times = times.as_slice()?;
        self.check_thresholds(times)?;
        let fewer = match compress {
            Some(tolerance) => Some(py.detach(|| self.modes.compress(tolerance)).map_err(refuse)?),
            None => None,
        };
        let modes = fewer.as_ref().unwrap_or(&self.modes);
        let (noise, policy) = (&*self.noise, &*self.policy);
        let (path, flow) = match method {
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
        let dict = trajectory(py, &self.to_user(path))?;
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
        runs: u64,
        seed: u64,
        method: &str,
        covariates: Option<Bound<'py, PyAny>>,
        confidence: f64,
        threads: Option<usize>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let times = numbers("times", times)?;
        let times = times.as_slice()?;
        self.check_thresholds(times)?;
        let covariates = covariates.map(|law| from_python(&law)).transpose()?;
        let asked = simulate::Asked { times, runs, seed, confidence, threads };
        let simulator = simulate::simulator(self, method, covariates)?;
        simulate::ensemble(py, self, &*simulator, &asked, progress)
    }

    /// Run number `index` of the ensemble with this seed.
    #[pyo3(signature = (times, *, seed, index, method))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        times: &Bound<'_, PyAny>,
        seed: u64,
        index: u64,
        method: &str,
    ) -> PyResult<Bound<'py, PyDict>> {
        let times = numbers("times", times)?;
        let times = times.as_slice()?;
        self.check_thresholds(times)?;
        let path = simulate::one(py, self, method, times, seed, index)?;
        trajectory(py, &path)
    }
}

impl Problem {
    /// A path in the units of the user.
    pub fn to_user(&self, path: Trajectory) -> Trajectory {
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

fn trajectory<'py>(py: Python<'py>, path: &Trajectory) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, values) in [("t", &path.times), ("risk", &path.risk), ("distance", &path.distance)] {
        dict.set_item(name, values.to_pyarray(py))?;
    }
    if let Some(points) = &path.path {
        let columns: [(&str, Vec<f64>); 4] = [
            ("mu", points.iter().map(|p| p.mu).collect()),
            ("m2", points.iter().map(|p| p.m2).collect()),
            ("eta", points.iter().map(|p| p.eta).collect()),
            ("c", points.iter().map(|p| p.c).collect()),
        ];
        for (name, values) in columns {
            dict.set_item(name, values.to_pyarray(py))?;
        }
    }
    dict.set_item("stop", to_python(py, &path.stop)?)?;
    dict.set_item("counts", to_python(py, &path.counts)?)?;
    Ok(dict)
}
