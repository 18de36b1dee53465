//! Noise models fitted to residuals, and compared on held-out residuals.
//!
//! | model | distribution of $\epsilon$ | how it is fitted | parameters |
//! |---|---|---|---|
//! | [`NoiseModel::Gaussian`] | $N(0, \sigma^2)$ | closed form | 1 |
//! | [`NoiseModel::GaussianWithMean`] | $N(m, \sigma^2)$, a mixture of one | closed form | 2 |
//! | [`NoiseModel::Laplace`] | centred Laplace | closed form | 1 |
//! | [`NoiseModel::StudentT`] | $\text{scale}\cdot t_{\text{df}}$ | profile likelihood over df | 2 |
//! | [`NoiseModel::GaussianMixture`] | $\sum_j w_j N(m_j, s_j^2)$ | EM from several starts | $3K - 1$ |
//! | [`NoiseModel::Empirical`] | the residuals themselves | nothing to fit | – |
//!
//! The families of the theory are centred, except for the mixture; [`NoiseComparison::notes`] warns if the
//! mean of the residuals is not zero.
//!
//! Fits are compared by their **held-out** log-likelihood: the residuals are split into folds, and
//! each fold is scored by the fit to the others. It is in nats a residual: with a difference of 0.01,
//! a hundred residuals favour one distribution over the other by a factor $e$.
//!
//! [`NoiseModel::Empirical`] has no density, so it is scored by a Gaussian kernel estimate, which the
//! dynamics do not use: there $\sqrt{2R}\thinspace z$ does the smoothing.

mod bins;
mod closed_form;
mod compare;
mod empirical;
mod mixture;
mod sample;
mod student_t;

pub use compare::{LikelihoodGap, NoiseComparison, fit_all};

use crate::Result;
use crate::error::bail;
use sample::Sample;
use std::fmt;
use std::sync::Arc;
use toclip::noise::{Family, Noise};
use toclip_words::short;

/// A noise model that can be fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoiseModel {
    /// $N(0, \sigma^2)$.
    Gaussian,
    /// $N(m, \sigma^2)$, as a mixture of one component.
    GaussianWithMean,
    /// Laplace, centred.
    Laplace,
    /// Student-t, centred.
    StudentT,
    /// $\sum_j w_j N(m_j, s_j^2)$.
    GaussianMixture,
    /// The residuals themselves.
    Empirical,
}

impl NoiseModel {
    /// All models.
    pub const ALL: [NoiseModel; 6] = [
        NoiseModel::Gaussian,
        NoiseModel::GaussianWithMean,
        NoiseModel::Laplace,
        NoiseModel::StudentT,
        NoiseModel::GaussianMixture,
        NoiseModel::Empirical,
    ];

    /// The name for tables and JSON, as in [`Family::NAMES`] for the same distribution.
    pub fn name(self) -> &'static str {
        match self {
            NoiseModel::Gaussian => "gaussian",
            NoiseModel::GaussianWithMean => "gaussian_with_mean",
            NoiseModel::Laplace => "laplace",
            NoiseModel::StudentT => "student_t",
            NoiseModel::GaussianMixture => "gaussian_mixture",
            NoiseModel::Empirical => "empirical",
        }
    }
}

/// How many components a Gaussian mixture has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Components {
    /// From 1 to this many, by the smallest BIC.
    UpTo(usize),
    /// This many.
    Exactly(usize),
}

/// The most components: EM with more would fit chance.
const MOST_COMPONENTS: usize = 20;

/// How residuals are fitted and compared.
///
/// | option | default | what it does |
/// |---|---|---|
/// | `components` | up to 6, by BIC | of the Gaussian mixture; 1 to 20 |
/// | `folds` | 5 | folds for the held-out likelihood; 2 to 50 |
/// | `seed` | 1 | seed of the random folds |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoiseFitOptions {
    /// Components of the Gaussian mixture.
    pub components: Components,
    /// Folds for the held-out likelihood.
    pub folds: usize,
    /// Seed of the random folds.
    pub seed: u64,
}

impl Default for NoiseFitOptions {
    fn default() -> Self {
        NoiseFitOptions { components: Components::UpTo(6), folds: 5, seed: 1 }
    }
}

impl NoiseFitOptions {
    fn check(&self) -> Result<()> {
        let (Components::UpTo(k) | Components::Exactly(k)) = self.components;
        if !(1..=MOST_COMPONENTS).contains(&k) {
            bail!("{k} components are not allowed; expected 1 to {MOST_COMPONENTS}");
        }
        if !(2..=50).contains(&self.folds) {
            bail!("{} folds are not allowed; expected 2 to 50", self.folds);
        }
        Ok(())
    }
}

/// A fitted distribution, in units of the residuals.
struct Fitted {
    ln_density: LnDensity,
    family: toclip::Result<Family>,
    parameters: usize,
    note: Option<String>,
    tails_are_gaussian: bool,
}

impl Fitted {
    fn new(
        parameters: usize,
        family: toclip::Result<impl Into<Family>>,
        ln_density: impl Fn(f64) -> f64 + Send + Sync + 'static,
    ) -> Self {
        let (ln_density, family) = (LnDensity(Arc::new(ln_density)), family.map(Into::into));
        Fitted { ln_density, family, parameters, note: None, tails_are_gaussian: false }
    }
}

/// $\ln f(x)$.
#[derive(Clone)]
struct LnDensity(Arc<dyn Fn(f64) -> f64 + Send + Sync>);

impl fmt::Debug for LnDensity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LnDensity")
    }
}

/// A noise model fitted to residuals.
#[derive(Debug, Clone)]
pub struct NoiseFit {
    /// The model.
    pub model: NoiseModel,
    /// The fitted distribution.
    pub family: Family,
    /// The number of parameters; for [`NoiseModel::Empirical`] that of the residuals.
    pub parameters: usize,
    /// The log-likelihood of all residuals under the fit to all of them, in nats.
    pub log_likelihood: f64,
    /// The mean log-likelihood of a residual under the fit to the other folds, in nats.
    pub held_out: f64,
    /// How far `held_out` is behind the best of its [`NoiseComparison`]; zero for a fit made alone.
    pub behind: LikelihoodGap,
    /// $-2 \ln L + p \ln n$, smaller is better; `None` for [`NoiseModel::Empirical`].
    pub bic: Option<f64>,
    /// A warning: a parameter at the end of its range, or a fit to a subset of the residuals.
    pub note: Option<String>,
    /// Whether it is a Student-t distribution with so many degrees of freedom that it is Gaussian.
    pub tails_are_gaussian: bool,
    ln_density: LnDensity,
}

impl NoiseFit {
    /// The fitted density $f(x)$ of $\epsilon$; for [`NoiseModel::Empirical`] the smoothed one.
    pub fn density(&self, x: f64) -> f64 {
        self.ln_density(x).exp()
    }

    /// $\ln f(x)$, also where $f$ underflows.
    pub fn ln_density(&self, x: f64) -> f64 {
        (self.ln_density.0)(x)
    }

    /// The distribution for the dynamics.
    pub fn noise(&self) -> Arc<dyn Noise> {
        Arc::new(self.family.clone())
    }

    /// The name of the distribution with its parameters.
    pub fn describe(&self) -> String {
        match (&self.family, self.model) {
            (Family::GaussianMixture(mixture), NoiseModel::GaussianWithMean) => {
                let one = mixture.components()[0];
                format!("Gaussian (m = {}, σ = {})", short(one.mean), short(one.std))
            }
            (family, _) => family.describe(),
        }
    }
}

/// Fits one noise model to residuals.
///
/// ```
/// use toclip_data::noise_fit::{NoiseModel, NoiseFitOptions, fit};
/// // The quantiles of a Laplace distribution of rate 1: E|ε| = 1, σ = √2.
/// let upper: Vec<f64> = (0..500).map(|i| -(1.0 - (i as f64 + 0.5) / 500.0).ln()).collect();
/// let residuals: Vec<f64> = upper.iter().flat_map(|&e| [e, -e]).collect();
/// let laplace = fit(&residuals, NoiseModel::Laplace, &NoiseFitOptions::default())?;
/// assert!((laplace.density(0.0) - 0.5).abs() < 1e-3);
/// let gaussian = fit(&residuals, NoiseModel::Gaussian, &NoiseFitOptions::default())?;
/// assert!(laplace.held_out > gaussian.held_out + 0.02);
/// # Ok::<(), toclip_data::Error>(())
/// ```
///
/// # Errors
/// [`Error::Invalid`](crate::Error::Invalid) for fewer than 20 residuals, one that is not finite, all the same, sizes
/// beyond 1e±100, or impossible options.
pub fn fit(residuals: &[f64], model: NoiseModel, options: &NoiseFitOptions) -> Result<NoiseFit> {
    options.check()?;
    let sample = Sample::new(residuals)?;
    Ok(fit_held_out(&sample, model, options)?.0)
}

/// The fit, and the held-out log-likelihood of every residual of the sorted sample.
fn fit_held_out(
    sample: &Sample,
    model: NoiseModel,
    options: &NoiseFitOptions,
) -> Result<(NoiseFit, Vec<f64>)> {
    let Fitted { ln_density, family, parameters, note, tails_are_gaussian } =
        fit_density(sample, model, options.components);
    // The number of components is chosen once: folds compare distributions, not that choice.
    let components = match model {
        NoiseModel::GaussianMixture => Components::Exactly((parameters + 1) / 3),
        _ => options.components,
    };
    let fold = sample.deal(options.folds, options.seed);
    let mut scores = vec![0.0; sample.len()];
    for k in 0..options.folds {
        let others = fit_density(&sample.without(&fold, k), model, components).ln_density.0;
        for (i, &x) in sample.values.iter().enumerate() {
            if fold[i] == k {
                scores[i] = others(x);
            }
        }
    }
    let n = sample.len() as f64;
    let log_likelihood: f64 = sample.values.iter().map(|&x| (ln_density.0)(x)).sum();
    let bic = parameters as f64 * n.ln() - 2.0 * log_likelihood;
    let fit = NoiseFit {
        model,
        family: family?,
        parameters,
        log_likelihood,
        held_out: scores.iter().sum::<f64>() / n,
        behind: LikelihoodGap::default(),
        bic: (model != NoiseModel::Empirical).then_some(bic),
        note,
        tails_are_gaussian,
        ln_density,
    };
    Ok((fit, scores))
}

fn fit_density(sample: &Sample, model: NoiseModel, components: Components) -> Fitted {
    match model {
        NoiseModel::Gaussian => closed_form::gaussian(sample),
        NoiseModel::GaussianWithMean => closed_form::gaussian_with_mean(sample),
        NoiseModel::Laplace => closed_form::laplace(sample),
        NoiseModel::StudentT => student_t::fit(sample),
        NoiseModel::GaussianMixture => mixture::fit(sample, components),
        NoiseModel::Empirical => empirical::fit(sample),
    }
}
