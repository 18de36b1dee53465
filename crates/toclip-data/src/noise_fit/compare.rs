//! The comparison of all noise models.

use super::sample::Sample;
use super::{Components, NoiseFit, NoiseFitOptions, NoiseModel, fit_held_out};
use crate::Result;

/// By how much the mean held-out log-likelihood is below the best one, with its standard error.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LikelihoodGap {
    /// Nats a residual, not negative.
    pub mean: f64,
    /// The standard error of `mean`, from the differences residual by residual.
    pub standard_error: f64,
}

/// Fits to the same residuals, the best held-out likelihood first.
#[derive(Debug, Clone)]
pub struct NoiseComparison {
    /// At least one of them is not [`NoiseModel::Empirical`].
    pub fits: Vec<NoiseFit>,
    /// How many residuals.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// The standard deviation, about the mean.
    pub std: f64,
    /// Warnings: a mean that is not zero, ties, too many components.
    pub notes: Vec<String>,
    best: usize,
}

impl NoiseComparison {
    /// The recommended model: of the families at most two standard errors behind the best, the one
    /// with the fewest parameters; among equals, the one with the better held-out likelihood.
    ///
    /// The residuals themselves, [`NoiseModel::Empirical`], are not among the choices: how far the
    /// best family is behind them shows what no family here describes.
    pub fn best(&self) -> &NoiseFit {
        &self.fits[self.best]
    }

    /// The fit of one model. A mixture of one component is not listed: it equals the Gaussian with a
    /// mean.
    pub fn get(&self, model: NoiseModel) -> Option<&NoiseFit> {
        self.fits.iter().find(|fit| fit.model == model)
    }
}

/// Fits every noise model to residuals and compares them on held-out residuals.
///
/// ```
/// use toclip_data::noise_fit::{NoiseModel, NoiseFitOptions, fit_all};
/// // Two clusters, each uniform and a tenth as wide as they are apart.
/// let residuals: Vec<f64> = (0..500)
///     .map(|i| (f64::from(i) * 0.618_034).fract() * 0.2 + if i % 2 == 0 { 1.0 } else { -1.2 })
///     .collect();
/// let comparison = fit_all(&residuals, &NoiseFitOptions::default())?;
/// assert_eq!(comparison.best().model, NoiseModel::GaussianMixture);
/// assert!(comparison.fits[0].held_out >= comparison.fits[1].held_out);
/// # Ok::<(), toclip_data::Error>(())
/// ```
///
/// # Errors
/// As [`fit`](super::fit).
pub fn fit_all(residuals: &[f64], options: &NoiseFitOptions) -> Result<NoiseComparison> {
    options.check()?;
    let sample = Sample::new(residuals)?;
    let mut fits = Vec::new();
    for model in NoiseModel::ALL {
        let fit = fit_held_out(&sample, model, options)?;
        // A mixture of one component, which has two parameters, is the Gaussian with a mean.
        if model != NoiseModel::GaussianMixture || fit.0.parameters > 2 {
            fits.push(fit);
        }
    }
    fits.sort_by(|a, b| b.0.held_out.total_cmp(&a.0.held_out));
    let behind: Vec<LikelihoodGap> = fits.iter().map(|fit| behind(&fits[0].1, &fit.1)).collect();
    let best = best(&fits);
    for (fit, behind) in fits.iter_mut().zip(behind) {
        fit.0.behind = behind;
    }
    let mean = sample.mean();
    let std = super::sample::deviation(&sample.values);
    Ok(NoiseComparison {
        fits: fits.into_iter().map(|fit| fit.0).collect(),
        count: sample.len(),
        mean,
        std,
        notes: notes(&sample, mean, std, options),
        best,
    })
}

/// The mean of paired differences and its standard error.
fn behind(ahead: &[f64], scores: &[f64]) -> LikelihoodGap {
    let n = scores.len() as f64;
    let differences: Vec<f64> = ahead.iter().zip(scores).map(|(a, b)| a - b).collect();
    let mean = differences.iter().sum::<f64>() / n;
    let square: f64 = differences.iter().map(|d| (d - mean) * (d - mean)).sum();
    LikelihoodGap { mean: mean.max(0.0), standard_error: (square / (n - 1.0) / n).sqrt() }
}

/// The index of the recommended model; the fits are sorted by held-out likelihood.
fn best(fits: &[(NoiseFit, Vec<f64>)]) -> usize {
    let families =
        || fits.iter().enumerate().filter(|(_, fit)| fit.0.model != NoiseModel::Empirical);
    let Some((first, ahead)) = families().next() else { return 0 };
    let in_reach = families().filter(|(_, fit)| {
        let behind = behind(&ahead.1, &fit.1);
        behind.mean <= 2.0 * behind.standard_error
    });
    in_reach.min_by_key(|(_, fit)| fit.0.parameters).map_or(first, |(i, _)| i)
}

fn notes(sample: &Sample, mean: f64, std: f64, options: &NoiseFitOptions) -> Vec<String> {
    let n = sample.len() as f64;
    let mut notes = Vec::new();
    let errors = mean.abs() / (std / n.sqrt());
    if errors > 4.0 {
        notes.push(format!(
            "the residuals have mean {mean:.3e}, {errors:.0} standard errors from zero; only the \
             mixture and the Gaussian with a mean can describe it (an intercept would remove it)"
        ));
    }
    let runs = sample.values.chunk_by(|a, b| a == b).map(<[f64]>::len);
    let tied: usize = runs.filter(|&run| run > 1).sum();
    if tied as f64 > 0.01 * n {
        notes.push(format!(
            "{:.0}% of the residuals are tied; at tied values the smallest allowed scale decides \
             the density, so likelihoods say little",
            100.0 * tied as f64 / n
        ));
    }
    if let Components::Exactly(k) = options.components
        && 10 * k > sample.len()
    {
        notes.push(format!("{k} components are too many for {n} residuals: they fit chance"));
    }
    notes
}
