//! Running the methods of an experiment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use toclip::dynamics::{Ode, Simulator, Trajectory, Volterra};
use toclip::ensemble::{Ensemble, Summary};

use crate::error::{Error, Result};
use crate::{Experiment, Method, Problem};

/// What one method gave.
#[derive(Debug, Clone)]
pub struct Curve {
    /// Which.
    pub method: Method,
    /// In which form it was computed.
    pub form: String,
    /// The numbers, in the coordinates of the user.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
}

/// A path, or the statistics of many.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Of a deterministic method; with the risk of gradient flow where that is known apart.
    Path {
        /// R and D along time.
        path: Trajectory,
        /// The risk of gradient flow.
        flow: Option<Vec<f64>>,
    },
    /// Of an ensemble.
    Band(Box<Summary>),
}

impl Curve {
    /// The path of a deterministic method.
    pub fn path(&self) -> Option<&Trajectory> {
        match &self.outcome {
            Outcome::Path { path, .. } => Some(path),
            Outcome::Band(_) => None,
        }
    }

    /// The statistics of an ensemble.
    pub fn band(&self) -> Option<&Summary> {
        match &self.outcome {
            Outcome::Path { .. } => None,
            Outcome::Band(band) => Some(band),
        }
    }

    /// The times that it reached.
    pub fn times(&self) -> &[f64] {
        match &self.outcome {
            Outcome::Path { path, .. } => &path.times,
            Outcome::Band(band) => &band.times,
        }
    }

    /// R along the curve; of an ensemble the median.
    pub fn risk(&self) -> &[f64] {
        match &self.outcome {
            Outcome::Path { path, .. } => &path.risk,
            Outcome::Band(band) => &band.risk.median,
        }
    }
}

/// A finished run of an ensemble, in the coordinates of the theory: R and D for least squares, a
/// [`GlmPath`](toclip::glm::GlmPath) for generalised linear models.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedRun<R = Trajectory> {
    /// Of which method.
    pub method: Method,
    /// Its number.
    pub index: u64,
    /// The run.
    pub run: R,
}

/// A place where runs are kept as they finish, so that an interrupted ensemble may be continued.
pub trait RunSink<R = Trajectory>: Send {
    /// Keeps a run.
    ///
    /// # Errors
    /// Whatever prevents it, which ends the ensemble.
    fn keep(
        &mut self,
        method: Method,
        index: u64,
        run: &R,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

/// How to run.
pub struct Plan<'a> {
    /// Threads for the ensembles; `None` for all cores. Changes no bit of the results.
    pub threads: Option<usize>,
    /// Set from elsewhere to stop: runs under way are finished and saved.
    pub cancel: &'a AtomicBool,
    /// Told after every run: the method.
    pub tick: &'a (dyn Fn(Method) + Sync),
}

/// The curves in the order of the methods, on all cores, from beginning to end.
///
/// # Errors
/// [`Error`] for a method that fails on the way.
pub fn run_all(experiment: &Experiment, problem: &Problem) -> Result<Vec<Curve>> {
    let plan = Plan { threads: None, cancel: &AtomicBool::new(false), tick: &|_| {} };
    // Without a place to save to, nothing cancels it.
    Ok(run(experiment, problem, &plan, None, Vec::new())?.unwrap_or_default())
}

/// The curves in the order of the methods, or `None` if it was cancelled on the way.
///
/// Runs go to the store as they finish. The result depends neither on the order in which they do,
/// nor on the threads, nor on which of them were in `finished` from before.
///
/// # Errors
/// [`Error`] for a method that fails on the way, and for a store that cannot keep a run.
pub fn run(
    experiment: &Experiment,
    problem: &Problem,
    plan: &Plan<'_>,
    store: Option<&mut dyn RunSink>,
    finished: Vec<FinishedRun>,
) -> Result<Option<Vec<Curve>>> {
    let store = Mutex::new(store);
    let mut curves = Vec::new();
    for &method in &experiment.methods {
        let begin = Instant::now();
        let (form, outcome) = if method.is_ensemble() {
            let before = before(&finished, method, experiment.ensemble.runs);
            let (form, band) = ensemble(experiment, problem, method, plan, &store, before)?;
            let Some(band) = band else { return Ok(None) };
            (form.to_owned(), Outcome::Band(Box::new(band)))
        } else {
            let (path, flow) = solve(experiment, problem, method)?;
            let nodes = problem.few_modes.modes().len();
            (format!("{nodes} equations"), Outcome::Path { path, flow })
        };
        curves.push(Curve { method, form, outcome, took: begin.elapsed() });
    }
    Ok(Some(curves))
}

/// All runs of an ensemble by their number, unless it was cancelled on the way; `tick` is told after
/// every run.
///
/// # Errors
/// Those of [`Ensemble::run_missing`].
pub fn all_runs(
    ensemble: &Ensemble,
    simulator: &dyn Simulator,
    times: &[f64],
    cancel: &AtomicBool,
    tick: &(dyn Fn() + Sync),
) -> toclip::Result<BTreeMap<u64, Trajectory>> {
    let finished = Mutex::new(BTreeMap::new());
    let keep = |index: u64, run: Trajectory| {
        finished.lock().unwrap_or_else(PoisonError::into_inner).insert(index, run);
        tick();
    };
    ensemble.run_missing(simulator, times, &BTreeSet::new(), cancel, &keep)?;
    Ok(finished.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn solve(
    experiment: &Experiment,
    problem: &Problem,
    method: Method,
) -> Result<(Trajectory, Option<Vec<f64>>)> {
    let modes = &problem.few_modes;
    let (step, policy) = match method {
        Method::Unclipped => (&problem.plain, &problem.unclipped),
        _ => (&problem.step, &problem.policy),
    };
    let rtol = experiment.tolerance;
    let (path, flow) = if method == Method::Volterra {
        let equation = Volterra::new(modes, step, &**policy).tolerance(rtol, 0.0).keep_path(true);
        let solution = equation
            .solve(&problem.times)
            .map_err(|source| failed("the integral equation", source))?;
        (solution.trajectory, Some(solution.flow))
    } else {
        let mut ode = Ode::new(modes, step, &**policy).tolerance(rtol, 0.0).keep_path(true);
        if let Some(momentum) = problem.momentum {
            ode = ode.with_momentum(momentum);
        }
        (ode.solve(&problem.times).map_err(|source| failed("the ODE", source))?, None)
    };
    Ok((problem.to_user(path), flow))
}

fn failed(method: &'static str, source: toclip::Error) -> Error {
    Error::Solve { method, source }
}

/// The runs of a method that were finished before, of those that are wanted.
pub(crate) fn before<R: Clone>(
    finished: &[FinishedRun<R>],
    method: Method,
    runs: u64,
) -> BTreeMap<u64, R> {
    let wanted = finished.iter().filter(|f| f.method == method && f.index < runs);
    wanted.map(|f| (f.index, f.run.clone())).collect()
}

/// Lets `run_missing` run what is not among `before`, and keeps every run in the store as it
/// finishes; `None` if it was cancelled before there were `runs`.
pub(crate) fn kept_runs<R: Send>(
    method: Method,
    plan: &Plan<'_>,
    store: &Mutex<Option<&mut dyn RunSink<R>>>,
    before: BTreeMap<u64, R>,
    runs: u64,
    run_missing: impl FnOnce(&BTreeSet<u64>, &(dyn Fn(u64, R) + Sync)) -> toclip::Result<u64>,
) -> Result<Option<BTreeMap<u64, R>>> {
    let indices: BTreeSet<u64> = before.keys().copied().collect();
    let done = Mutex::new(before);
    let failure = Mutex::new(None);
    run_missing(&indices, &|index, run| {
        let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(error)) = store.as_mut().map(|store| store.keep(method, index, &run)) {
            // Without a place to save to there is no use in going on.
            plan.cancel.store(true, Ordering::Relaxed);
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
        done.lock().unwrap_or_else(PoisonError::into_inner).insert(index, run);
        (plan.tick)(method);
    })?;
    if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(Error::Save(error));
    }
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((done.len() as u64 >= runs).then_some(done))
}

fn ensemble(
    experiment: &Experiment,
    problem: &Problem,
    method: Method,
    plan: &Plan<'_>,
    store: &Mutex<Option<&mut dyn RunSink>>,
    before: BTreeMap<u64, Trajectory>,
) -> Result<(&'static str, Option<Summary>)> {
    let (simulator, form) = problem.simulator(method)?;
    let spec = experiment.ensemble;
    let mut ensemble = Ensemble::new(spec.runs, spec.seed).confidence(spec.confidence)?;
    ensemble.threads = plan.threads;
    let done = kept_runs(method, plan, store, before, spec.runs, |indices, keep| {
        ensemble.run_missing(&*simulator, &problem.times, indices, plan.cancel, keep)
    })?;
    let Some(done) = done else { return Ok((form, None)) };
    let done = done.into_iter().map(|(index, run)| (index, problem.to_user(run))).collect();
    Ok((form, Some(Summary::of(&problem.times, &done, &ensemble.probabilities)?)))
}
