//! Loss, error rate, angle and calibration of a classifier.

use super::link::{LOGISTIC, mean_slope};
use super::{Model, Overlaps};
use serde::Serialize;

/// Loss, error rate, angle and calibration at $(Q, P, V)$.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measures {
    /// $E\thinspace\ell(u, y)$ over labels as drawn, flips included: the cross-entropy, in nats.
    pub loss: f64,
    /// The error rate against labels before they are flipped; `None` where labels are not classes.
    pub error_rate: Option<f64>,
    /// The angle between $\theta$ and $\theta^\ast$ in the metric of $K$, in radians.
    pub angle: f64,
    /// The [calibration slope](calibration_slope); `None` where it does not exist.
    pub calibration: Option<f64>,
}

impl Measures {
    /// Those of a model.
    ///
    /// ```
    /// use toclip::model::{Logistic, Measures, Overlaps};
    /// let model = Logistic::new(0.0)?;
    /// let start = Measures::new(&model, &Overlaps::new(0.0, 0.0, 9.0)?);
    /// assert_eq!((start.error_rate, start.calibration), (Some(0.5), None));
    /// // The teacher itself: calibrated, and still wrong now and then.
    /// let best = Measures::new(&model, &Overlaps::new(9.0, 9.0, 9.0)?);
    /// assert!((best.calibration.unwrap() - 1.0).abs() < 1e-9 && best.angle < 1e-7);
    /// assert!(best.error_rate.unwrap() > 0.1 && best.loss < start.loss);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn new(model: &dyn Model, at: &Overlaps) -> Self {
        Measures {
            loss: model.expected_loss(at),
            error_rate: model.error_rate(at),
            angle: at.angle(),
            calibration: calibration_slope(model, at),
        }
    }
}

/// $\beta$ of the population logistic fit of $y$ on $u$: $E\[(\sigma(\beta u) - y)\thinspace u\] = 0$.
///
/// Below one the logits are too large for the labels as drawn, above one too small. By Stein's
/// lemma the condition is
/// $$ \beta Q\thinspace E\thinspace{\sigma^\prime}(\beta u) = P\thinspace E\thinspace\partial_v P(y = 1 | v), $$
/// whose left side grows with $\beta$. `None` for labels other than 0 and 1, and for $Q = 0$.
///
/// ```
/// use toclip::model::{Logistic, Overlaps, calibration_slope};
/// let model = Logistic::new(0.0)?;
/// let twice = Overlaps::along_teacher(2.0, 4.0);
/// assert!((calibration_slope(&model, &twice).unwrap() - 0.5).abs() < 1e-9);
/// # Ok::<(), toclip::Error>(())
/// ```
pub fn calibration_slope(model: &dyn Model, at: &Overlaps) -> Option<f64> {
    let target = at.p * model.label_slope(at.v)?;
    if !(at.q > 0.0) {
        return None;
    }
    if target == 0.0 {
        return Some(0.0);
    }
    // In units of the logit's deviation, b = β √Q: b √Q E σ'(b z) = |target|, bounded by √(Q/2π).
    let goal = target.abs() / at.q.sqrt();
    let side = |b: f64| b * mean_slope(&LOGISTIC, b * b);
    let (mut low, mut high) = (0.0, 1.0);
    while side(high) < goal && high < 1e150 {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if side(middle) < goal {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some((0.5 * (low + high)).copysign(target) / at.q.sqrt())
}
