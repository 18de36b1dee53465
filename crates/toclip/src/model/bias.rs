//! Where clipped SGD on a generalised linear model ends: the fixed point, and the noise around it.
//!
//! By Stein's lemma the mean clipped gradient is $K(a\theta + b\theta^\ast)$, so a fixed point lies on the
//! line of the teacher, at $\kappa\thinspace\theta^\ast$ with $a\kappa + b = 0$. Along $\theta =
//! \kappa\theta^\ast + $ noise of variance $w$ across,
//! $$ a\kappa + b = \tfrac1V E\[v\thinspace\psi(r(\kappa v + \sqrt w\thinspace z, y))\], $$
//! which does not decrease in $\kappa$ as $\psi$ and $r$ do not decrease in $u$: **there is one fixed
//! point at most**, for every convex loss and every threshold. In the stationary state of the ODE all
//! modes have $p = \kappa\tau$ and $q = \kappa^2\tau + \tfrac{\eta\thinspace m^{(2)}}{2ad}\thinspace n$, and so, whatever
//! the spectrum,
//! $$ P = \kappa V, \qquad Q = \kappa^2V + w, \qquad w = \frac{\eta\thinspace m^{(2)}}{2a}, \qquad a\kappa + b = 0. $$

use super::{Coefficients, Model, ModelError, Overlaps};
use crate::error::{Error, Result};
use crate::factors::check_threshold;
use crate::numerics::maximise::{log_grid, maximise_on};
use serde::Serialize;

/// A state in which the mean clipped gradient vanishes, or in which the ODE is stationary.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Stationary {
    /// $\kappa$, the length along the teacher in units of it.
    pub kappa: f64,
    /// $(Q, P, V)$.
    pub overlaps: Overlaps,
    /// $a$, $b$ and $m^{(2)}$ there.
    pub coefficients: Coefficients,
}

/// The largest $\kappa\sqrt V$ of a fixed point: beyond it residuals no longer change sign.
const LONGEST: f64 = 1e8;

/// $\kappa\thinspace\theta^\ast$, where the mean clipped gradient is zero: what small learning rates converge
/// to.
///
/// Its direction is the teacher's; $\kappa = 1$ without clipping and flips, and not otherwise. Flipped
/// labels make $\kappa$ smaller, clipping makes it larger.
///
/// ```
/// use toclip::model::{Logistic, fixed_point};
/// let kappa = |flips, c| Ok::<_, toclip::Error>(fixed_point(&Logistic::new(flips)?, 9.0, c)?.kappa);
/// assert!((kappa(0.0, f64::INFINITY)? - 1.0).abs() < 1e-10);
/// assert!(kappa(0.1, f64::INFINITY)? < 0.6);
/// assert!(kappa(0.0, 0.4)? > 1.2);
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parameter`] for a threshold that is not positive or a $V$ that is not positive and finite;
/// [`Error::Model`] if there is no fixed point.
pub fn fixed_point(model: &dyn Model, v: f64, c: f64) -> Result<Stationary> {
    check_threshold(c)?;
    check_teacher(v)?;
    along(model, v, c, 0.0)
}

/// The stationary state at a constant learning rate $\eta$: the fixed point and the noise around it;
/// `None` where SGD diverges.
///
/// The noise moves $\kappa$ as well, since the coefficients depend on all of $Q$.
///
/// ```
/// use toclip::model::{Logistic, Measures, noise_floor};
/// let model = Logistic::new(0.0)?;
/// let loss = |eta| -> toclip::Result<f64> {
///     let end = noise_floor(&model, 9.0, f64::INFINITY, eta)?;
///     Ok(end.map_or(f64::INFINITY, |end| Measures::new(&model, &end.overlaps).loss))
/// };
/// assert!(loss(0.1)? < loss(1.0)? && loss(1.0)? < loss(10.0)?);
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// # Errors
/// As [`fixed_point`], and for a rate that is not positive and finite.
pub fn noise_floor(model: &dyn Model, v: f64, c: f64, eta: f64) -> Result<Option<Stationary>> {
    if !(eta > 0.0 && eta.is_finite()) {
        return Err(Error::parameter("eta", eta, "must be positive and finite"));
    }
    let still = fixed_point(model, v, c)?;
    let Coefficients { a, m2, .. } = still.coefficients;
    let rate = |w: f64| along(model, v, c, w).map(|at| rate_of(&at, w));
    // From well below the linear estimate upwards, to the first state that the rate sustains.
    let mut low = 0.0;
    let mut high = (0.01 * eta * m2 / (2.0 * a)).clamp(1e-12, 1e3);
    if !(rate(high)? < eta) {
        high = 1e-300_f64.max(1e-6 * high);
    }
    while rate(high)? < eta {
        (low, high) = (high, 1.25 * high);
        if high > MOST_NOISE {
            return Ok(None);
        }
    }
    for _ in 0..90 {
        let middle = 0.5 * (low + high);
        if rate(middle)? < eta {
            low = middle;
        } else {
            high = middle;
        }
    }
    along(model, v, c, 0.5 * (low + high)).map(Some)
}

/// The largest variance across the teacher that counts as stationary.
const MOST_NOISE: f64 = 1e12;

/// $\sup_w 2aw/m^{(2)}$: the largest learning rate with a stationary state; infinite where every rate
/// has one.
///
/// **Logistic regression has no largest rate**, clipped or not: residuals are bounded, and for large
/// $w$ the pull $a$ falls only as $w^{-1/2}$, so that $\eta(w)$ grows as $\sqrt w$. The angle to the teacher
/// then tends to one that does not depend on the rate, $\cos\phi = \sqrt{2\pi V}\thinspace E\thinspace\partial_v P(y = 1 | v)$. In
/// least squares the largest rate is the maximum of $2\mu/\nu$, which is 2 without clipping.
///
/// ```
/// use std::sync::Arc;
/// use toclip::model::{Huber, Logistic, largest_stable_rate};
/// use toclip::noise::Gaussian;
/// let open = f64::INFINITY;
/// assert_eq!(largest_stable_rate(&Logistic::new(0.0)?, 4.0, open)?, f64::INFINITY);
/// let squares = Huber::new(Arc::new(Gaussian::new(0.5)?), f64::INFINITY)?;
/// assert!((largest_stable_rate(&squares, 4.0, open)? - 2.0).abs() < 1e-6);
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// # Errors
/// As [`fixed_point`].
pub fn largest_stable_rate(model: &dyn Model, v: f64, c: f64) -> Result<f64> {
    fixed_point(model, v, c)?;
    let rate = |w: f64| along(model, v, c, w).map_or(f64::NEG_INFINITY, |at| rate_of(&at, w));
    let rate = |w: f64| Some(rate(w)).filter(|r| r.is_finite()).unwrap_or(f64::NEG_INFINITY);
    let last = 1e10;
    // The power of w with which the rate still grows at the end.
    let growth = (rate(last) / rate(0.01 * last)).log10() / 2.0;
    if growth > 0.1 {
        return Ok(f64::INFINITY);
    }
    let (_, largest) = maximise_on(&log_grid(1e-6, last, 4.0), rate);
    Ok(largest)
}

/// $\eta = 2aw/m^{(2)}$, the rate whose noise floor is $w$.
fn rate_of(at: &Stationary, w: f64) -> f64 {
    2.0 * at.coefficients.a * w / at.coefficients.m2
}

/// $\kappa$ with $a\kappa + b = 0$ where the noise across has variance $w$.
fn along(model: &dyn Model, v: f64, c: f64, w: f64) -> Result<Stationary> {
    let at = |kappa: f64| Overlaps::rounded(kappa * kappa * v + w, kappa * v, v);
    let force = |kappa: f64| {
        let Coefficients { a, b, .. } = model.coefficients(&at(kappa), c);
        a * kappa + b
    };
    let found = |kappa: f64| {
        let overlaps = at(kappa);
        Stationary { kappa, overlaps, coefficients: model.coefficients(&overlaps, c) }
    };
    let here = force(0.0);
    if here == 0.0 {
        return Ok(found(0.0));
    }
    // Upwards where the teacher pulls, else downwards.
    let sign = if here < 0.0 { 1.0 } else { -1.0 };
    let (mut low, mut high) = (0.0, 1.0);
    while !(sign * force(sign * high) >= 0.0) {
        (low, high) = (high, 2.0 * high);
        if high * v.sqrt() > LONGEST {
            let model = model.describe();
            return Err(Error::Model(ModelError::NoFixedPoint { model, c }));
        }
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if middle == low || middle == high {
            break;
        }
        if sign * force(sign * middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(found(sign * 0.5 * (low + high)))
}

pub(super) fn check_teacher(v: f64) -> Result<()> {
    if v > 0.0 && v.is_finite() {
        return Ok(());
    }
    Err(Error::parameter("V", v, "the teacher's logit must have a positive and finite variance"))
}
