//! Probit regression.

use super::binary::Binary;
use super::link::{PROBIT, error_rate, mean_slope};
use super::logistic::described;
use super::{Coefficients, Label, Model, Overlaps, check_flips};
use crate::error::Result;
use crate::numerics::special::{SQRT_2_OVER_PI, erfc, erfcx, phi, upper_tail};
use rand::{Rng, RngExt};
use serde::Serialize;
use std::f64::consts::{FRAC_1_SQRT_2, LN_2};

/// Probit regression with a share $\rho$ of the labels flipped.
///
/// With $\Phi$ and $\varphi$ the normal distribution function and density,
/// $$ P(y = 1 | v) = \rho + (1 - 2\rho)\thinspace\Phi(v), \qquad \ell = -\ln\Phi(\pm u), \qquad r(u, 0) =
/// \frac{\varphi(u)}{\Phi(-u)}, \quad r(u, 1) = -r(-u, 0). $$
/// A residual grows as $|u|$ where the label is the unlikely one.
///
/// ```
/// use toclip::model::{Model, Overlaps, Probit};
/// let model = Probit::new(0.0)?;
/// let at = Overlaps::new(1.0, 1.0, 1.0)?;
/// // Without flips the teacher is the optimum: a θ + b θ* = 0 there.
/// let open = model.coefficients(&at, f64::INFINITY);
/// assert!((open.a + open.b).abs() < 1e-12);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Probit {
    flips: f64,
}

impl Probit {
    /// With labels flipped with probability $\rho$ = `flips`.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) unless $0 \le \rho \le \tfrac12$.
    pub fn new(flips: f64) -> Result<Self> {
        Ok(Probit { flips: check_flips(flips)? })
    }

    /// $\rho$.
    pub fn flips(&self) -> f64 {
        self.flips
    }

    fn binary(&self) -> Binary<'static, impl Fn(f64) -> (f64, f64)> {
        let residual = |u: f64| {
            let h = hazard(u);
            (h, h * hazard_excess(u, h))
        };
        // The zeros of Φ nearest to the real line are at about -1.9 ± 2.8i.
        Binary { flips: self.flips, link: &PROBIT, residual, pole: 2.0, has_normal_tails: true }
    }
}

/// $\varphi(u)/\Phi(-u)$.
fn hazard(u: f64) -> f64 {
    let x = erfcx(u * FRAC_1_SQRT_2);
    if x.is_finite() { SQRT_2_OVER_PI / x } else { 0.0 }
}

/// $h - u$ for $h = \varphi(u)/\Phi(-u)$, without cancellation where $u$ is large.
fn hazard_excess(u: f64, h: f64) -> f64 {
    if u < 20.0 {
        return h - u;
    }
    let t = (u * u).recip();
    (1.0 - t * (2.0 - t * (10.0 - t * (74.0 - t * 706.0)))) / u
}

/// $u$ with $\varphi(u)/\Phi(-u) = c$.
fn kink(c: f64) -> f64 {
    // h(u) > u, and below -38 it is zero to rounding.
    let (mut low, mut high) = (-38.0, c.min(1e6));
    if hazard(high) < c {
        return f64::INFINITY;
    }
    for _ in 0..70 {
        let middle = 0.5 * (low + high);
        if hazard(middle) < c {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// $-\ln\Phi(-u)$.
fn log_loss(u: f64) -> f64 {
    let x = u * FRAC_1_SQRT_2;
    if u > 5.0 {
        LN_2 + x * x - erfcx(x).ln()
    } else if u < -5.0 {
        -(-0.5 * erfc(-x)).ln_1p()
    } else {
        LN_2 - erfc(x).ln()
    }
}

impl Model for Probit {
    fn describe(&self) -> String {
        described("probit regression", self.flips)
    }

    fn loss(&self, u: f64, y: f64) -> f64 {
        if y > 0.5 { log_loss(-u) } else { log_loss(u) }
    }

    fn residual(&self, u: f64, y: f64) -> f64 {
        if y > 0.5 { -hazard(-u) } else { hazard(u) }
    }

    fn residual_slope(&self, u: f64, y: f64) -> f64 {
        let u = if y > 0.5 { -u } else { u };
        let h = hazard(u);
        h * hazard_excess(u, h)
    }

    fn labels(&self, v: f64) -> Vec<Label> {
        Label::binary(upper_tail(-v), phi(v), self.flips)
    }

    fn sample(&self, v: f64, rng: &mut dyn Rng) -> f64 {
        let p = self.flips + (1.0 - 2.0 * self.flips) * upper_tail(-v);
        f64::from(u8::from(rng.random::<f64>() < p))
    }

    fn coefficients(&self, at: &Overlaps, c: f64) -> Coefficients {
        let kink = if c < f64::INFINITY { kink(c) } else { f64::INFINITY };
        self.binary().coefficients(at, c, kink)
    }

    fn expected_loss(&self, at: &Overlaps) -> f64 {
        self.binary().expected_loss(at, log_loss)
    }

    fn error_rate(&self, at: &Overlaps) -> Option<f64> {
        Some(error_rate(&PROBIT, at))
    }

    fn label_slope(&self, v: f64) -> Option<f64> {
        Some((1.0 - 2.0 * self.flips) * mean_slope(&PROBIT, v))
    }
}
