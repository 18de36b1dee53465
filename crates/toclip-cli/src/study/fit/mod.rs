//! From samples to predicted and measured risk.

pub mod check;
mod data;
pub mod figures;
pub mod input;
mod prediction_gap;
pub mod report;
pub mod wording;

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use toclip::dynamics::{Ode, Stream, linear_times, log_times};
use toclip::ensemble::{Ensemble, Summary};
use toclip::noise::{Empirical, Noise};
use toclip::policy::OpenLoop;
use toclip::verdict::Verdict;
use toclip::{Factors, Problem, Step};
use toclip_data::noise_fit::{
    self, Components, NoiseComparison, NoiseFit, NoiseFitOptions, NoiseModel, fit_all,
};
use toclip_data::{
    Activation, ChanceBias, ClippedOptimum, Design, Features, LeastSquares, OnePass, Residuals,
    Ridge, normal_start,
};

use crate::experiment::run::all_runs;
pub use data::{FittedData, statistics_columns};
use input::PaperDataSet;
pub use prediction_gap::PredictionGap;
use toclip_words::short;

/// Residuals below this share of the fitted values are rounding, or the target is among the features.
const PERFECT: f64 = 1e-8;

/// The settings of a fit and of the runs on the data.
#[derive(Debug, Clone)]
pub struct FitSettings {
    pub features: Features,
    pub eta: f64,
    /// Infinite for no clipping.
    pub clip: f64,
    pub runs: u64,
    pub seed: u64,
    /// θ0 = θ* + start_noise · N(0, I); zero for `None`.
    pub start_noise: Option<f64>,
    pub held_out: bool,
    /// The distribution of the first prediction; `None` for the best fit.
    pub noise: Option<NoiseModel>,
    pub components: Option<usize>,
    pub ridge: Option<f64>,
}

impl FitSettings {
    /// The settings of the paper for its data sets; for data of the user's own those of CIFAR-10, with
    /// the distribution that fits best.
    pub fn of(known: Option<PaperDataSet>) -> Self {
        let tanh = |count| Features::Random { activation: Activation::Tanh, count };
        let cifar = FitSettings {
            features: tanh(500),
            eta: 0.1,
            clip: 0.5,
            runs: 50,
            seed: 1,
            start_noise: Some(0.4),
            held_out: false,
            noise: Some(NoiseModel::Gaussian),
            components: None,
            ridge: None,
        };
        match known {
            Some(PaperDataSet::Cifar10) => cifar,
            Some(PaperDataSet::Wikitext2) => FitSettings {
                features: tanh(1000),
                eta: 0.4,
                start_noise: Some(0.6),
                noise: Some(NoiseModel::GaussianMixture),
                components: Some(3),
                ..cifar
            },
            None => FitSettings { noise: None, ..cifar },
        }
    }

    /// "θ0 = 0", or how far it is from θ*.
    pub fn describe_start(&self) -> String {
        match self.start_noise {
            Some(spread) => format!("θ0 = θ* + {} N(0, I)", short(spread)),
            None => "θ0 = 0".into(),
        }
    }

    /// θ0.
    pub fn start(&self, optimum: &[f64]) -> Vec<f64> {
        match self.start_noise {
            Some(spread) => normal_start(optimum, spread, self.seed),
            None => vec![0.0; optimum.len()],
        }
    }
}

/// A predicted risk.
#[derive(Debug, Clone)]
pub struct RiskPrediction {
    pub key: &'static str,
    pub label: String,
    pub times: Vec<f64>,
    pub risk: Vec<f64>,
    /// How far the mean of the runs is above it over the second half of the pass.
    pub gap: Option<PredictionGap>,
}

/// A fit by least squares, the predictions and the runs.
#[derive(Debug, Clone)]
pub struct Fit {
    pub data: FittedData,
    pub target_mean: f64,
    /// Whether the target has exactly two values.
    pub two_classes: bool,
    /// Root of the mean square of the centred targets.
    pub target_spread: f64,
    pub ridge: Option<Ridge>,
    /// Residuals on the samples of the fit, if SGD sees others.
    pub train: Option<Residuals>,
    /// Residuals on the samples that SGD sees.
    pub residuals: Residuals,
    pub noise: NoiseComparison,
    /// The distribution of the first prediction.
    pub fitted: NoiseFit,
    /// ½‖θ_c − θ*‖² in the norm of K, and the share of samples unclipped at θ_c.
    pub bias: f64,
    pub unclipped: f64,
    /// The same were it chance alone.
    pub chance: ChanceBias,
    /// With the fitted distribution, with the residuals, corrected, and corrected but with replacement.
    pub curves: Vec<RiskPrediction>,
    /// The factors along the curve with the residuals.
    pub path: Vec<Factors>,
    pub band: Summary,
    /// Whether to clip, for the residuals, at the start and at the end of the pass.
    pub decisions: [Verdict; 2],
}

impl Fit {
    /// Everything; the design is used up because its features become those of SGD.
    pub fn new(design: Design, settings: &FitSettings, tick: &(dyn Fn() + Sync)) -> Result<Self> {
        let (train, design) = design.split(settings.held_out, settings.seed)?;
        let elsewhere = train.as_ref().map(Design::rows);
        let least = LeastSquares::new(train.as_ref().unwrap_or(&design), settings.ridge)?;
        let train = train.map(|train| least.residuals(&train)).transpose()?;
        let residuals = least.residuals(&design)?;
        let (noise, fitted) = noise_fits(&residuals.values, settings)?;
        let start = settings.start(&least.optimum);
        let gap: Vec<f64> = start.iter().zip(&least.optimum).map(|(a, b)| a - b).collect();
        let modes = design.modes(&gap)?;
        let times = times(design.rows() as f64 / design.dim(), design.dim(), 81)?;
        let policy = OpenLoop::constant(settings.eta, settings.clip)?;
        let ode = |noise: Step<'static>| {
            let problem = Problem::new(modes.clone(), noise, policy.clone())?;
            Ode::new(&problem)?.keep_path(true).solve(&times)
        };
        let empirical = Empirical::new(&residuals.values)?;
        let (by_fit, by_residuals) = (ode(fitted.noise().into())?, ode(empirical.clone().into())?);
        let path = by_residuals.path.iter().flatten().zip(&by_residuals.risk).map(|(at, &r)| {
            let second_moment = 2.0 * r + empirical.second_moment();
            Factors { r, c: at.c, mu: at.mu, m2: at.m2, second_moment }
        });
        let path = path.collect();
        let destination = ClippedOptimum::new(&design, &least, settings.clip)?;
        let one_pass = OnePass::new(&design, &least, &destination, &start, settings.eta, &times)?;
        let chance = ChanceBias::new(&design, &least, &residuals, settings.clip, elsewhere);
        let last = by_residuals.risk.last().copied().unwrap_or(0.0);
        let decisions =
            [Verdict::at_risk(&empirical, modes.risk())?, Verdict::at_risk(&empirical, last)?];
        let label = format!("ODE, {}", fitted.describe());
        let predictions = [
            ("ode_fitted", label, (by_fit.times, by_fit.risk)),
            (
                "ode_residuals",
                "ODE, measured residuals".into(),
                (by_residuals.times, by_residuals.risk),
            ),
            (
                "one_pass",
                "corrected for bias and one pass".into(),
                (one_pass.times.clone(), one_pass.risk),
            ),
            (
                "with_replacement",
                "corrected for bias only".into(),
                (one_pass.times, one_pass.with_replacement),
            ),
        ];
        let data = FittedData::new(&design, settings, &least.optimum, &times);
        let (target_mean, two_classes) = (design.target_mean(), design.labels().is_ok());
        let squares: f64 = design.targets().iter().map(|b| b * b).sum();
        let stream = Stream::new(design.into_data(start, least.optimum), policy)?;
        let ensemble = Ensemble::new(settings.runs, settings.seed);
        // The runs themselves: how well the mean over time is known depends on how each goes on.
        let runs = all_runs(&ensemble, &stream, &times, &AtomicBool::new(false), tick)?;
        let band = Summary::of(&times, &runs, &ensemble.probabilities)?;
        let risks: Vec<Vec<f64>> = runs.into_values().map(|run| run.risk).collect();
        let finished = band.diverged.is_empty();
        let curve = |(key, label, (times, risk)): (&'static str, String, RiskCurve)| {
            let gap = || PredictionGap::new(&band.times, &band.risk, &risks, 0.0, &risk);
            let gap = if finished { gap() } else { None };
            RiskPrediction { key, label, times, risk, gap }
        };
        Ok(Fit {
            target_mean,
            two_classes,
            target_spread: (squares / data.rows as f64).sqrt(),
            data,
            ridge: least.ridge,
            train,
            residuals,
            noise,
            fitted,
            bias: destination.bias,
            chance,
            unclipped: destination.unclipped,
            curves: predictions.map(curve).into(),
            path,
            band,
            decisions,
        })
    }

    /// Whether clipping moves the point to which SGD converges by more than chance.
    pub fn is_biased(&self) -> bool {
        self.data.settings.clip.is_finite() && !self.is_perfect() && self.bias > self.chance.limit
    }

    /// Whether least squares leaves nothing but rounding errors.
    pub fn is_perfect(&self) -> bool {
        let predicted = self.target_spread.powi(2) - self.residuals.mse;
        !(self.residuals.sigma > PERFECT * predicted.max(0.0).sqrt())
    }

    /// A factor along the prediction with the residuals; their variance is finite.
    pub fn along(&self, of: fn(&Factors) -> toclip::Result<f64>) -> Vec<f64> {
        self.path.iter().map(|at| of(at).unwrap_or(f64::NAN)).collect()
    }

    pub fn curve(&self, key: &str) -> Option<&RiskPrediction> {
        self.curves.iter().find(|curve| curve.key == key)
    }
}

/// All distributions compared, and the one of the first prediction.
fn noise_fits(residuals: &[f64], settings: &FitSettings) -> Result<(NoiseComparison, NoiseFit)> {
    let defaults = NoiseFitOptions::default();
    let components = settings.components.map_or(defaults.components, Components::Exactly);
    let options = NoiseFitOptions { components, seed: settings.seed, ..defaults };
    let all = fit_all(residuals, &options).context("the residuals")?;
    let chosen = match settings.noise {
        None => all.best().clone(),
        Some(kind) => match all.get(kind) {
            Some(found) => found.clone(),
            // A mixture of one component is not listed among the others.
            None => noise_fit::fit(residuals, kind, &options).context("the residuals")?,
        },
    };
    Ok((all, chosen))
}

/// Times and risks.
type RiskCurve = (Vec<f64>, Vec<f64>);

/// So many at equal ratios from the first step on for the picture, equal distances over the second half for
/// the comparison.
pub fn times(end: f64, dim: f64, count: usize) -> Result<Vec<f64>> {
    let first = (1.0 / dim).min(0.5 * end);
    let mut times = log_times(first, end, count)?;
    times.extend(linear_times(0.5 * end, 21)?.iter().map(|t| 0.5 * end + t));
    times.push(0.0);
    times.sort_by(f64::total_cmp);
    // Times closer than a step show the same.
    times.dedup_by(|b, a| *b - *a < 0.4 / dim);
    if let Some(last) = times.last_mut() {
        *last = end;
    }
    Ok(times)
}
