//! Experiments on generalised linear models: the file, the problem, and running it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;
use toclip::dynamics::Stop;
use toclip::ensemble::Ensemble;
use toclip::glm::{
    GlmOde, GlmPath, GlmSgd, GlmSummary, Measures, Model, Quantity, TeacherModes, fixed_point,
};
use toclip::noise::Noise;
use toclip::schedule::{OpenLoop, Policy, Schedule, Shape};
use toclip::spectrum::{Rescaling, Spectrum, SpectrumSpec, Start};

use crate::error::{Error, Result};
use crate::limits::{check_memory, check_steps};
use crate::model::NO_NOISE;
use crate::problem::times;
use crate::run::{FinishedRun, Plan, RunSink, before, kept_runs};
use crate::{Batch, Clip, LearningRate, Method, ModelChoice, NoiseChoice, Origin, Points, Runs};

/// Above so many modes the ODE gets a compressed spectrum.
const COMPRESS_ABOVE: usize = 2000;
const COMPRESS_SHARE: f64 = 0.01;

/// The methods that generalised linear models have.
pub(crate) const METHODS: [Method; 3] = [Method::Ode, Method::Unclipped, Method::Sgd];

/// A generalised linear model as a file asks for it, defaults filled in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GlmExperiment {
    /// What it is called.
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
    #[serde(skip_serializing_if = "Batch::is_single")]
    pub batch: Batch,
    /// The last time.
    pub time: f64,
    /// The relative tolerance of the ODE.
    pub tolerance: f64,
    /// What is computed, in this order.
    pub methods: Vec<Method>,
    /// $\eta$ along time.
    pub learning_rate: LearningRate,
    /// How gradients are clipped.
    pub clip: Clip,
    /// The times that are saved.
    pub points: Points,
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
    /// Refuses methods and rates that generalised linear models do not have, for an experiment that was
    /// changed after it was read.
    ///
    /// # Errors
    /// [`Error::Wrong`] with the place of what does not go together.
    pub fn check(&self, origin: &Origin) -> Result<()> {
        self.wrong().map_or(Ok(()), |(key, what)| Err(origin.error(key, what)))
    }

    /// What does not go together: the key, and a sentence.
    pub(crate) fn wrong(&self) -> Option<(&'static str, String)> {
        if let Some(method) = self.methods.iter().find(|m| !METHODS.contains(m)) {
            let names = METHODS.map(|m| format!("\"{}\"", m.key())).join(", ");
            let what = format!(
                "\"{}\" is for least squares; generalised linear models have {names}",
                method.key()
            );
            return Some(("methods", what));
        }
        let rate = self.learning_rate.schedule().map(Schedule::shape);
        if matches!(rate, Some(Shape::Constant { value }) if value.is_infinite()) {
            return Some(("learning_rate", "is inf; expected a finite number".into()));
        }
        if rate.is_none() {
            let what = "\"greedy\" follows the risk of least squares; give a number or a schedule";
            return Some(("learning_rate", what.into()));
        }
        if !matches!(self.clip, Clip::None | Clip::Schedule(_)) {
            let what = "this rule follows the risk of least squares; give a number, a schedule or \
                        \"none\"";
            return Some(("clip", what.into()));
        }
        match (self.model.has_noise(), &self.noise) {
            (true, None) => Some((
                "model",
                "Huber regression needs the noise of its targets; for example \
                 `noise = { family = \"student_t\", df = 2.0, scale = 0.5 }`"
                    .into(),
            )),
            (false, Some(_)) => Some(("noise", NO_NOISE.into())),
            _ => None,
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
    /// Builds what an experiment describes.
    ///
    /// # Errors
    /// [`Error::Wrong`] with the place of what cannot be built.
    pub fn new(experiment: &GlmExperiment, origin: &Origin) -> Result<Self> {
        let (spectrum, _) = crate::files::resolve_spectrum(&experiment.spectrum, origin.folder())
            .map_err(|e| origin.error("spectrum", e))?;
        TeacherModes::new(&spectrum, &experiment.teacher).map_err(|e| {
            origin.error("teacher", e.to_string().replace("the start", "the teacher"))
        })?;
        let modes = TeacherModes::started_at(&spectrum, &experiment.teacher, &experiment.start)
            .map_err(|e| origin.error("start", e))?;
        let few_modes = if modes.modes().len() > COMPRESS_ABOVE {
            let allowed = (COMPRESS_SHARE * experiment.tolerance).max(1e-12);
            modes.compress(allowed).map_err(|e| origin.error("spectrum", e))?
        } else {
            modes.clone()
        };
        let noise = experiment.noise.as_ref().map(|noise| noise.family(origin.folder()));
        let noise = noise.transpose().map_err(|e| origin.error("noise", e))?;
        let noise = noise.map(|family| Arc::new(family) as Arc<dyn Noise>);
        let model = experiment.model.build(noise).map_err(|e| origin.error("model", e))?;
        let rescaling = spectrum.rescaling();
        let rate = experiment
            .learning_rate
            .schedule()
            .cloned()
            .map(|eta| scaled(eta, rescaling.learning_rate(1.0)));
        let Some(rate) = rate.transpose().map_err(|e| origin.error("learning_rate", e))? else {
            return Err(origin.error("learning_rate", "give a number or a schedule"));
        };
        let clip = match &experiment.clip {
            Clip::Schedule(clip) => scaled(clip.clone(), rescaling.threshold(1.0))
                .map_err(|e| origin.error("clip", e))?,
            _ => Schedule::never(),
        };
        let times =
            times(experiment.time, experiment.points).map_err(|e| origin.error("points", e))?;
        let end = experiment.time;
        let moments = clip.breakpoints().into_iter().chain(times.iter().copied()).chain([0.0]);
        if let Some(t) = moments.filter(|t| *t <= end).find(|&t| clip.at(t) <= 0.0) {
            let what = format!(
                "the threshold is 0 at t = {t}; expected a positive threshold at all times"
            );
            return Err(origin.error("clip", what));
        }
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

fn scaled(schedule: Schedule, by: f64) -> toclip::Result<Schedule> {
    if by == 1.0 { Ok(schedule) } else { schedule.scaled(by) }
}

/// What one method gave.
#[derive(Debug, Clone)]
pub struct GlmCurve {
    /// Which.
    pub method: Method,
    /// The numbers.
    pub outcome: GlmOutcome,
    /// How long it took.
    pub took: Duration,
}

/// A path, or the statistics of many.
#[derive(Debug, Clone)]
pub enum GlmOutcome {
    /// Of the ODE, with what the model is judged by at every time.
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

/// The curves in the order of the methods, or `None` if it was cancelled on the way; store and
/// `finished` are as for [`run::run`](crate::run::run).
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
    let store = Mutex::new(store);
    let mut curves = Vec::new();
    for &method in &experiment.methods {
        let begin = Instant::now();
        let outcome = if method == Method::Sgd {
            let before = before(finished, method, experiment.ensemble.runs);
            let band = ensemble(experiment, problem, plan, &store, before)?;
            let Some(band) = band else { return Ok(None) };
            GlmOutcome::Band(Box::new(band))
        } else {
            let path = problem
                .ode(method, experiment.tolerance)
                .solve(&problem.times)
                .map_err(|source| Error::Solve { method: "the ODE", source })?;
            let measures = path.measures(&*problem.model);
            GlmOutcome::Path(path, measures)
        };
        curves.push(GlmCurve { method, outcome, took: begin.elapsed() });
    }
    Ok(Some(curves))
}

fn ensemble(
    experiment: &GlmExperiment,
    problem: &GlmProblem,
    plan: &Plan<'_>,
    store: &Mutex<Option<&mut dyn RunSink<GlmPath>>>,
    before: BTreeMap<u64, GlmPath>,
) -> Result<Option<GlmSummary>> {
    let sgd = problem.simulator()?;
    let spec = experiment.ensemble;
    let mut ensemble = Ensemble::new(spec.runs, spec.seed).confidence(spec.confidence)?;
    ensemble.threads = plan.threads;
    let done = kept_runs(Method::Sgd, plan, store, before, spec.runs, |indices, keep| {
        sgd.run_missing(&ensemble, &problem.times, indices, plan.cancel, keep)
    })?;
    let Some(done) = done else { return Ok(None) };
    Ok(Some(GlmSummary::of(&sgd, &problem.times, &done, &ensemble.probabilities)?))
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
