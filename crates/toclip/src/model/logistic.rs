//! Logistic regression.

use super::binary::Binary;
use super::link::{LOGISTIC, error_rate, mean_slope};
use super::{Coefficients, Label, Model, Overlaps, check_flips};
use crate::error::Result;
use crate::numerics::special::FRAC_1_SQRT_2PI;
use rand::{Rng, RngExt};
use serde::Serialize;
use std::f64::consts::LN_2;

/// Logistic regression with a share $\rho$ of the labels flipped.
///
/// With $\sigma(u) = 1/(1 + e^{-u})$,
/// $$ P(y = 1 | v) = \rho + (1 - 2\rho)\thinspace\sigma(v), \qquad \ell(u, y) = \ln(1 + e^u) - yu, \qquad r = \sigma(u) - y. $$
/// Residuals are below 1, so thresholds of 1 and more clip nothing.
///
/// ```
/// use toclip::model::{Logistic, Model, Overlaps};
/// let model = Logistic::new(0.1)?;
/// let start = Overlaps::new(0.0, 0.0, 9.0)?;
/// assert!((model.expected_loss(&start) - 2.0_f64.ln()).abs() < 1e-15);
/// let at = model.coefficients(&start, 0.4);
/// // Every residual is ±1/2 at the start, and clipped.
/// assert_eq!((at.a, at.m2), (0.0, 0.4 * 0.4));
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Logistic {
    flips: f64,
}

impl Logistic {
    /// With labels flipped with probability $\rho$ = `flips`.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) unless $0 \le \rho \le \tfrac12$.
    pub fn new(flips: f64) -> Result<Self> {
        Ok(Logistic { flips: check_flips(flips)? })
    }

    /// $\rho$.
    pub fn flips(&self) -> f64 {
        self.flips
    }
}

/// $\sigma(x) = 1/(1 + e^{-x})$.
pub(super) fn sigmoid(x: f64) -> f64 {
    (1.0 + (-x).exp()).recip()
}

impl Model for Logistic {
    fn describe(&self) -> String {
        if self.flips > 0.0 {
            format!(
                "logistic regression, {}% of the labels flipped",
                (1e4 * self.flips).round() / 100.0
            )
        } else {
            "logistic regression".into()
        }
    }

    fn loss(&self, u: f64, y: f64) -> f64 {
        u.max(0.0) + (-u.abs()).exp().ln_1p() - y * u
    }

    fn residual(&self, u: f64, y: f64) -> f64 {
        sigmoid(u) - y
    }

    fn residual_slope(&self, u: f64, _y: f64) -> f64 {
        sigmoid(u) * sigmoid(-u)
    }

    fn labels(&self, v: f64) -> Vec<Label> {
        Label::binary(sigmoid(v), sigmoid(v) * sigmoid(-v), self.flips)
    }

    fn sample(&self, v: f64, rng: &mut dyn Rng) -> f64 {
        let p = self.flips + (1.0 - 2.0 * self.flips) * sigmoid(v);
        f64::from(u8::from(rng.random::<f64>() < p))
    }

    fn coefficients(&self, at: &Overlaps, c: f64) -> Coefficients {
        let kink = if c < 1.0 { (c / (1.0 - c)).ln() } else { f64::INFINITY };
        Binary { flips: self.flips }.coefficients(at, c, kink)
    }

    /// In closed form: $\partial_Q E\ln(1 + e^u) = \tfrac12 E\thinspace{\sigma^\prime}(u)$ and $E\thinspace yu = P\thinspace
    /// E\thinspace\partial_v P(1 | v)$.
    fn expected_loss(&self, at: &Overlaps) -> f64 {
        let part = |n: &super::link::Node| {
            n.weight * at.q / ((at.q + n.variance).sqrt() + n.variance.sqrt())
        };
        let softplus = LN_2 + FRAC_1_SQRT_2PI * LOGISTIC.iter().map(part).sum::<f64>();
        softplus - (1.0 - 2.0 * self.flips) * at.p * mean_slope(&LOGISTIC, at.v)
    }

    fn error_rate(&self, at: &Overlaps) -> Option<f64> {
        Some(error_rate(&LOGISTIC, at))
    }

    fn label_slope(&self, v: f64) -> Option<f64> {
        Some((1.0 - 2.0 * self.flips) * mean_slope(&LOGISTIC, v))
    }
}
