//! Running the methods of an experiment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use toclip::dynamics::{Ode, Simulator, Stop, Trajectory, Volterra};
use toclip::ensemble::{Ensemble, Summary};

use crate::error::{Error, Result};
use crate::{Experiment, Method, Problem, Runs};

/// The result of one method: for least squares, or for a generalised linear model
/// ([`GlmCurve`](crate::GlmCurve)).
#[derive(Debug, Clone)]
pub struct MethodCurve<O = Outcome> {
    /// The method.
    pub method: Method,
    /// In which form it was computed.
    pub form: String,
    /// The numbers.
    pub outcome: O,
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

/// A finished run of an ensemble, in the coordinates of the theory: R and D for least squares, a
/// [`GlmPath`](toclip::model::GlmPath) for generalised linear models.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedRun<R = Trajectory> {
    /// The method.
    pub method: Method,
    /// The index of the run.
    pub index: u64,
    /// The run.
    pub run: R,
}

/// A place where runs are kept as they finish, to continue an interrupted ensemble later.
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
    /// Called after every run, with the method.
    pub tick: &'a (dyn Fn(Method) + Sync),
}

/// The curves in the order of the methods, on all cores, from beginning to end.
///
/// # Errors
/// [`Error`] for a method that fails on the way.
pub fn run_all(experiment: &Experiment, problem: &Problem) -> Result<Vec<MethodCurve>> {
    let plan = Plan { threads: None, cancel: &AtomicBool::new(false), tick: &|_| {} };
    // Without a place to save to, nothing cancels it.
    Ok(run(experiment, problem, &plan, None, &[])?.unwrap_or_default())
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
    problem: &Problem,
    plan: &Plan<'_>,
    store: Option<&mut dyn RunSink>,
    finished: &[FinishedRun],
) -> Result<Option<Vec<MethodCurve>>> {
    let ensembles = Ensembles::new(experiment.ensemble, plan, store, finished)?;
    run_methods(&experiment.methods, |method| {
        if !method.is_ensemble() {
            let (path, flow) = solve(experiment, problem, method)?;
            let nodes = problem.few_modes.modes().len();
            return Ok(Some((format!("{nodes} equations"), Outcome::Path { path, flow })));
        }
        let (simulator, form) = problem.simulator(method)?;
        let runs = ensembles.complete(method, |ensemble, indices, keep| {
            ensemble.run_missing(&*simulator, &problem.times, indices, plan.cancel, keep)
        })?;
        let Some(runs) = runs else { return Ok(None) };
        let runs = runs.into_iter().map(|(index, run)| (index, problem.to_user(run))).collect();
        let band = Summary::of(&problem.times, &runs, &ensembles.ensemble.probabilities)?;
        Ok(Some((form.to_owned(), Outcome::Band(Box::new(band)))))
    })
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

/// The curves in the order of the methods; `None` as soon as `run` gives none for a method.
pub(crate) fn run_methods<O>(
    methods: &[Method],
    run: impl Fn(Method) -> Result<Option<(String, O)>>,
) -> Result<Option<Vec<MethodCurve<O>>>> {
    let curve = |&method: &Method| {
        let begin = Instant::now();
        let found = run(method)?;
        let took = begin.elapsed();
        Ok(found.map(|(form, outcome)| MethodCurve { method, form, outcome, took }))
    };
    methods.iter().map(curve).collect()
}

/// The ensembles of an experiment, where their runs are kept, and the runs that were finished before.
pub(crate) struct Ensembles<'a, 's, R> {
    pub ensemble: Ensemble,
    plan: &'a Plan<'a>,
    store: Mutex<Option<&'s mut dyn RunSink<R>>>,
    finished: &'a [FinishedRun<R>],
}

impl<'a, 's, R: Clone + Send> Ensembles<'a, 's, R> {
    pub fn new(
        Runs { runs, seed, confidence }: Runs,
        plan: &'a Plan<'a>,
        store: Option<&'s mut dyn RunSink<R>>,
        finished: &'a [FinishedRun<R>],
    ) -> Result<Self> {
        let mut ensemble = Ensemble::new(runs, seed).confidence(confidence)?;
        ensemble.threads = plan.threads;
        Ok(Ensembles { ensemble, plan, store: store.into(), finished })
    }

    /// Runs the missing runs by `run_missing` and keeps each in the store as it finishes. Returns all runs
    /// of the method by number; `None` if it was cancelled before it had all of them.
    pub fn complete(
        &self,
        method: Method,
        run_missing: impl FnOnce(
            &Ensemble,
            &BTreeSet<u64>,
            &(dyn Fn(u64, R) + Sync),
        ) -> toclip::Result<u64>,
    ) -> Result<Option<BTreeMap<u64, R>>> {
        let Ensembles { ensemble, plan, store, finished } = self;
        let wanted = finished.iter().filter(|f| f.method == method && f.index < ensemble.runs);
        let before: BTreeMap<u64, R> = wanted.map(|f| (f.index, f.run.clone())).collect();
        let indices: BTreeSet<u64> = before.keys().copied().collect();
        let done = Mutex::new(before);
        let failure = Mutex::new(None);
        run_missing(ensemble, &indices, &|index, run| {
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
