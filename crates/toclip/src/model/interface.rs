//! The interface of a generalised linear model.

use super::{Overlaps, quadrature};
use rand::Rng;
use serde::Serialize;
use std::sync::Arc;

/// A model in which a label $y$ is drawn given the teacher's logit $v = \langle x,
/// \theta^\ast\rangle$, and the loss $\ell(u, y)$ depends on the student's logit $u = \langle x,
/// \theta\rangle$.
///
/// The gradient of a sample is its residual $r(u, y) = \partial_u\ell$ times $x$. As $\Vert x\Vert
/// \approx \sqrt d$, clipping the gradient at $c\sqrt d$ is clipping $r$ at $c$.
///
/// A model of your own needs the first six functions; integrals over the logits are then two-fold
/// quadratures, which take milliseconds. Losses must be convex in $u$, so that $r$ does not decrease.
///
/// ```
/// use rand::{Rng, RngExt};
/// use toclip::model::{Label, Model, Overlaps};
///
/// /// Squared loss on labels 0 and 1, drawn with probability σ(v) of the teacher's logit.
/// #[derive(Debug)]
/// struct Brier;
///
/// impl Model for Brier {
///     fn describe(&self) -> String {
///         "squared loss on labels".into()
///     }
///     fn loss(&self, u: f64, y: f64) -> f64 {
///         0.5 * (u - (y - 0.5)).powi(2)
///     }
///     fn residual(&self, u: f64, y: f64) -> f64 {
///         u - (y - 0.5)
///     }
///     fn residual_slope(&self, _u: f64, _y: f64) -> f64 {
///         1.0
///     }
///     fn labels(&self, v: f64) -> Vec<Label> {
///         let p = 1.0 / (1.0 + (-v).exp());
///         Label::binary(p, p * (1.0 - p), 0.1) // a tenth of the labels flipped
///     }
///     fn sample(&self, v: f64, rng: &mut dyn Rng) -> f64 {
///         let p = 0.1 + 0.8 / (1.0 + (-v).exp());
///         f64::from(u8::from(rng.random::<f64>() < p))
///     }
/// }
///
/// let at = Overlaps::new(0.5, 0.3, 2.0)?;
/// let open = Brier.coefficients(&at, f64::INFINITY);
/// assert!((open.a - 1.0).abs() < 1e-12 && open.b < 0.0);
/// assert!(Brier.coefficients(&at, 0.5).a < 1.0);
/// # Ok::<(), toclip::Error>(())
/// ```
pub trait Model: std::fmt::Debug + Send + Sync {
    /// The model in a few words, for messages and legends.
    fn describe(&self) -> String;

    /// $\ell(u, y)$.
    fn loss(&self, u: f64, y: f64) -> f64;

    /// $r(u, y) = \partial_u\ell(u, y)$, which does not decrease in $u$.
    fn residual(&self, u: f64, y: f64) -> f64;

    /// $\partial_u r(u, y)$.
    fn residual_slope(&self, u: f64, y: f64) -> f64;

    /// Every label with $P(y | v)$ and its derivative in $v$, flips included; none for labels that
    /// are not discrete, where [`coefficients`](Self::coefficients) and
    /// [`expected_loss`](Self::expected_loss) have to be provided.
    fn labels(&self, v: f64) -> Vec<Label>;

    /// One label given $v$, flips included.
    fn sample(&self, v: f64, rng: &mut dyn Rng) -> f64;

    /// $a$, $b$ and $m^{(2)}$ for residuals clipped at $0 < c \le \infty$.
    fn coefficients(&self, at: &Overlaps, c: f64) -> Coefficients {
        quadrature::coefficients(self, at, c)
    }

    /// $E\thinspace\ell(u, y)$ over labels as drawn: for classification the cross-entropy, in nats.
    fn expected_loss(&self, at: &Overlaps) -> f64 {
        quadrature::expected_loss(self, at)
    }

    /// The probability that the sign of $u$ predicts the wrong class, against labels before they are
    /// flipped; `None`, the default, where labels are not classes.
    fn error_rate(&self, _at: &Overlaps) -> Option<f64> {
        None
    }

    /// $\partial_P E\[uy\] = E\thinspace\partial_v P(y = 1 | v)$ for labels 0 and 1 as drawn; `None`,
    /// the default, for others. The [calibration](super::calibration_slope) needs it.
    fn label_slope(&self, _v: f64) -> Option<f64> {
        None
    }
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn describe(&self) -> String {
        (**self).describe()
    }
    fn loss(&self, u: f64, y: f64) -> f64 {
        (**self).loss(u, y)
    }
    fn residual(&self, u: f64, y: f64) -> f64 {
        (**self).residual(u, y)
    }
    fn residual_slope(&self, u: f64, y: f64) -> f64 {
        (**self).residual_slope(u, y)
    }
    fn labels(&self, v: f64) -> Vec<Label> {
        (**self).labels(v)
    }
    fn sample(&self, v: f64, rng: &mut dyn Rng) -> f64 {
        (**self).sample(v, rng)
    }
    fn coefficients(&self, at: &Overlaps, c: f64) -> Coefficients {
        (**self).coefficients(at, c)
    }
    fn expected_loss(&self, at: &Overlaps) -> f64 {
        (**self).expected_loss(at)
    }
    fn error_rate(&self, at: &Overlaps) -> Option<f64> {
        (**self).error_rate(at)
    }
    fn label_slope(&self, v: f64) -> Option<f64> {
        (**self).label_slope(v)
    }
}

/// A label and its probability given $v$.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Label {
    /// $y$.
    pub y: f64,
    /// $P(y | v)$.
    pub probability: f64,
    /// $\partial_v P(y | v)$.
    pub slope: f64,
}

impl Label {
    /// The labels 0 and 1. Label 1 has this probability and derivative before a share $\rho$ = `flips`
    /// of the labels is flipped: $P(1 | v) = \rho + (1 - 2\rho)\thinspace p$.
    ///
    /// ```
    /// use toclip::model::Label;
    /// let [no, yes] = Label::binary(0.8, 0.16, 0.25)[..] else { panic!() };
    /// assert!((yes.probability - 0.65).abs() < 1e-15 && (no.probability - 0.35).abs() < 1e-15);
    /// assert_eq!((yes.slope, no.slope), (0.08, -0.08));
    /// ```
    pub fn binary(probability: f64, slope: f64, flips: f64) -> Vec<Label> {
        let (kept, p) = (1.0 - 2.0 * flips, flips + (1.0 - 2.0 * flips) * probability);
        vec![
            Label { y: 0.0, probability: 1.0 - p, slope: -kept * slope },
            Label { y: 1.0, probability: p, slope: kept * slope },
        ]
    }
}

/// $a$, $b$ and $m^{(2)}$: the mean and the noise of the clipped gradient of a model.
///
/// With $\psi$ the clip at $c$ and $g(u, v) = E\[\psi(r(u, y)) | u, v\]$, Stein's lemma turns the mean
/// of the clipped gradient into two numbers, and its variance into a third:
/// $$ E\[\psi(r)\thinspace x\] = K(a\thinspace\theta + b\thinspace\theta^\ast), \qquad a = E\thinspace\partial_u g = E\[\partial_u
/// r;\thinspace|r| \le c\], \qquad b = E\thinspace\partial_v g = E\[\psi(r)\thinspace\partial_v\ln P(y | v)\], \qquad
/// m^{(2)} = E\thinspace\psi(r)^2. $$
/// In least squares $a = -b = \mu$.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Coefficients {
    /// $a$, the pull towards zero.
    pub a: f64,
    /// $b$, the pull along the teacher; negative where it is towards it.
    pub b: f64,
    /// $m^{(2)}$, the strength of the noise.
    pub m2: f64,
}
