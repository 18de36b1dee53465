//! From samples of two classes to predicted and measured cross-entropy.

mod advice;
mod causes;
pub mod figures;
pub mod wording;

use anyhow::Result;
use toclip::Problem;
use toclip::dynamics::{Ode, Stream, StreamData};
use toclip::model::{Logistic, Measures, Overlaps};
use toclip::policy::OpenLoop;
use toclip_data::{Design, LogisticRegression, LogisticRidge};

use super::fit::{self, FitSettings, FittedData};
pub use advice::ClassificationAdvice;
pub use causes::MeasuredEnsemble;

/// Times of the picture; every one costs a product with all samples for each run.
const TIMES: usize = 25;
/// To which the spectrum is compressed where the ODE is solved hundreds of times.
const COMPRESSION: f64 = 1e-9;
/// Bins of the reliability diagram.
const BINS: usize = 15;

/// A fit of two classes, the prediction and the runs.
#[derive(Debug, Clone)]
pub struct LogisticFit {
    pub data: FittedData,
    /// The share of the larger class, label 1.
    pub ones: f64,
    pub ridge: Option<LogisticRidge>,
    /// V, the variance of ⟨x, θ*⟩.
    pub variance: f64,
    /// θ* on the samples it was fitted on, where those are others.
    pub train: Option<Measures>,
    /// θ* on the samples that SGD sees.
    pub best: Measures,
    /// θ* if the features were Gaussian and labels followed σ(⟨x, θ*⟩).
    pub best_of_model: Measures,
    /// Mean probability at θ* and share of label 1, in bins of equally many samples.
    pub reliability: Vec<[f64; 2]>,
    /// The ODE, and that without clipping.
    pub predicted: Vec<Measures>,
    pub unclipped: Vec<Measures>,
    /// From what the theory assumes to the data, one cause at a time; the last is one pass.
    pub ensembles: Vec<MeasuredEnsemble>,
    pub advice: ClassificationAdvice,
}

impl LogisticFit {
    /// Everything; the design is used up because its features become those of SGD.
    pub fn new(design: Design, settings: &FitSettings, tick: &(dyn Fn() + Sync)) -> Result<Self> {
        let (train, design) = design.split(settings.held_out, settings.seed)?;
        let labels = design.labels()?;
        let logistic = Logistic::new(0.0)?;
        let judge = |fit: &LogisticRegression, design: &Design| -> Result<Measures> {
            let u = fit.logits(design)?;
            Ok(Measures::of_samples(&logistic, &u, &u, &design.labels()?).1)
        };
        let (regression, train) = match train {
            Some(train) => {
                let fit = LogisticRegression::new(&train, &train.labels()?, settings.ridge)?;
                let own = judge(&fit, &train)?;
                (fit, Some(own))
            }
            None => (LogisticRegression::new(&design, &labels, settings.ridge)?, None),
        };
        let best = judge(&regression, &design)?;
        let reliability = reliability(&regression.logits(&design)?, &labels);
        let optimum = regression.optimum.clone();
        let start = settings.start(&optimum);
        let modes = design.teacher_modes(&optimum, &start)?;
        let variance = Overlaps::at_start(&modes).map_or(0.0, |start| start.v);
        let times = fit::times(design.rows() as f64 / design.dim(), design.dim(), TIMES)?;
        let policy = OpenLoop::constant(settings.eta, settings.clip)?;
        let problem = Problem::of_model(modes, logistic, policy.clone())?;
        let (predicted, end) = solve(&problem, settings.eta, settings.clip, &times)?;
        let (unclipped, _) = solve(&problem, settings.eta, f64::INFINITY, &times)?;
        let few = problem.with_modes(problem.modes().compress(COMPRESSION)?)?;
        let fitted = FittedData::new(&design, settings, &optimum, &times);
        let advice = ClassificationAdvice::new(&few, &logistic, settings.clip, end, fitted.end())?;
        let best_of_model = Measures::new(&logistic, &Overlaps::along_teacher(1.0, variance));
        let ones = labels.iter().sum::<f64>() / design.rows() as f64;
        let data = StreamData { targets: labels, ..design.into_data(start, optimum.clone()) };
        let stream = Stream::new(data, policy)?.with_model(logistic)?;
        let losses = predicted.iter().map(|m| m.loss - best_of_model.loss).collect();
        let assumed = causes::Assumed { problem: &problem, best: best_of_model, excess: losses };
        let ensembles = causes::ensembles(&stream, &optimum, &assumed, settings, &times, tick)?;
        Ok(LogisticFit {
            data: fitted,
            ones,
            ridge: regression.ridge,
            variance,
            train,
            best,
            best_of_model,
            reliability,
            predicted,
            unclipped,
            ensembles,
            advice,
        })
    }

    /// One pass over the data: the last of the ensembles.
    pub fn one_pass(&self) -> Option<&MeasuredEnsemble> {
        self.ensembles.last()
    }

    /// Whether a run, or the ODE, did not reach the end.
    pub fn diverged(&self) -> bool {
        self.predicted.len() < self.data.times.len()
            || self.ensembles.iter().any(|e| !e.band.diverged.is_empty())
    }
}

/// The ODE at a constant rate and threshold, and where it ends.
fn solve(
    problem: &Problem,
    eta: f64,
    clip: f64,
    times: &[f64],
) -> Result<(Vec<Measures>, Option<Overlaps>)> {
    let path = Ode::new(&problem.with_policy(OpenLoop::constant(eta, clip)?)?)?.solve(times)?;
    let end = path.overlaps.iter().flatten().last().copied();
    let end = end.filter(|_| path.times.len() == times.len());
    Ok((path.measures.unwrap_or_default(), end))
}

/// Mean σ(v) and mean label in bins of equally many samples, from small to large v.
fn reliability(v: &[f64], labels: &[f64]) -> Vec<[f64; 2]> {
    let mut order: Vec<usize> = (0..v.len()).collect();
    order.sort_by(|a, b| v[*a].total_cmp(&v[*b]));
    let size = v.len().div_ceil(BINS).max(1);
    let mean = |bin: &[usize], of: &dyn Fn(usize) -> f64| {
        bin.iter().map(|k| of(*k)).sum::<f64>() / bin.len() as f64
    };
    let bin =
        |bin: &[usize]| [mean(bin, &|k| (1.0 + (-v[k]).exp()).recip()), mean(bin, &|k| labels[k])];
    order.chunks(size).map(bin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_equally_many_samples_in_order() {
        let v: Vec<f64> = (0..30).map(|k| f64::from((k * 7) % 30) - 15.0).collect();
        let labels: Vec<f64> = v.iter().map(|v| f64::from(u8::from(*v > 0.0))).collect();
        let bins = reliability(&v, &labels);
        assert_eq!(bins.len(), 15);
        assert_eq!((bins[0][1], bins[14][1]), (0.0, 1.0));
        assert!(bins.windows(2).all(|w| w[0][0] < w[1][0]));
    }
}
