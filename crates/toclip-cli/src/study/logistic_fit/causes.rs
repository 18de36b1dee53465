//! Why theory and data differ, one cause at a time.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use toclip::Problem;
use toclip::dynamics::{Sgd, Stream, Trajectory};
use toclip::ensemble::{Ensemble, Summary};
use toclip::model::Measures;

use crate::experiment::run::all_runs;
use crate::study::fit::{FitSettings, PredictionGap};

/// Runs of C-SGD, and how far they are from the ODE.
#[derive(Debug, Clone)]
pub struct MeasuredEnsemble {
    pub key: &'static str,
    pub label: &'static str,
    /// The cause that the ensemble before it does not have.
    pub cause: &'static str,
    /// θ* on the same samples and labels.
    pub best: Measures,
    pub band: Summary,
    /// The mean cross-entropy over that of θ*.
    pub excess: Vec<f64>,
    /// Of the excess over that of the ODE, over the second half of the pass.
    pub gap: Option<PredictionGap>,
}

/// The problem of the theory, and its prediction.
pub struct Assumed<'a> {
    pub problem: &'a Problem,
    pub best: Measures,
    /// The cross-entropy of the ODE over that of θ*.
    pub excess: Vec<f64>,
}

/// Four ensembles: Gaussian features and labels of the model; then the features of the data; then its
/// labels too; then without replacement. Each differs from the one before in one cause.
pub fn ensembles(
    stream: &Stream,
    optimum: &[f64],
    assumed: &Assumed<'_>,
    settings: &FitSettings,
    times: &[f64],
    tick: &(dyn Fn() + Sync),
) -> Result<Vec<MeasuredEnsemble>> {
    let ensemble = Ensemble::new(settings.runs, settings.seed);
    let finish = |key, label, cause, best: Measures, runs: BTreeMap<u64, Trajectory>| {
        let band = Summary::of(times, &runs, &ensemble.probabilities)?;
        let measures = band.measures.as_ref().context("the runs have no loss")?;
        let excess = measures.loss.mean.iter().map(|loss| loss - best.loss).collect();
        let losses = |run: &Trajectory| run.measures.iter().flatten().map(|m| m.loss).collect();
        let losses: Vec<Vec<f64>> = runs.values().map(losses).collect();
        let predicted = &assumed.excess;
        let gap = || PredictionGap::new(&band.times, &measures.loss, &losses, best.loss, predicted);
        let gap = if band.diverged.is_empty() { gap() } else { None };
        Ok::<_, anyhow::Error>(MeasuredEnsemble { key, label, cause, best, band, excess, gap })
    };
    let mut all = Vec::with_capacity(4);
    let never = AtomicBool::new(false);
    let gaussian = all_runs(&ensemble, &Sgd::new(assumed.problem)?, times, &never, tick)?;
    all.push(finish(
        "gaussian",
        "Gaussian features, labels of the model",
        "finite d",
        assumed.best,
        gaussian,
    )?);
    let redrawn = stream.clone().with_replacement().with_drawn_labels();
    let replaced = stream.clone().with_replacement();
    let rest = [
        (
            "redrawn_labels",
            "features of the data, labels of the model",
            "features are not Gaussian",
            &redrawn,
        ),
        (
            "with_replacement",
            "the data, drawn with replacement",
            "labels do not follow the model",
            &replaced,
        ),
        ("one_pass", "the data, one pass", "a pass draws without replacement", stream),
    ];
    for (key, label, cause, stream) in rest {
        let best = stream.measure(optimum)?;
        all.push(finish(
            key,
            label,
            cause,
            best,
            all_runs(&ensemble, stream, times, &never, tick)?,
        )?);
    }
    Ok(all)
}
