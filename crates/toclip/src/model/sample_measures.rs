//! Loss, error rate, angle and calibration of a classifier on samples.

use super::{Measures, Model, Overlaps};

impl Measures {
    /// Those of samples with the logits $u_k$ of the model, $v_k$ of the teacher, and the probabilities
    /// $\pi_k$ of the label 1: zero or one where labels are known. The three slices have the same
    /// length.
    ///
    /// The error rate is that of the sign of $u_k$ against these labels, and $(Q, P, V)$ are means of
    /// $u_k^2$, $u_kv_k$ and $v_k^2$.
    ///
    /// ```
    /// use toclip::model::{Logistic, Measures};
    /// let (u, known) = ([2.0, -1.0, 0.5, -3.0], [1.0, 1.0, 0.0, 0.0]);
    /// let (at, found) = Measures::of_samples(&Logistic::new(0.0)?, &u, &u, &known);
    /// assert_eq!((found.error_rate, at.q), (Some(0.5), 14.25 / 4.0));
    /// assert!(found.calibration.unwrap() > 0.0);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn of_samples(
        model: &dyn Model,
        u: &[f64],
        v: &[f64],
        probabilities: &[f64],
    ) -> (Overlaps, Measures) {
        let n = u.len() as f64;
        let mean_product =
            |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / n;
        let at = Overlaps::rounded(mean_product(u, u), mean_product(u, v), mean_product(v, v));
        let (mut loss, mut wrong) = (0.0, 0.0);
        for (&u, &p) in u.iter().zip(probabilities) {
            for (y, p) in [(1.0, p), (0.0, 1.0 - p)] {
                if p > 0.0 {
                    loss += p * model.loss(u, y);
                }
            }
            wrong += if u > 0.0 {
                1.0 - p
            } else if u < 0.0 {
                p
            } else {
                0.5
            };
        }
        let measures = Measures {
            loss: loss / n,
            error_rate: Some(wrong / n),
            angle: at.angle(),
            calibration: sample_calibration_slope(u, probabilities),
        };
        (at, measures)
    }
}

/// The relative precision of the slope.
const PRECISION: f64 = 1e-12;

/// $\beta$ of the logistic fit of labels on logits, $\sum_k(\sigma(\beta u_k) - \pi_k)\thinspace u_k = 0$, with
/// $\pi_k$ the probability of the label 1: the [calibration slope](super::calibration_slope) of
/// samples.
///
/// `None` where no finite slope exists: all logits are zero, or their signs separate the labels.
///
/// ```
/// use toclip::model::sample_calibration_slope;
/// let u = [2.0, -1.0, 0.5, -3.0];
/// // Labels that follow σ(u/2).
/// let probabilities = u.map(|u: f64| 1.0 / (1.0 + (-0.5 * u).exp()));
/// assert!((sample_calibration_slope(&u, &probabilities).unwrap() - 0.5).abs() < 1e-10);
/// assert_eq!(sample_calibration_slope(&u, &[1.0, 0.0, 1.0, 0.0]), None);
/// ```
pub fn sample_calibration_slope(u: &[f64], probabilities: &[f64]) -> Option<f64> {
    let samples = || u.iter().zip(probabilities);
    // The limits of the sum for β → ±∞: a finite slope exists if they have opposite signs.
    let high: f64 = samples().map(|(u, p)| u.max(0.0) - p * u).sum();
    let low: f64 = samples().map(|(u, p)| u.min(0.0) - p * u).sum();
    if !(high > 0.0 && low < 0.0) {
        return None;
    }
    let at = |beta: f64| {
        samples().fold((0.0, 0.0), |(sum, slope), (u, p)| {
            let s = (1.0 + (-beta * u).exp()).recip();
            (sum + (s - p) * u, slope + s * (1.0 - s) * u * u)
        })
    };
    // Newton's method within bounds that it narrows; without a bound the slope is doubled.
    let (mut below, mut above) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut beta = 0.0;
    for _ in 0..200 {
        let (sum, slope) = at(beta);
        if sum == 0.0 {
            return Some(beta);
        }
        if sum < 0.0 {
            below = beta;
        } else {
            above = beta;
        }
        let newton = beta - sum / slope;
        let next = if newton > below && newton < above {
            newton
        } else if below.is_finite() && above.is_finite() {
            0.5 * (below + above)
        } else {
            2.0 * beta - f64::signum(sum)
        };
        if (next - beta).abs() <= PRECISION * next.abs() {
            return Some(next);
        }
        beta = next;
    }
    Some(beta)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Logistic, calibration_slope};
    use crate::sim::Purpose;
    use crate::sim::normal::Normals;

    #[test]
    fn many_gaussian_samples_give_the_population() {
        // 200,000 pairs of logits with probabilities as labels: means are known to about 0.3%, here
        // five standard errors and more.
        let (model, n) = (Logistic::new(0.1).unwrap(), 200_000);
        let mut normals = Normals::new(3, 0, Purpose::Covariates);
        let (mut u, mut v, mut p) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..n {
            let (a, b) = (normals.draw(), normals.draw());
            u.push(1.5 * a);
            v.push(2.0 * (0.8 * a + 0.6 * b));
            p.push(0.1 + 0.8 / (1.0 + (-v[v.len() - 1]).exp()));
        }
        let (at, found) = Measures::of_samples(&model, &u, &v, &p);
        let exact = Overlaps::new(2.25, 2.4, 4.0).unwrap();
        assert!((at.q - 2.25).abs() < 0.04 && (at.p - 2.4).abs() < 0.05, "{at:?}");
        assert!((found.loss - model.expected_loss(&exact)).abs() < 0.01);
        let slope = calibration_slope(&model, &exact).unwrap();
        assert!((found.calibration.unwrap() / slope - 1.0).abs() < 0.02, "{found:?} {slope}");
        // Of labels as drawn: a tenth of what is right before is flipped.
        let clean = model.error_rate(&exact).unwrap();
        assert!((found.error_rate.unwrap() - (0.1 + 0.8 * clean)).abs() < 0.005);
    }

    #[test]
    fn slopes_are_found_far_from_one() {
        for scale in [1e-6, 1.0, 1e6] {
            let u: Vec<f64> = [3.0, -2.0, 1.0, -0.5, 0.3].iter().map(|u| u * scale).collect();
            let labels = [1.0, 0.0, 1.0, 1.0, 0.0];
            let beta = sample_calibration_slope(&u, &labels).unwrap();
            let force: f64 = u
                .iter()
                .zip(labels)
                .map(|(u, y)| u * ((1.0 + (-beta * u).exp()).recip() - y))
                .sum();
            assert!(force.abs() < 1e-9 * scale, "{scale} {beta} {force}");
            let flipped = labels.map(|y| 1.0 - y);
            let opposite = sample_calibration_slope(&u, &flipped).unwrap();
            assert!((opposite / beta + 1.0).abs() < 1e-9);
        }
        assert_eq!(sample_calibration_slope(&[0.0, 0.0], &[1.0, 0.0]), None);
        // Separated the right way round, and the wrong way.
        assert_eq!(sample_calibration_slope(&[2.0, -1.0], &[1.0, 0.0]), None);
        assert_eq!(sample_calibration_slope(&[2.0, -1.0], &[0.0, 1.0]), None);
    }
}
