//! The noise $\epsilon$ in the targets: one family, one file.
//!
//! A target is $b = \langle a, \theta^\ast \rangle + \epsilon$, so with Gaussian data the residual
//! at risk $R$ is $X = \sqrt{2R}\thinspace z - \epsilon$ with $z$ standard normal. Each family
//! computes the moments of $X$ clipped at $c$, [`Noise::clipped`]:
//!
//! | family | distribution of $\epsilon$ | as a mixture of normals | how $\mu$, $m^{(2)}$ are computed |
//! |---|---|---|---|
//! | [`NoNoise`] | $0$ | – | the kernel |
//! | [`Gaussian`] | $N(0, \sigma^2)$ | – | the kernel |
//! | [`Rademacher`] | $\pm\lambda$ with probability $p/2$ each, else $0$ | in location | three kernels |
//! | [`Uniform`] | uniform on $\[-M, M\]$ | in location | iterated integrals of $\operatorname{erfc}$ |
//! | [`Laplace`] | density $\tfrac{\lambda}{2} e^{-\lambda\Vert x\Vert }$ | in scale | $\operatorname{erfcx}$, three regimes |
//! | [`StudentT`] | $\text{scale}\cdot t_{\text{df}}$ | in scale | trapezoidal rule in the log-precision |
//! | [`Mixture`] | $\sum_j w_j N(m_j, s_j^2)$ | in both | one kernel a component |
//! | [`Empirical`] | residuals from data | in location | Gauss rules on a tree |
//!
//! Your own family implements [`Noise`]; if it has a density, [`Density`] does the integrals:
//!
//! ```
//! use toclip::{Factors, noise::{Density, Noise}};
//!
//! // Logistic noise of scale 1, from its density and a way to sample it.
//! let logistic = Density::new(
//!     "logistic",
//!     |e: f64| 0.25 / (0.5 * e).cosh().powi(2),
//!     |u: f64| (u / (1.0 - u)).ln(), // quantile function
//!     1.0,                           // a typical scale
//! )?;
//! assert!((logistic.variance() - std::f64::consts::PI.powi(2) / 3.0).abs() < 1e-10);
//! let factors = Factors::new(&logistic, 0.5, 1.0)?;
//! assert!(factors.mu > 0.0 && factors.mu < 1.0);
//! # Ok::<(), toclip::Error>(())
//! ```

mod density;
mod empirical;
mod error;
mod family;
mod gaussian;
mod laplace;
mod mixture;
mod none;
mod rademacher;
mod student_t;
mod uniform;

pub use density::Density;
pub use empirical::Empirical;
pub use error::NoiseError;
pub use family::Family;
pub use gaussian::Gaussian;
pub use laplace::Laplace;
pub use mixture::{Component, Mixture};
pub use none::NoNoise;
pub use rademacher::Rademacher;
pub use student_t::StudentT;
pub use uniform::Uniform;

use crate::error::{Error, Result};
use crate::factors::batch::SquaredResidual;
use crate::factors::kernel::Moments;
use rand::Rng;

/// A distribution of the noise $\epsilon$, seen through the residual $X = \sqrt{2R}\thinspace z -
/// \epsilon$.
///
/// Implementations must guarantee, for every $R \ge 0$ and $0 < c \le \infty$: $0 \le \mu \le 1$,
/// $0 \le m^{(2)} \le \min(c^2, E X^2)$, both non-decreasing in $c$. Callers must pass such $R$ and
/// $c$; [`Factors::new`](crate::Factors::new) checks them.
pub trait Noise: std::fmt::Debug + Send + Sync {
    /// The distribution in a few words, for messages and legends.
    fn describe(&self) -> String;

    /// One draw of $\epsilon$.
    fn sample(&self, rng: &mut dyn Rng) -> f64;

    /// $E\epsilon$, or `None` where it does not exist (Student-t with df ≤ 1).
    fn mean(&self) -> Option<f64>;

    /// $E\epsilon^2$, which the paper calls $\sigma^2$; infinite for heavy tails.
    fn second_moment(&self) -> f64;

    /// $\operatorname{Var}\epsilon$; infinite for heavy tails.
    fn variance(&self) -> f64 {
        match self.mean() {
            Some(mean) if self.second_moment().is_finite() => {
                (self.second_moment() - mean * mean).max(0.0)
            }
            _ => f64::INFINITY,
        }
    }

    /// $\mu_c(R)$ and $m^{(2)}_c(R)$: the moments of the residual at risk $R$, clipped at $c$.
    fn clipped(&self, r: f64, c: f64) -> Moments;

    /// The density of the residual $X$ at $x$ and its derivative, $(f, {f^\prime})$, for $R > 0$.
    ///
    /// Only the [Fisher limit](crate::criteria::fisher_limit) and [rules](crate::Rule) other than
    /// clipping need it; `None` if not provided.
    fn residual_density(&self, _r: f64, _x: f64) -> Option<(f64, f64)> {
        None
    }

    /// Whether $\epsilon$ and $-\epsilon$ have the same distribution, so that integrals over one side of
    /// zero are enough; false, the default, if not known.
    fn is_symmetric(&self) -> bool {
        false
    }

    /// The weights and places of the atoms of the residual at $R = 0$; the density there is that of
    /// the rest.
    fn atoms(&self) -> Vec<(f64, f64)> {
        Vec::new()
    }

    /// Whether the [`features`](Self::features) at risk $R$ are all there are, so that an integral
    /// over the density misses none.
    fn is_resolved(&self, _r: f64) -> bool {
        true
    }

    /// The distribution of $X^2$ at risk $R$, which [batches](crate::Batch) of more than one sample
    /// need.
    ///
    /// `None`, the default, if not provided: such a noise cannot be used with batches.
    fn squared_residual(&self, _r: f64) -> Option<SquaredResidual> {
        None
    }

    /// Where the distribution of $X$ at risk $R$ has features, and how wide they are.
    ///
    /// Searches over thresholds and integrals over $x$ look there first, so that a narrow bump far
    /// out is not missed.
    fn features(&self, r: f64) -> Vec<Feature>;
}

/// The methods of [`Noise`], also those with a default, passed on to another noise.
macro_rules! pass_on {
    ($self:ident => $inner:expr) => {
        pass_on!($self => $inner;
            describe() -> String, sample(rng: &mut dyn Rng) -> f64, mean() -> Option<f64>,
            second_moment() -> f64, variance() -> f64, clipped(r: f64, c: f64) -> Moments,
            residual_density(r: f64, x: f64) -> Option<(f64, f64)>, is_symmetric() -> bool,
            atoms() -> Vec<(f64, f64)>, is_resolved(r: f64) -> bool,
            squared_residual(r: f64) -> Option<SquaredResidual>, features(r: f64) -> Vec<Feature>,
        );
    };
    ($self:ident => $inner:expr; $($name:ident($($arg:ident: $type:ty),*) -> $out:ty,)*) => {
        $(fn $name(&$self $(, $arg: $type)*) -> $out {
            $inner.$name($($arg),*)
        })*
    };
}
pub(crate) use pass_on;

/// A borrowed noise is a noise.
impl<N: Noise + ?Sized> Noise for &N {
    pass_on!(self => (**self));
}

/// A place where the distribution of the residual changes: a bump or an edge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Feature {
    /// Position on the axis of $X$.
    pub at: f64,
    /// Width; zero for an atom or a jump.
    pub width: f64,
}

impl Feature {
    /// A feature at `at` of width `width`.
    pub fn new(at: f64, width: f64) -> Self {
        Feature { at, width }
    }
}

/// The features of a smooth distribution centred at zero with one scale of its own.
pub(crate) fn centred_features(spread: f64, scale: f64) -> Vec<Feature> {
    let widths = if spread > 0.0 { vec![spread, scale, spread + scale] } else { vec![scale] };
    widths.into_iter().map(|width| Feature::new(0.0, width)).collect()
}

/// A parameter in a few digits, for names: 11.1803, not 11.180339887498949.
pub(crate) fn short(x: f64) -> String {
    // Through six significant digits and back, which drops trailing zeros.
    let rounded: f64 = format!("{x:.5e}").parse().unwrap_or(x);
    if rounded != 0.0 && !(1e-4..1e7).contains(&rounded.abs()) {
        format!("{rounded:e}")
    } else {
        rounded.to_string()
    }
}

/// The spread $\sqrt{2R}$ that the error of the model adds to the noise.
pub(crate) fn spread(r: f64) -> f64 {
    (2.0 * r).sqrt()
}

/// Refuses a scale that is not positive, or whose square would leave the range of numbers.
pub(crate) fn check_scale(name: &'static str, value: f64) -> Result<f64> {
    if (1e-150..=1e150).contains(&value) {
        Ok(value)
    } else {
        Err(Error::parameter(
            name,
            value,
            "a scale must be positive, from 1e-150 to 1e150 (for no noise, use family `none`)",
        ))
    }
}

/// Exactly one of the natural parameter and σ must be given; returns the natural one.
pub(crate) fn one_of(
    family: &'static str,
    natural: (&'static str, Option<f64>),
    sigma: Option<f64>,
    from_sigma: impl Fn(f64) -> f64,
) -> Result<f64> {
    match (natural.1, sigma) {
        (Some(value), None) => Ok(value),
        (None, Some(sigma)) => check_scale("sigma", sigma).map(from_sigma),
        (Some(_), Some(_)) => Err(NoiseError::BothScales { family, parameter: natural.0 }.into()),
        (None, None) => Err(NoiseError::NoScale { family, parameter: natural.0 }.into()),
    }
}
