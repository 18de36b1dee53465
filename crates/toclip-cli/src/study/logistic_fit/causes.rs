//! Why theory and data differ, one cause at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use toclip::ensemble::Ensemble;
use toclip::model::{
    GlmSgd, GlmStream, GlmSummary, Logistic, MeasuredPath, Measures, TeacherModes,
};
use toclip::policy::OpenLoop;

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
    pub band: GlmSummary,
    /// The mean cross-entropy over that of θ*.
    pub excess: Vec<f64>,
    /// Of the excess over that of the ODE, over the second half of the pass.
    pub gap: Option<PredictionGap>,
}

/// The problem of the theory, and its prediction.
pub struct Assumed<'a> {
    pub modes: &'a TeacherModes,
    pub policy: Arc<OpenLoop>,
    pub best: Measures,
    /// The cross-entropy of the ODE over that of θ*.
    pub excess: Vec<f64>,
}

/// Four ensembles: Gaussian features and labels of the model; then the features of the data; then its
/// labels too; then without replacement. Each differs from the one before in one cause.
pub fn ensembles(
    stream: &GlmStream,
    optimum: &[f64],
    assumed: &Assumed<'_>,
    settings: &FitSettings,
    times: &[f64],
    tick: &(dyn Fn() + Sync),
) -> Result<Vec<MeasuredEnsemble>> {
    let ensemble = Ensemble::new(settings.runs, settings.seed);
    let logistic = Logistic::new(0.0)?;
    let gaussian = GlmSgd::new(assumed.modes, Arc::new(logistic), assumed.policy.clone())?;
    let finish = |key, label, cause, best: Measures, runs: BTreeMap<u64, MeasuredPath>| {
        let band = GlmSummary::of_measured(times, &runs, &ensemble.probabilities)?;
        let excess = band.loss.mean.iter().map(|loss| loss - best.loss).collect();
        let losses = |run: &MeasuredPath| run.measures.iter().map(|m| m.loss).collect();
        let losses: Vec<Vec<f64>> = runs.values().map(losses).collect();
        let predicted = &assumed.excess;
        let gap = || PredictionGap::new(&band.times, &band.loss, &losses, best.loss, predicted);
        let gap = if band.diverged.is_empty() { gap() } else { None };
        Ok::<_, anyhow::Error>(MeasuredEnsemble { key, label, cause, best, band, excess, gap })
    };
    let mut all = Vec::with_capacity(4);
    let paths = gaussian.runs(&ensemble, times, tick)?;
    let measured = paths.iter().map(|(&index, path)| (index, path.measured(&logistic)));
    all.push(finish(
        "gaussian",
        "Gaussian features, labels of the model",
        "finite d",
        assumed.best,
        measured.collect(),
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
        all.push(finish(key, label, cause, best, stream.runs(&ensemble, times, tick)?)?);
    }
    Ok(all)
}
