//! Noise fitted to residuals: one family, one file, compared on residuals the fit has not seen.
//!
//! | kind | law of $\epsilon$ | how it is fitted | parameters |
//! |---|---|---|---|
//! | [`Kind::Gaussian`] | $N(0, \sigma^2)$ | closed form | 1 |
//! | [`Kind::GaussianWithMean`] | $N(m, \sigma^2)$, a mixture of one | closed form | 2 |
//! | [`Kind::Laplace`] | centred Laplace | closed form | 1 |
//! | [`Kind::StudentT`] | $\text{scale}\cdot t_{\text{df}}$ | profile likelihood over df | 2 |
//! | [`Kind::GaussianMixture`] | $\sum_j w_j N(m_j, s_j^2)$ | EM from several starts | $3K - 1$ |
//! | [`Kind::Empirical`] | the residuals themselves | nothing to fit | – |
//!
//! The families of the theory are centred, except for the mixture: residuals whose mean is not zero
//! are told so in [`Comparison::notes`].
//!
//! Every fit is judged by its **held-out** log-likelihood: the residuals are dealt into folds, each
//! fold is scored by the fit to the others. In nats a residual; a difference of 0.01 means that a
//! hundred residuals are enough to favour one law over the other by a factor $e$.
//!
//! Residuals are atoms and have no likelihood, so [`Kind::Empirical`] is scored through a smoothed
//! density, a Gaussian kernel estimate, which the dynamics do not use: there $\sqrt{2R}\thinspace z$
//! does the smoothing.

mod cells;
mod compare;
mod em;
mod empirical;
mod gaussian;
mod laplace;
mod mixture;
mod random;
mod sample;
mod starts;
mod student_t;

pub use compare::{Behind, Comparison, fit_all};

use crate::{Error, Result};
use sample::Sample;
use std::fmt;
use std::sync::Arc;
use toclip::noise::{Family, Noise};

/// What is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
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

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] = [
        Kind::Gaussian,
        Kind::GaussianWithMean,
        Kind::Laplace,
        Kind::StudentT,
        Kind::GaussianMixture,
        Kind::Empirical,
    ];

    /// The name for tables and JSON, as [`Family::NAMES`] where it is the same law.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Gaussian => "gaussian",
            Kind::GaussianWithMean => "gaussian_with_mean",
            Kind::Laplace => "laplace",
            Kind::StudentT => "student_t",
            Kind::GaussianMixture => "gaussian_mixture",
            Kind::Empirical => "empirical",
        }
    }
}

/// How many components a Gaussian mixture has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Components {
    /// From 1 to so many, whichever has the smallest BIC.
    UpTo(usize),
    /// Just so many.
    Exactly(usize),
}

impl Components {
    /// More components than this are refused: EM would find structure in chance.
    pub const MOST: usize = 20;
}

/// How residuals are fitted and compared.
///
/// | option | default | what it does |
/// |---|---|---|
/// | `components` | up to 6, by BIC | of the Gaussian mixture; 1 to 20 |
/// | `folds` | 5 | parts into which residuals are dealt for the held-out likelihood; 2 to 50 |
/// | `seed` | 1 | deals the folds |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Components of the Gaussian mixture.
    pub components: Components,
    /// Parts into which residuals are dealt for the held-out likelihood.
    pub folds: usize,
    /// Deals the folds.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { components: Components::UpTo(6), folds: 5, seed: 1 }
    }
}

impl Options {
    fn check(&self) -> Result<()> {
        let (Components::UpTo(k) | Components::Exactly(k)) = self.components;
        if !(1..=Components::MOST).contains(&k) {
            let most = Components::MOST;
            return Err(Error::Invalid(format!(
                "{k} components are not allowed: give 1 to {most}"
            )));
        }
        if !(2..=50).contains(&self.folds) {
            let folds = self.folds;
            return Err(Error::Invalid(format!("{folds} folds are not allowed: give 2 to 50")));
        }
        Ok(())
    }
}

/// A fitted law as the fits see it: in units of the residuals.
trait Law: fmt::Debug + Send + Sync {
    fn ln_density(&self, x: f64) -> f64;
    /// What goes into the dynamics; `all` are the residuals.
    fn family(&self, all: &[f64]) -> toclip::Result<Family>;
    fn parameters(&self) -> usize;
    /// What a reader of the fit should know.
    fn note(&self) -> Option<String> {
        None
    }
}

/// A law of the noise fitted to residuals.
#[derive(Debug, Clone)]
pub struct NoiseFit {
    /// What was fitted.
    pub kind: Kind,
    /// The law, ready for the dynamics.
    pub family: Family,
    /// Numbers that were fitted; for [`Kind::Empirical`] all the residuals.
    pub parameters: usize,
    /// The log-likelihood of all residuals under the fit to all of them, in nats.
    pub log_likelihood: f64,
    /// The mean log-likelihood of a residual under the fit to the other folds, in nats.
    pub held_out: f64,
    /// How far `held_out` is behind the best of its [`Comparison`]; zero for a fit made alone.
    pub behind: Behind,
    /// $-2 \ln L + p \ln n$, smaller is better; `None` for [`Kind::Empirical`].
    pub bic: Option<f64>,
    /// What a reader of the fit should know: a parameter at the end of its range, a sample.
    pub note: Option<String>,
    law: Arc<dyn Law>,
}

impl NoiseFit {
    /// The fitted density $f(x)$ of $\epsilon$; for [`Kind::Empirical`] the smoothed one.
    pub fn density(&self, x: f64) -> f64 {
        self.law.ln_density(x).exp()
    }

    /// $\ln f(x)$, also where $f$ is too small for a number.
    pub fn ln_density(&self, x: f64) -> f64 {
        self.law.ln_density(x)
    }

    /// The law for the dynamics, as they take it.
    pub fn noise(&self) -> Arc<dyn Noise> {
        Arc::new(self.family.clone())
    }

    /// The law in a few words with its parameters.
    pub fn describe(&self) -> String {
        let short = |x: f64| {
            let rounded: f64 = format!("{x:.3e}").parse().unwrap_or(x);
            let plain = rounded == 0.0 || (1e-4..1e7).contains(&rounded.abs());
            if plain { rounded.to_string() } else { format!("{rounded:e}") }
        };
        match (&self.family, self.kind) {
            (Family::GaussianMixture(mixture), Kind::GaussianWithMean) => {
                let one = mixture.components()[0];
                format!("Gaussian (m = {}, σ = {})", short(one.mean), short(one.std))
            }
            (family, _) => family.describe(),
        }
    }
}

/// Fits one kind of noise to residuals.
///
/// ```
/// use toclip_data::noise_fit::{Kind, Options, fit};
/// // The quantiles of a Laplace law of rate 1: E|ε| = 1, σ = √2.
/// let upper: Vec<f64> = (0..500).map(|i| -(1.0 - (i as f64 + 0.5) / 500.0).ln()).collect();
/// let residuals: Vec<f64> = upper.iter().flat_map(|&e| [e, -e]).collect();
/// let laplace = fit(&residuals, Kind::Laplace, &Options::default())?;
/// assert!((laplace.density(0.0) - 0.5).abs() < 1e-3);
/// let gaussian = fit(&residuals, Kind::Gaussian, &Options::default())?;
/// assert!(laplace.held_out > gaussian.held_out + 0.02);
/// # Ok::<(), toclip_data::Error>(())
/// ```
///
/// # Errors
/// [`Error::Invalid`] for fewer than 20 residuals, one that is not finite, all the same, sizes
/// beyond 1e±100, or impossible options.
pub fn fit(residuals: &[f64], kind: Kind, options: &Options) -> Result<NoiseFit> {
    options.check()?;
    let sample = Sample::new(residuals)?;
    Ok(fit_held_out(&sample, kind, options)?.0)
}

/// The fit, and the held-out log-likelihood of every residual of the sorted sample.
fn fit_held_out(sample: &Sample, kind: Kind, options: &Options) -> Result<(NoiseFit, Vec<f64>)> {
    let law = fit_law(sample, kind, options.components);
    // The number of components is chosen once: folds are to judge the law, not the choice.
    let components = match kind {
        Kind::GaussianMixture => Components::Exactly((law.parameters() + 1) / 3),
        _ => options.components,
    };
    let fold = sample.deal(options.folds, options.seed);
    let mut scores = vec![0.0; sample.len()];
    for k in 0..options.folds {
        let others = fit_law(&sample.without(&fold, k), kind, components);
        for (i, &x) in sample.values.iter().enumerate() {
            if fold[i] == k {
                scores[i] = others.ln_density(x);
            }
        }
    }
    let n = sample.len() as f64;
    let log_likelihood: f64 = sample.values.iter().map(|&x| law.ln_density(x)).sum();
    let parameters = law.parameters();
    let bic = (kind != Kind::Empirical).then(|| parameters as f64 * n.ln() - 2.0 * log_likelihood);
    let fit = NoiseFit {
        kind,
        family: law.family(&sample.values)?,
        parameters,
        log_likelihood,
        held_out: scores.iter().sum::<f64>() / n,
        behind: Behind::default(),
        bic,
        note: law.note(),
        law,
    };
    Ok((fit, scores))
}

fn fit_law(sample: &Sample, kind: Kind, components: Components) -> Arc<dyn Law> {
    match kind {
        Kind::Gaussian => Arc::new(gaussian::centred(sample)),
        Kind::GaussianWithMean => Arc::new(gaussian::with_mean(sample)),
        Kind::Laplace => Arc::new(laplace::fit(sample)),
        Kind::StudentT => Arc::new(student_t::fit(sample)),
        Kind::GaussianMixture => Arc::new(mixture::fit(sample, components)),
        Kind::Empirical => Arc::new(empirical::fit(sample)),
    }
}
