//! Experiments on generalised linear models: the file, the problem, and running it.

use std::sync::Arc;

use serde::Serialize;
use toclip::dynamics::Stop;
use toclip::model::{
    GlmOde, GlmPath, GlmSgd, GlmSummary, Measures, Model, Quantity, TeacherModes, fixed_point,
};
use toclip::noise::Noise;
use toclip::policy::{OpenLoop, Policy, Schedule, Shape};
use toclip::spectrum::{Rescaling, Spectrum, SpectrumSpec, Start};

use crate::error::{Error, Result};
use crate::limits::{check_memory, check_steps};
use crate::model::NO_NOISE;
use crate::problem::{check_thresholds, compression_error, times};
use crate::run::{Ensembles, FinishedRun, MethodCurve, Plan, RunSink, run_methods};
use crate::{
    BatchChoice, Clip, KeyError, LearningRate, Method, ModelChoice, NoiseChoice, Origin, Runs,
    SavedTimes,
};

/// The methods that generalised linear models have.
pub(crate) const METHODS: [Method; 3] = [Method::Ode, Method::Unclipped, Method::Sgd];

/// The generalised linear model of a file, with defaults filled in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GlmExperiment {
    /// The name of the file.
    #[serde(skip)]
    pub name: String,
    /// The model.
    pub model: ModelChoice,
    /// $\theta^\ast$ in the eigenbasis.
    pub teacher: Start,
    /// $\theta_0$ in the eigenbasis; zero unless given.
    #[serde(skip_serializing_if = "is_zero")]
    pub start: Start,
    /// The eigenvalues of K.
    pub spectrum: SpectrumSpec,
    /// The noise of the targets, for Huber regression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseChoice>,
    /// The samples of a step.
    #[serde(skip_serializing_if = "BatchChoice::is_single")]
    pub batch: BatchChoice,
    /// The last time.
    pub time: f64,
    /// The relative tolerance of the ODE.
    pub tolerance: f64,
    /// The methods to run, in this order.
    pub methods: Vec<Method>,
    /// $\eta$ along time.
    pub learning_rate: LearningRate,
    /// How gradients are clipped.
    pub clip: Clip,
    /// The times that are saved.
    pub points: SavedTimes,
    /// The runs of C-SGD.
    pub ensemble: Runs,
}

/// $\theta_0 = 0$.
pub(crate) fn zero() -> Start {
    Start::Uniform { norm: 0.0 }
}

fn is_zero(start: &Start) -> bool {
    *start == zero()
}

impl GlmExperiment {
    /// Refuses methods, rates and noises that generalised linear models do not have.
    pub(crate) fn check(&self) -> Result<(), KeyError> {
        if let Some(method) = self.methods.iter().find(|m| !METHODS.contains(m)) {
            let names = METHODS.map(|m| format!("\"{}\"", m.key())).join(", ");
            let what = format!(
                "\"{}\" is for least squares; generalised linear models have {names}",
                method.key()
            );
            return Err(KeyError::new("methods", what));
        }
        let rate = self.learning_rate.schedule().map(Schedule::shape);
        if matches!(rate, Some(Shape::Constant { value }) if value.is_infinite()) {
            return Err(KeyError::new("learning_rate", "is inf; expected a finite number"));
        }
        if rate.is_none() {
            let what = "\"greedy\" follows the risk of least squares; give a number or a schedule";
            return Err(KeyError::new("learning_rate", what));
        }
        if !matches!(self.clip, Clip::None | Clip::Schedule(_)) {
            let what = "this rule follows the risk of least squares; give a number, a schedule or \
                        \"none\"";
            return Err(KeyError::new("clip", what));
        }
        match (self.model.has_noise(), &self.noise) {
            (true, None) => Err(KeyError::new(
                "model",
                "Huber regression needs the noise of its targets; for example \
                 `noise = { family = \"student_t\", df = 2.0, scale = 0.5 }`",
            )),
            (false, Some(_)) => Err(KeyError::new("noise", NO_NOISE)),
            _ => Ok(()),
        }
    }
}

/// A generalised linear model, ready to run.
#[derive(Debug)]
pub struct GlmProblem {
    /// The eigenvalues of K as the user means them.
    pub spectrum: Spectrum,
    /// Eigenvalues, teacher and start in the coordinates of the theory.
    pub modes: TeacherModes,
    /// The modes for the ODE: the same, or fewer that stand for them.
    pub few_modes: TeacherModes,
    /// The model.
    pub model: Arc<dyn Model>,
    /// η and c in the coordinates of the theory.
    pub policy: Arc<OpenLoop>,
    /// The same without clipping.
    pub unclipped: Arc<OpenLoop>,
    /// The samples of a step.
    pub batch: toclip::Batch,
    /// The times that are saved.
    pub times: Vec<f64>,
    /// From the coordinates of the user to those of the theory.
    pub rescaling: Rescaling,
}

impl GlmProblem {
    /// Builds the problem of an experiment.
    ///
    /// # Errors
    /// [`Error::Wrong`] with the place of the part that cannot be built.
    pub fn new(experiment: &GlmExperiment, origin: &Origin) -> Result<Self> {
        // It may have been changed since it was read.
        experiment.check().map_err(|e| origin.at(e))?;
        let (spectrum, _) = crate::files::resolve_spectrum(&experiment.spectrum, origin.folder())
            .map_err(|e| origin.error("spectrum", e))?;
        TeacherModes::new(&spectrum, &experiment.teacher).map_err(|e| {
            origin.error("teacher", e.to_string().replace("the start", "the teacher"))
        })?;
        let modes = TeacherModes::started_at(&spectrum, &experiment.teacher, &experiment.start)
            .map_err(|e| origin.error("start", e))?;
        let few_modes = match compression_error(modes.modes().len(), experiment.tolerance) {
            Some(allowed) => modes.compress(allowed).map_err(|e| origin.error("spectrum", e))?,
            None => modes.clone(),
        };
        let noise = experiment.noise.as_ref().map(|noise| noise.family(origin.folder()));
        let noise = noise.transpose().map_err(|e| origin.error("noise", e))?;
        let noise = noise.map(|family| Arc::new(family) as Arc<dyn Noise>);
        let model = experiment.model.build(noise).map_err(|e| origin.error("model", e))?;
        let rescaling = spectrum.rescaling();
        let Some(rate) = experiment.learning_rate.schedule() else {
            return Err(origin.error("learning_rate", "give a number or a schedule"));
        };
        let rate = scaled(rate, rescaling.learning_rate(1.0))
            .map_err(|e| origin.error("learning_rate", e))?;
        let clip = match &experiment.clip {
            Clip::Schedule(clip) => {
                scaled(clip, rescaling.threshold(1.0)).map_err(|e| origin.error("clip", e))?
            }
            _ => Schedule::never(),
        };
        let times =
            times(experiment.time, experiment.points).map_err(|e| origin.error("points", e))?;
        check_thresholds(&clip, &times, experiment.time).map_err(|e| origin.at(e))?;
        let problem = GlmProblem {
            spectrum,
            modes,
            few_modes,
            model,
            unclipped: Arc::new(OpenLoop::unclipped(rate.clone())),
            policy: Arc::new(OpenLoop::new(rate, clip)),
            batch: experiment.batch.to_core().map_err(|e| origin.error("batch", e))?,
            times,
            rescaling,
        };
        if experiment.methods.contains(&Method::Ode) {
            // At its start: whether the batch has an ODE.
            problem.ode(Method::Ode, 0.1).solve(&[0.0]).map_err(|e| origin.error("batch", e))?;
        }
        if experiment.methods.contains(&Method::Sgd) {
            problem.simulator().map_err(|e| origin.error("spectrum", e))?;
            check_steps(experiment.time, problem.modes.dim())
                .map_err(|e| origin.error("time", e))?;
            check_memory(2 * experiment.ensemble.runs, problem.times.len())
                .map_err(|e| origin.error("ensemble", e))?;
        }
        Ok(problem)
    }

    /// The ODE of a method.
    pub fn ode(&self, method: Method, rtol: f64) -> GlmOde<'_> {
        let policy: &dyn Policy =
            if method == Method::Unclipped { &*self.unclipped } else { &*self.policy };
        GlmOde::new(&self.few_modes, &*self.model, policy)
            .tolerance(rtol, 0.0)
            .with_batch(self.batch)
    }

    /// C-SGD, every coordinate simulated.
    ///
    /// # Errors
    /// As [`GlmSgd::new`].
    pub fn simulator(&self) -> toclip::Result<GlmSgd> {
        GlmSgd::new(&self.modes, Arc::clone(&self.model), self.policy.clone())?
            .with_batch(self.batch)
    }

    /// $\kappa$ of the fixed point at the threshold of the last time, and without clipping; `None` where
    /// there is none, and for a batch whose mean is clipped, which has another.
    pub fn fixed_points(&self) -> [Option<f64>; 2] {
        let end = self.times.last().copied().unwrap_or(0.0);
        let v = self.modes.overlaps().v;
        [self.policy.at(end, 0.0).c, f64::INFINITY].map(|c| {
            let known = c == f64::INFINITY || !self.averages_before_clipping();
            fixed_point(&*self.model, v, c).ok().filter(|_| known).map(|at| at.kappa)
        })
    }

    /// Whether the mean of several gradients is clipped, and not each of them: then the ODE only knows
    /// unclipped steps.
    pub fn averages_before_clipping(&self) -> bool {
        self.batch.size() > 1 && !self.batch.is_per_sample()
    }
}

fn scaled(schedule: &Schedule, by: f64) -> toclip::Result<Schedule> {
    if by == 1.0 { Ok(schedule.clone()) } else { schedule.scaled(by) }
}

/// The result of one method for a generalised linear model.
pub type GlmCurve = MethodCurve<GlmOutcome>;

/// A path, or the statistics of many.
#[derive(Debug, Clone)]
pub enum GlmOutcome {
    /// Of the ODE, with loss, error rate and the other measures at every time.
    Path(GlmPath, Vec<Measures>),
    /// Of C-SGD.
    Band(Box<GlmSummary>),
}

impl GlmCurve {
    /// The times that it reached.
    pub fn times(&self) -> &[f64] {
        match &self.outcome {
            GlmOutcome::Path(path, _) => &path.times,
            GlmOutcome::Band(band) => &band.times,
        }
    }

    /// The statistics of an ensemble.
    pub fn band(&self) -> Option<&GlmSummary> {
        match &self.outcome {
            GlmOutcome::Path(..) => None,
            GlmOutcome::Band(band) => Some(band),
        }
    }

    /// A quantity at the k-th time; of an ensemble the median.
    pub fn at(&self, quantity: Quantity, k: usize) -> Option<f64> {
        match &self.outcome {
            GlmOutcome::Path(_, measures) => measures.get(k)?.get(quantity),
            GlmOutcome::Band(band) => band.get(quantity)?.median.get(k).copied(),
        }
    }

    /// Whether the model has a quantity, at some time at least.
    pub fn has(&self, quantity: Quantity) -> bool {
        match &self.outcome {
            GlmOutcome::Path(_, measures) => measures.iter().any(|m| m.get(quantity).is_some()),
            GlmOutcome::Band(band) => band.get(quantity).is_some(),
        }
    }

    /// Why a path ended.
    pub fn stop(&self) -> Option<Stop> {
        match &self.outcome {
            GlmOutcome::Path(path, _) => Some(path.stop),
            GlmOutcome::Band(_) => None,
        }
    }
}

/// The curves in the order of the methods, or `None` if it was cancelled; store and `finished` are as for
/// [`run::run`](crate::run::run).
///
/// # Errors
/// [`Error`] for a method that fails on the way, and for a store that cannot keep a run.
pub fn run_glm(
    experiment: &GlmExperiment,
    problem: &GlmProblem,
    plan: &Plan<'_>,
    store: Option<&mut dyn RunSink<GlmPath>>,
    finished: &[FinishedRun<GlmPath>],
) -> Result<Option<Vec<GlmCurve>>> {
    let ensembles = Ensembles::new(experiment.ensemble, plan, store, finished)?;
    run_methods(&experiment.methods, |method| {
        if method != Method::Sgd {
            let ode = problem.ode(method, experiment.tolerance);
            let path = ode
                .solve(&problem.times)
                .map_err(|source| Error::Solve { method: "the ODE", source })?;
            let measures = path.measures(&*problem.model);
            let form = format!("{} nodes", problem.few_modes.modes().len());
            return Ok(Some((form, GlmOutcome::Path(path, measures))));
        }
        let sgd = problem.simulator()?;
        let runs = ensembles.complete(method, |ensemble, indices, keep| {
            sgd.run_missing(ensemble, &problem.times, indices, plan.cancel, keep)
        })?;
        let Some(runs) = runs else { return Ok(None) };
        let probabilities = &ensembles.ensemble.probabilities;
        let band = GlmSummary::of(&sgd, &problem.times, &runs, probabilities)?;
        Ok(Some(("every coordinate".into(), GlmOutcome::Band(Box::new(band)))))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::GlmProblem;
    use crate::parse_file;

    #[test]
    fn a_clipped_mean_has_no_fixed_point_of_single_samples() {
        let found = |batch: &str, clip: &str| {
            let text = format!(
                "model = {{ kind = 'logistic', flips = 0.1 }}\n\
                 teacher = {{ kind = 'uniform', norm = 3.0 }}\n\
                 spectrum = {{ kind = 'isotropic', dim = 50 }}\n\
                 time = 2.0\nlearning_rate = 1.0\nmethods = ['sgd']\n\
                 batch = {batch}\nclip = {clip}"
            );
            let (file, origin) = parse_file(&text, Path::new("e.toml")).unwrap();
            GlmProblem::new(&file.glm.unwrap(), &origin).unwrap().fixed_points()
        };
        let [clipped, open] = found("1", "0.4");
        assert!(clipped.unwrap() > 0.8 && open.unwrap() < 0.6);
        assert_eq!(found("{ size = 8, rule = 'per_sample' }", "0.4"), [clipped, open]);
        assert_eq!(found("8", "0.4"), [None, open]);
        assert_eq!(found("8", "'none'"), [open, open]);
    }
}
