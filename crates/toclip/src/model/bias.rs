//! Where clipped SGD on a generalised linear model ends at small learning rates: the fixed point.
//!
//! By Stein's lemma the mean clipped gradient is $K(a\theta + b\theta^\ast)$, so a fixed point lies on the
//! line of the teacher, at $\kappa\thinspace\theta^\ast$ with $a\kappa + b = 0$. There
//! $$ a\kappa + b = \tfrac1V E\[v\thinspace\psi(r(\kappa v, y))\], $$
//! which does not decrease in $\kappa$ as $\psi$ and $r$ do not decrease in $u$: **there is one fixed
//! point at most**, for every convex loss and every threshold.

use super::{Coefficients, Model, ModelError, Overlaps};
use crate::error::{Error, Result};
use crate::factors::check_threshold;
use serde::Serialize;

/// A state in which the mean clipped gradient vanishes.
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
    let at = |kappa: f64| Overlaps::rounded(kappa * kappa * v, kappa * v, v);
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
