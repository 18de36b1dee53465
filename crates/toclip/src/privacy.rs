//! Private SGD: the noise that is added to the gradients, and the privacy that it gives.
//!
//! DP-SGD clips the gradient of every sample at $c\sqrt d$ and adds Gaussian noise of standard
//! deviation $\sigma c\sqrt d$ to their sum, $\sigma$ being the *noise multiplier*. A step with
//! [`Privacy`] does this ([`Step::with_privacy`](crate::Step::with_privacy)).
//!
//! In one pass every sample is used once, so the privacy is that of a single Gaussian mechanism:
//! [`delta`], [`epsilon`] and [`noise_multiplier`] are exact for data sets that differ by adding or
//! removing a sample. For several passes over the same data an accountant is needed; these
//! functions do not cover them.

use crate::error::{Error, Result};
use crate::numerics::quadrature::{half_line, panels_from};
use crate::numerics::special::{erfc, erfcx, rounding_of_square};
use serde::{Deserialize, Serialize};
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// The noise multiplier of private SGD: the standard deviation of the noise on the sum of the
/// clipped gradients, divided by their threshold.
///
/// ```
/// use toclip::privacy::{Privacy, epsilon};
/// let privacy = Privacy::new(1.0)?;
/// // One pass at δ = 1e-6.
/// assert!((epsilon(privacy.noise_multiplier(), 1e-6)? - 4.88655).abs() < 1e-5);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Privacy {
    noise_multiplier: f64,
}

impl Privacy {
    /// From the noise multiplier $\sigma$; 0 is clipping without noise.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless $\sigma$ is finite and not negative.
    pub fn new(noise_multiplier: f64) -> Result<Self> {
        if !(noise_multiplier.is_finite() && noise_multiplier >= 0.0) {
            let expected = "give a finite number >= 0";
            return Err(Error::parameter("noise_multiplier", noise_multiplier, expected));
        }
        Ok(Privacy { noise_multiplier })
    }

    /// $\sigma$.
    pub fn noise_multiplier(self) -> f64 {
        self.noise_multiplier
    }
}

/// $\delta(\epsilon) = \Phi\bigl(\tfrac{1}{2\sigma} - \epsilon\sigma\bigr) -
/// e^\epsilon\thinspace\Phi\bigl(-\tfrac{1}{2\sigma} - \epsilon\sigma\bigr)$ of one pass at noise
/// multiplier $\sigma$ (Balle and Wang 2018, theorem 8).
///
/// With $a = \epsilon\sigma - \tfrac{1}{2\sigma}$ this is
/// $$ \delta = \varphi(a) \int_0^\infty e^{-t^2/2 - at}\thinspace (1 - e^{-t/\sigma})\thinspace dt, $$
/// where nothing cancels: the relative error is that of $\varphi(a)$, about $10^{-13}$ at $\delta
/// = 10^{-300}$.
///
/// ```
/// use toclip::privacy::delta;
/// // At ε = 0 it is the total variation distance, 2Φ(1/2σ) − 1.
/// assert!((delta(1.0, 0.0)? - 0.38292492254802624).abs() < 1e-15);
/// assert!((delta(1.0, 1.0)? - 0.12693673750664397).abs() < 1e-15);
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parameter`] for a noise multiplier that is not positive or an $\epsilon$ below zero.
pub fn delta(noise_multiplier: f64, epsilon: f64) -> Result<f64> {
    check_multiplier(noise_multiplier)?;
    check_epsilon(epsilon)?;
    Ok(ln_delta(noise_multiplier, epsilon).exp().min(1.0))
}

/// $\epsilon$ with $\delta(\epsilon) = \delta$ of one pass: the inverse of [`delta`].
///
/// Zero where $\delta$ is at least $\delta(0)$.
///
/// ```
/// use toclip::privacy::{delta, epsilon};
/// let eps = epsilon(2.0, 1e-5)?;
/// assert!((delta(2.0, eps)? / 1e-5 - 1.0).abs() < 1e-12);
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parameter`] for a noise multiplier that is not positive or a $\delta$ outside $(0, 1)$.
pub fn epsilon(noise_multiplier: f64, delta: f64) -> Result<f64> {
    check_multiplier(noise_multiplier)?;
    check_delta(delta)?;
    let target = delta.ln();
    if ln_delta(noise_multiplier, 0.0) <= target {
        return Ok(0.0);
    }
    Ok(falling_root(|eps| ln_delta(noise_multiplier, eps) - target))
}

/// The noise multiplier with which one pass is $(\epsilon, \delta)$-private: the inverse of
/// [`delta`] in $\sigma$.
///
/// ```
/// use toclip::privacy::{delta, noise_multiplier};
/// let sigma = noise_multiplier(1.0, 1e-5)?;
/// assert!((delta(sigma, 1.0)? / 1e-5 - 1.0).abs() < 1e-12);
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parameter`] for an $\epsilon$ below zero or a $\delta$ outside $(0, 1)$.
pub fn noise_multiplier(epsilon: f64, delta: f64) -> Result<f64> {
    check_epsilon(epsilon)?;
    check_delta(delta)?;
    let target = delta.ln();
    Ok(falling_root(|sigma| ln_delta(sigma, epsilon) - target))
}

/// $\ln\delta(\epsilon)$, which does not underflow.
fn ln_delta(sigma: f64, epsilon: f64) -> f64 {
    let half = 0.5 / sigma;
    let (a, b) = (epsilon * sigma - half, epsilon * sigma + half);
    if a == f64::INFINITY {
        return f64::NEG_INFINITY;
    }
    // a²/2 with the rounding of the square put back.
    let square = a * a;
    let exponent = -0.5 * square - 0.5 * rounding_of_square(a);
    if a < -1.0 {
        // Φ(−a) is at least 0.84, and the other term at most a third of it.
        let other = 0.5 * (exponent + erfcx(b * FRAC_1_SQRT_2).ln()).exp();
        return (0.5 * erfc(a * FRAC_1_SQRT_2) - other).ln();
    }
    let points = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0];
    // Where e^{-at} ends the integral before e^{-t²/2} does, and where 1 − e^{-t/σ} bends.
    let scales = [1.0, 1.0 / a.abs().max(1.0), sigma.min(1.0)];
    let points = scales.iter().flat_map(|s| points.map(|p| p * s)).collect();
    let integrand = |t: f64| [-(-t / sigma).exp_m1() * (-t * (a + 0.5 * t)).exp()];
    let [integral] = half_line(integrand, &panels_from(0.0, points));
    exponent + (integral / (2.0 * PI).sqrt()).ln()
}

/// The positive zero of a falling function, by bisection on the logarithm.
fn falling_root(f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (1.0, 1.0);
    while f(high) > 0.0 && high < 1e150 {
        (low, high) = (high, 4.0 * high);
    }
    while f(low) <= 0.0 && low > 1e-150 {
        (low, high) = (0.25 * low, low);
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if f(middle) > 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

fn check_multiplier(sigma: f64) -> Result<()> {
    if sigma > 0.0 && sigma.is_finite() {
        return Ok(());
    }
    Err(Error::parameter("noise_multiplier", sigma, "give a finite number above 0"))
}

fn check_epsilon(epsilon: f64) -> Result<()> {
    if epsilon >= 0.0 && epsilon.is_finite() {
        return Ok(());
    }
    Err(Error::parameter("epsilon", epsilon, "give a finite number >= 0"))
}

fn check_delta(delta: f64) -> Result<()> {
    if delta > 0.0 && delta < 1.0 {
        return Ok(());
    }
    Err(Error::parameter("delta", delta, "give a number between 0 and 1"))
}
