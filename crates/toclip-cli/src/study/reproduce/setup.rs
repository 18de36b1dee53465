//! Experiments from the embedded files, run with the effort asked for.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use toclip::dynamics::Trajectory;
use toclip::ensemble::Summary;

use super::effort::Effort;
use crate::experiment::run::{Curve, Outcome, Plan, run};
use crate::experiment::{self, Clip, Experiment, Method, Origin, Problem};

/// An experiment of the paper.
pub struct Setup {
    pub experiment: Experiment,
    origin: Origin,
}

impl Setup {
    pub fn new(file: &str, text: &str, effort: &Effort) -> Result<Self> {
        let (mut experiment, origin) =
            experiment::parse(text, &Path::new("experiments").join(file))?;
        experiment.ensemble.runs = effort.runs;
        experiment.ensemble.seed = effort.seed;
        Ok(Setup { experiment, origin })
    }

    /// The same with another clipping and other methods.
    pub fn with(&self, clip: Clip, methods: &[Method]) -> Self {
        let experiment = Experiment { clip, methods: methods.to_vec(), ..self.experiment.clone() };
        Setup { experiment, origin: self.origin.clone() }
    }

    pub fn problem(&self) -> Result<Problem> {
        Ok(Problem::new(&self.experiment, &self.origin)?)
    }

    pub fn curves(&self, problem: &Problem) -> Result<Vec<Curve>> {
        let cancel = AtomicBool::new(false);
        let plan = Plan { threads: None, cancel: &cancel, tick: &|_| {} };
        run(&self.experiment, problem, &plan, None, Vec::new())?.context("a run was cancelled")
    }
}

/// The path of a deterministic method.
pub fn path(curves: &[Curve], method: Method) -> Result<&Trajectory> {
    let found = curves.iter().find_map(|curve| match &curve.outcome {
        Outcome::Path { path, .. } if curve.method == method => Some(path),
        _ => None,
    });
    found.with_context(|| format!("the experiment has no method {}", method.key()))
}

/// The statistics of an ensemble.
pub fn band(curves: &[Curve], method: Method) -> Result<&Summary> {
    let found = curves.iter().find_map(|curve| match &curve.outcome {
        Outcome::Band(band) if curve.method == method => Some(&**band),
        _ => None,
    });
    found.with_context(|| format!("the experiment has no method {}", method.key()))
}

/// R at the end; NaN for a path that did not get there.
pub fn last(path: &Trajectory) -> f64 {
    match path.stop {
        toclip::dynamics::Stop::Finished => path.risk.last().copied().unwrap_or(f64::NAN),
        _ => f64::NAN,
    }
}
