//! When does clipping help a generalised linear model?
//!
//! In every mode the part along the teacher and the energy across it, $\omega = q - p^2/\tau$, obey
//! $$ \dot p = -\eta\lambda(ap + b\tau), \qquad \dot\omega = -2\eta\lambda a\thinspace\omega +
//! \tfrac{\eta^2}d\lambda n\thinspace m^{(2)}. $$
//! In the squared tangent $T = \omega\tau/p^2$ of the angle to the teacher $a$ cancels:
//! $$ \dot T = -2\eta|b|\thinspace\lambda\frac\tau p\thinspace T + \eta^2m^{(2)}\thinspace\frac{\lambda n\tau}{d\thinspace p^2}. $$
//! So at equal $\eta|b|$, which is the speed of turning, clipping divides the noise by
//! $\mathrm{CCC} = \frac{b_c^2/m^{(2)}_c}{b_\infty^2/m^{(2)}_\infty}$: **at a given state, the angle of every mode falls
//! faster with the threshold $c$ than at any learning rate without one exactly where CCC > 1**. That is
//! a statement about directions, which the bias of the norm does not touch.

use super::{Model, ModelError, Overlaps};
use crate::error::{Error, Result};
use crate::factors::check_threshold;
use crate::numerics::maximise::{log_grid, maximise_on};
use serde::Serialize;

/// $\mathrm{CCC} = \frac{b_c^2/m^{(2)}_c}{b_\infty^2/m^{(2)}_\infty}$ of the direction at $(Q, P, V)$: how much less
/// noise clipping leaves at equal speed.
///
/// In least squares, where $b = -\mu$, it is the CCC $= \mu^2/\nu$ of
/// [`Factors::ccc`](crate::Factors::ccc). From a start at zero every logistic residual is $\pm\frac12$, so
/// that CCC = 1 there for every threshold: clipping only lowers the learning rate.
///
/// ```
/// use toclip::model::{Logistic, Overlaps, ccc};
/// let start = Overlaps::new(0.0, 0.0, 9.0)?;
/// assert!((ccc(&Logistic::new(0.2)?, &start, 0.3)? - 1.0).abs() < 1e-12);
/// // Later, with flipped labels, large residuals are mostly wrong labels.
/// let later = Overlaps::new(4.0, 5.4, 9.0)?;
/// assert!(ccc(&Logistic::new(0.2)?, &later, 0.3)? > 1.0);
/// assert!(ccc(&Logistic::new(0.0)?, &later, 0.3)? < 1.0);
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parameter`] for a threshold that is not positive; [`Error::InfiniteVariance`] where
/// residuals have infinite variance without clipping; [`Error::Model`] where $b = 0$ and the labels
/// say nothing about the teacher.
pub fn ccc(model: &dyn Model, at: &Overlaps, c: f64) -> Result<f64> {
    check_threshold(c)?;
    Ok(signal(model, at, c) / unclipped(model, at)?)
}

/// The threshold with the largest [`ccc`], and its value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DirectionThreshold {
    /// $c$; infinite where it is best not to clip.
    pub c: f64,
    /// CCC at $c$; one where it is best not to clip.
    pub ccc: f64,
}

/// $\arg\max_c\mathrm{CCC}$ over $10^{-4} \le c/\sqrt{m^{(2)}_\infty} \le \infty$.
///
/// ```
/// use toclip::model::{Logistic, Overlaps, best_threshold};
/// let at = Overlaps::new(4.0, 5.4, 9.0)?;
/// assert_eq!(best_threshold(&Logistic::new(0.0)?, &at)?.c, f64::INFINITY); // do not clip
/// assert!(best_threshold(&Logistic::new(0.2)?, &at)?.c < 0.6);
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// # Errors
/// As [`ccc`].
pub fn best_threshold(model: &dyn Model, at: &Overlaps) -> Result<DirectionThreshold> {
    let open = unclipped(model, at)?;
    let size = model.coefficients(at, f64::INFINITY).m2.sqrt();
    let grid = log_grid(1e-4 * size, 100.0 * size, 8.0);
    let (c, ccc) = maximise_on(&grid, |c| signal(model, at, c) / open);
    // Not clipping wins ties.
    if ccc > 1.0 + 1e-9 {
        Ok(DirectionThreshold { c, ccc })
    } else {
        Ok(DirectionThreshold { c: f64::INFINITY, ccc: 1.0 })
    }
}

/// $b^2/m^{(2)}$.
fn signal(model: &dyn Model, at: &Overlaps, c: f64) -> f64 {
    let x = model.coefficients(at, c);
    x.b * x.b / x.m2
}

fn unclipped(model: &dyn Model, at: &Overlaps) -> Result<f64> {
    let open = model.coefficients(at, f64::INFINITY);
    if open.m2 == f64::INFINITY {
        return Err(Error::InfiniteVariance);
    }
    if open.b == 0.0 || !(open.m2 > 0.0) {
        return Err(Error::Model(ModelError::NoInformation));
    }
    Ok(open.b * open.b / open.m2)
}
