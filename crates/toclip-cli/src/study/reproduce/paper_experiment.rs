//! Experiments from the embedded files, run with the effort asked for.

use std::path::Path;

use anyhow::{Context, Result};
use toclip::dynamics::{Stop, Trajectory};
use toclip::ensemble::Summary;

use super::{RunSizes, stem};
use crate::experiment::run::{MethodCurve, run_all};
use crate::experiment::{self, Clip, Experiment, Method, Origin, Prepared};

/// An experiment of the paper.
pub struct PaperExperiment {
    pub experiment: Experiment,
    pub origin: Origin,
    /// Its file.
    pub text: &'static str,
}

impl PaperExperiment {
    /// The experiment of a figure or theorem.
    pub fn new(id: &str, text: &'static str, sizes: &RunSizes) -> Result<Self> {
        let path = format!("experiments/{}.toml", stem(id));
        let (mut experiment, origin) = experiment::parse(text, Path::new(&path))?;
        experiment.ensemble.runs = sizes.runs;
        experiment.ensemble.seed = sizes.seed;
        Ok(PaperExperiment { experiment, origin, text })
    }

    pub fn prepared(&self) -> Result<Prepared> {
        Ok(Prepared::new(&self.experiment, &self.origin)?)
    }

    /// The curves of the same with another clipping and other methods.
    pub fn curves_with(&self, clip: Clip, methods: &[Method]) -> Result<Vec<MethodCurve>> {
        let experiment = Experiment { clip, methods: methods.to_vec(), ..self.experiment.clone() };
        Ok(run_all(&experiment, &Prepared::new(&experiment, &self.origin)?)?)
    }
}

fn find(curves: &[MethodCurve], method: Method) -> Result<&MethodCurve> {
    let found = curves.iter().find(|curve| curve.method == method);
    found.with_context(|| format!("the experiment has no method {}", method.key()))
}

/// The path of a deterministic method.
pub fn path(curves: &[MethodCurve], method: Method) -> Result<&Trajectory> {
    find(curves, method)?.path().context("this method is an ensemble")
}

/// The statistics of an ensemble.
pub fn band(curves: &[MethodCurve], method: Method) -> Result<&Summary> {
    find(curves, method)?.band().context("this method is deterministic")
}

/// R at the end; NaN for a path that did not get there.
pub fn last(path: &Trajectory) -> f64 {
    match path.stop {
        Stop::Finished => path.risk.last().copied().unwrap_or(f64::NAN),
        _ => f64::NAN,
    }
}
