//! All families beside each other.

use super::sample::Sample;
use super::{Components, Kind, NoiseFit, Options, fit_held_out};
use crate::Result;
use toclip::noise::Family;

/// By how much the mean held-out log-likelihood is below the best one, and how sure that is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Behind {
    /// Nats a residual, not negative.
    pub mean: f64,
    /// The standard error of `mean`, from the differences residual by residual.
    pub standard_error: f64,
}

/// Fits to the same residuals, the best held-out likelihood first.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// At least one of them is not [`Kind::Empirical`].
    pub fits: Vec<NoiseFit>,
    /// How many residuals.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// The standard deviation, about the mean.
    pub std: f64,
    /// What a reader of the fits should know: a mean that is not zero, ties.
    pub notes: Vec<String>,
    best: usize,
}

impl Comparison {
    /// The law to use: of the families that are at most two standard errors behind the first of
    /// them, the one with the fewest parameters; the better held-out likelihood among equals.
    ///
    /// The residuals themselves, [`Comparison::empirical`], are not among the choices: how far the
    /// best family is behind them says what no family here follows.
    pub fn best(&self) -> &NoiseFit {
        &self.fits[self.best]
    }

    /// The fit of one kind. A mixture that came out with one component is not listed beside the
    /// Gaussian with a mean, which it is.
    pub fn get(&self, kind: Kind) -> Option<&NoiseFit> {
        self.fits.iter().find(|fit| fit.kind == kind)
    }

    /// The residuals themselves.
    pub fn empirical(&self) -> Option<&NoiseFit> {
        self.get(Kind::Empirical)
    }
}

/// Fits every kind of noise to residuals and compares them on what the fits have not seen.
///
/// ```
/// use toclip_data::noise_fit::{Kind, Options, fit_all};
/// // Two clusters, each uniform and a tenth as wide as they are apart.
/// let residuals: Vec<f64> = (0..500)
///     .map(|i| (f64::from(i) * 0.618_034).fract() * 0.2 + if i % 2 == 0 { 1.0 } else { -1.2 })
///     .collect();
/// let comparison = fit_all(&residuals, &Options::default())?;
/// assert_eq!(comparison.best().kind, Kind::GaussianMixture);
/// assert!(comparison.fits[0].held_out >= comparison.fits[1].held_out);
/// # Ok::<(), toclip_data::Error>(())
/// ```
///
/// # Errors
/// As [`fit`](super::fit).
pub fn fit_all(residuals: &[f64], options: &Options) -> Result<Comparison> {
    options.check()?;
    let sample = Sample::new(residuals)?;
    let mut fits = Vec::new();
    for kind in Kind::ALL {
        let fit = fit_held_out(&sample, kind, options)?;
        let again = kind == Kind::GaussianMixture && components(&fit.0) == Some(1);
        if !again {
            fits.push(fit);
        }
    }
    fits.sort_by(|a, b| b.0.held_out.total_cmp(&a.0.held_out));
    let behind: Vec<Behind> = fits.iter().map(|fit| behind(&fits[0].1, &fit.1)).collect();
    let best = best(&fits);
    for (fit, behind) in fits.iter_mut().zip(behind) {
        fit.0.behind = behind;
    }
    let n = sample.len() as f64;
    let away = sample.values.iter().map(|x| x - sample.median);
    let mean = sample.median + away.sum::<f64>() / n;
    let std = super::sample::deviation(&sample.values);
    Ok(Comparison {
        fits: fits.into_iter().map(|fit| fit.0).collect(),
        count: sample.len(),
        mean,
        std,
        notes: notes(&sample, mean, std, options),
        best,
    })
}

fn components(fit: &NoiseFit) -> Option<usize> {
    match &fit.family {
        Family::GaussianMixture(mixture) => Some(mixture.components().len()),
        _ => None,
    }
}

/// The mean of paired differences and its standard error.
fn behind(ahead: &[f64], scores: &[f64]) -> Behind {
    let n = scores.len() as f64;
    let differences: Vec<f64> = ahead.iter().zip(scores).map(|(a, b)| a - b).collect();
    let mean = differences.iter().sum::<f64>() / n;
    let square: f64 = differences.iter().map(|d| (d - mean) * (d - mean)).sum();
    Behind { mean: mean.max(0.0), standard_error: (square / (n - 1.0) / n).sqrt() }
}

/// The index of the law to use; the fits are sorted by held-out likelihood.
fn best(fits: &[(NoiseFit, Vec<f64>)]) -> usize {
    let families = || fits.iter().enumerate().filter(|(_, fit)| fit.0.kind != Kind::Empirical);
    let Some((first, ahead)) = families().next() else { return 0 };
    let in_reach = families().filter(|(_, fit)| {
        let behind = behind(&ahead.1, &fit.1);
        behind.mean <= 2.0 * behind.standard_error
    });
    in_reach.min_by_key(|(_, fit)| fit.0.parameters).map_or(first, |(i, _)| i)
}

fn notes(sample: &Sample, mean: f64, std: f64, options: &Options) -> Vec<String> {
    let n = sample.len() as f64;
    let mut notes = Vec::new();
    let error = std / n.sqrt();
    if mean.abs() > 4.0 * error {
        notes.push(format!(
            "the residuals have mean {mean:.3e}, {:.0} standard errors from zero; only the mixture \
             and the Gaussian with a mean can follow it (an intercept would take it away)",
            mean.abs() / error
        ));
    }
    let runs = sample.values.chunk_by(|a, b| a == b).map(<[f64]>::len);
    let tied: usize = runs.filter(|&run| run > 1).sum();
    if tied as f64 > 0.01 * n {
        notes.push(format!(
            "{:.0}% of the residuals have an equal; a density at repeated values is as large as \
             the smallest scale allowed, so likelihoods say little",
            100.0 * tied as f64 / n
        ));
    }
    if let Components::Exactly(k) = options.components
        && 10 * k > sample.len()
    {
        notes.push(format!("{k} components for {n} residuals find structure in chance"));
    }
    notes
}
