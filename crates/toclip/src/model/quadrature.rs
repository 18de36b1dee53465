//! Integrals over both logits for models with discrete labels and no closed forms.

use super::{Coefficients, Model, Overlaps};
use crate::numerics::quadrature::{Values, interval};
use crate::numerics::special::phi;

/// Normal variables are integrated up to here: the mass beyond is below $2\times10^{-17}$.
pub(super) const REACH: f64 = 8.5;

/// Panels of the integral over one logit, before they are halved where that is needed.
const PANELS: u32 = 8;

/// $a$, $b$, $m^{(2)}$ by their definition.
pub(super) fn coefficients<M: Model + ?Sized>(model: &M, at: &Overlaps, c: f64) -> Coefficients {
    let [a, b, m2] = integrate(model, at, Some(c), |u, v| {
        let mut sum = [0.0; 3];
        for label in model.labels(v) {
            let r = model.residual(u, label.y);
            let slope = if r.abs() <= c { model.residual_slope(u, label.y) } else { 0.0 };
            let r = r.clamp(-c, c);
            sum[0] += label.probability * slope;
            sum[1] += label.slope * r;
            sum[2] += label.probability * r * r;
        }
        sum
    });
    Coefficients { a, b, m2 }
}

/// $E\thinspace\ell(u, y)$ by its definition.
pub(super) fn expected_loss<M: Model + ?Sized>(model: &M, at: &Overlaps) -> f64 {
    let [loss] = integrate(model, at, None, |u, v| {
        [model.labels(v).iter().map(|l| l.probability * model.loss(u, l.y)).sum()]
    });
    loss
}

/// $E f(u, v)$, split where a residual reaches $\pm c$: given $u$ the integrand is smooth in $v$.
fn integrate<M: Model + ?Sized, const N: usize>(
    model: &M,
    at: &Overlaps,
    c: Option<f64>,
    f: impl Fn(f64, f64) -> Values<N>,
) -> Values<N> {
    let (root, spread) = (at.q.sqrt(), at.teacher_given_model().sqrt());
    let shift = if root > 0.0 { at.p / root } else { 0.0 };
    let given = |g: f64| over_normal(&[], |z| f(root * g, shift * g + spread * z), spread > 0.0);
    let kinks: Vec<f64> = match c {
        Some(c) if c.is_finite() && root > 0.0 => {
            kinks(model, at, c).into_iter().map(|u| u / root).collect()
        }
        _ => Vec::new(),
    };
    over_normal(&kinks, given, root > 0.0)
}

/// $E f(z)$ for a standard normal $z$, or $f(0)$ for a variable that is constant.
fn over_normal<const N: usize>(
    kinks: &[f64],
    f: impl Fn(f64) -> Values<N>,
    varies: bool,
) -> Values<N> {
    if !varies {
        return f(0.0);
    }
    let width = 2.0 * REACH / f64::from(PANELS);
    let mut edges: Vec<f64> = (0..=PANELS).map(|i| -REACH + width * f64::from(i)).collect();
    edges.extend(kinks.iter().copied().filter(|x| x.abs() < REACH));
    edges.sort_by(f64::total_cmp);
    edges.dedup();
    interval(|z| f(z).map(|x| x * phi(z)), &edges)
}

/// Where $|r(u, y)| = c$ for one of the labels that occur.
fn kinks<M: Model + ?Sized>(model: &M, at: &Overlaps, c: f64) -> Vec<f64> {
    let (far, spread) = (REACH * at.q.sqrt(), at.v.sqrt());
    let mut labels: Vec<f64> = (-4..=4)
        .flat_map(|i| model.labels(2.0 * f64::from(i) * spread))
        .map(|label| label.y)
        .collect();
    labels.sort_by(f64::total_cmp);
    labels.dedup();
    let levels = labels.iter().flat_map(|&y| [(y, -c), (y, c)]);
    levels.filter_map(|(y, level)| crossing(|u| model.residual(u, y) - level, far)).collect()
}

/// Where a function that does not decrease passes zero in $(-\text{far}, \text{far})$.
fn crossing(f: impl Fn(f64) -> f64, far: f64) -> Option<f64> {
    let (mut low, mut high) = (-far, far);
    if !(f(low) < 0.0 && f(high) > 0.0) {
        return None;
    }
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if f(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(0.5 * (low + high))
}
