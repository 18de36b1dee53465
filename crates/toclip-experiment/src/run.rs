//! Running the methods of an experiment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use toclip::dynamics::{Ode, Simulator, Stop, Trajectory, Volterra};
use toclip::ensemble::{Ensemble, Summary};
use toclip::model::Quantity;

use crate::error::{Error, Result};
use crate::{Experiment, Method, Prepared, Runs};

/// The result of one method.
#[derive(Debug, Clone)]
pub struct MethodCurve {
    /// The method.
    pub method: Method,
    /// In which form it was computed.
    pub form: String,
    /// The numbers.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
}

/// A path, or the statistics of many, in the coordinates of the user.
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

impl MethodCurve {
    /// A measure of a model at saved time number `k`: of the path, or the median of the band.
    pub fn at(&self, quantity: Quantity, k: usize) -> Option<f64> {
        match &self.outcome {
            Outcome::Path { path, .. } => path.measures.as_ref()?.get(k)?.get(quantity),
            Outcome::Band(band) => band.measures.as_ref()?.get(quantity)?.median.get(k).copied(),
        }
    }

    /// Whether it has a measure of a model.
    pub fn has(&self, quantity: Quantity) -> bool {
        match &self.outcome {
            Outcome::Path { path, .. } => {
                path.measures.iter().flatten().any(|m| m.get(quantity).is_some())
            }
            Outcome::Band(band) => {
                band.measures.as_ref().is_some_and(|m| m.get(quantity).is_some())
            }
        }
    }

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

    /// Why a path ended.
    pub fn stop(&self) -> Option<Stop> {
        self.path().map(|path| path.stop)
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

/// A finished run of an ensemble, in the coordinates of the theory.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedRun {
    /// The method.
    pub method: Method,
    /// The index of the run.
    pub index: u64,
    /// The run.
    pub run: Trajectory,
}

/// A place where runs are kept as they finish, to continue an interrupted ensemble later.
pub trait RunSink: Send {
    /// Keeps a run.
    ///
    /// # Errors
    /// Whatever prevents it, which ends the ensemble.
    fn keep(
        &mut self,
        method: Method,
        index: u64,
        run: &Trajectory,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

/// How to run.
pub struct Plan<'a> {
    /// Threads for the ensembles; `None` for all cores. Changes no bit of the results.
    pub threads: Option<usize>,
    /// Set from elsewhere to stop: runs under way are finished and saved.
    pub cancel: &'a AtomicBool,
    /// Called after every run, with the method.
    pub tick: &'a (dyn Fn(Method) + Sync),
}

/// The curves in the order of the methods, on all cores, from beginning to end.
///
/// # Errors
/// [`Error`] for a method that fails on the way.
pub fn run_all(experiment: &Experiment, prepared: &Prepared) -> Result<Vec<MethodCurve>> {
    let plan = Plan { threads: None, cancel: &AtomicBool::new(false), tick: &|_| {} };
    // Without a place to save to, nothing cancels it.
    Ok(run(experiment, prepared, &plan, None, &[])?.unwrap_or_default())
}

/// The curves in the order of the methods, or `None` if it was cancelled.
///
/// Runs go to the store as they finish. The result depends neither on the order in which they do,
/// nor on the threads, nor on which of them were in `finished` from before.
///
/// # Errors
/// [`Error`] for a method that fails on the way, and for a store that cannot keep a run.
pub fn run(
    experiment: &Experiment,
    prepared: &Prepared,
    plan: &Plan<'_>,
    store: Option<&mut dyn RunSink>,
    finished: &[FinishedRun],
) -> Result<Option<Vec<MethodCurve>>> {
    let ensembles = Ensembles::new(experiment.ensemble, plan, store, finished)?;
    let curve = |&method: &Method| {
        let begin = Instant::now();
        let Some((form, outcome)) = run_method(experiment, prepared, method, &ensembles)? else {
            return Ok(None);
        };
        Ok(Some(MethodCurve { method, form, outcome, took: begin.elapsed() }))
    };
    experiment.methods.iter().map(curve).collect()
}

/// How a method was computed, and what came out; `None` if it was cancelled.
fn run_method(
    experiment: &Experiment,
    prepared: &Prepared,
    method: Method,
    ensembles: &Ensembles<'_, '_>,
) -> Result<Option<(String, Outcome)>> {
    if !method.is_ensemble() {
        let (path, flow) = solve(experiment, prepared, method)?;
        let nodes = prepared.compressed.modes().modes().len();
        let equations = if prepared.problem.model().is_some() { 2 * nodes } else { nodes };
        return Ok(Some((format!("{equations} equations"), Outcome::Path { path, flow })));
    }
    let (simulator, form) = prepared.simulator(method)?;
    let Some(runs) = ensembles.complete(method, &*simulator, &prepared.times)? else {
        return Ok(None);
    };
    let measured = |run: Trajectory| match prepared.problem.model() {
        Some(model) if run.measures.is_none() => run.measured(model),
        _ => run,
    };
    let runs =
        runs.into_iter().map(|(index, run)| (index, prepared.to_user(measured(run)))).collect();
    let band = Summary::of(&prepared.times, &runs, &ensembles.ensemble.probabilities)?;
    Ok(Some((form.to_owned(), Outcome::Band(Box::new(band)))))
}

/// All runs of an ensemble by their number, unless it was cancelled; `tick` is called after
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
    prepared: &Prepared,
    method: Method,
) -> Result<(Trajectory, Option<Vec<f64>>)> {
    let problem = match method {
        Method::Unclipped => &prepared.unclipped,
        _ => &prepared.compressed,
    };
    let (rtol, keeps_path) = (experiment.tolerance, problem.model().is_none());
    let (path, flow) = if method == Method::Volterra {
        let solution = Volterra::new(problem)
            .and_then(|eq| eq.tolerance(rtol, 0.0).keep_path(true).solve(&prepared.times))
            .map_err(|source| failed("the integral equation", source))?;
        (solution.trajectory, Some(solution.flow))
    } else {
        let path = Ode::new(problem)
            .and_then(|ode| ode.tolerance(rtol, 0.0).keep_path(keeps_path).solve(&prepared.times))
            .map_err(|source| failed("the ODE", source))?;
        (path, None)
    };
    Ok((prepared.to_user(path), flow))
}

fn failed(method: &'static str, source: toclip::Error) -> Error {
    Error::Solve { method, source }
}

/// The ensembles of an experiment, where their runs are kept, and the runs that were finished before.
struct Ensembles<'a, 's> {
    ensemble: Ensemble,
    plan: &'a Plan<'a>,
    store: Mutex<Option<&'s mut dyn RunSink>>,
    finished: &'a [FinishedRun],
}

impl<'a, 's> Ensembles<'a, 's> {
    fn new(
        Runs { runs, seed, confidence }: Runs,
        plan: &'a Plan<'a>,
        store: Option<&'s mut dyn RunSink>,
        finished: &'a [FinishedRun],
    ) -> Result<Self> {
        let mut ensemble = Ensemble::new(runs, seed).confidence(confidence)?;
        ensemble.threads = plan.threads;
        Ok(Ensembles { ensemble, plan, store: store.into(), finished })
    }

    /// Runs the missing runs and keeps each in the store as it finishes. Returns all runs of the method by
    /// number; `None` if it was cancelled before it had all of them.
    fn complete(
        &self,
        method: Method,
        simulator: &dyn Simulator,
        times: &[f64],
    ) -> Result<Option<BTreeMap<u64, Trajectory>>> {
        let Ensembles { ensemble, plan, store, finished } = self;
        let wanted = finished.iter().filter(|f| f.method == method && f.index < ensemble.runs);
        let before: BTreeMap<u64, Trajectory> = wanted.map(|f| (f.index, f.run.clone())).collect();
        let indices: BTreeSet<u64> = before.keys().copied().collect();
        let done = Mutex::new(before);
        let failure = Mutex::new(None);
        ensemble.run_missing(simulator, times, &indices, plan.cancel, &|index, run| {
            let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(Err(error)) = store.as_mut().map(|store| store.keep(method, index, &run)) {
                // Runs that cannot be saved are not worth computing.
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
        Ok((done.len() as u64 >= ensemble.runs).then_some(done))
    }
}
