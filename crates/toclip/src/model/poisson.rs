//! Poisson regression.

use super::quadrature::REACH;
use super::{Coefficients, Label, Model, Overlaps, counts};
use crate::numerics::quadrature::interval;
use crate::numerics::special::{GAUSS_LEGENDRE_8, GAUSS_LEGENDRE_16, normal_mass, phi, upper_tail};
use rand::Rng;
use rand_distr::{Distribution, Poisson as Counts};
use serde::Serialize;

/// Poisson regression: counts of mean $e^v$.
///
/// $$ P(y | v) = \frac{e^{yv - e^v}}{y!}, \qquad \ell(u, y) = e^u - yu, \qquad r = e^u - y. $$
/// The loss is the negative log-likelihood up to $\ln y!$, which does not depend on $\theta$.
///
/// ```
/// use toclip::model::{Model, Overlaps, Poisson};
/// let at = Overlaps::new(0.3, 0.2, 0.5)?;
/// let open = Poisson.coefficients(&at, f64::INFINITY);
/// assert!((open.a - 0.15_f64.exp()).abs() < 1e-15);
/// assert!((open.b + 0.25_f64.exp()).abs() < 1e-15);
/// assert!(Poisson.coefficients(&at, 1.0).m2 < 1.0);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Poisson;

/// Means beyond this are not listed label by label.
const LARGEST_MEAN: f64 = 1e7;

impl Model for Poisson {
    fn describe(&self) -> String {
        "Poisson regression".into()
    }

    fn loss(&self, u: f64, y: f64) -> f64 {
        u.exp() - y * u
    }

    fn residual(&self, u: f64, y: f64) -> f64 {
        u.exp() - y
    }

    fn residual_slope(&self, u: f64, _y: f64) -> f64 {
        u.exp()
    }

    fn labels(&self, v: f64) -> Vec<Label> {
        counts::every(v.min(LARGEST_MEAN.ln()), counts::NEGLIGIBLE)
    }

    fn sample(&self, v: f64, rng: &mut dyn Rng) -> f64 {
        // A mean that is NaN or too large has no sample: the residual is then NaN.
        Counts::new(v.exp()).map_or(f64::NAN, |counts| counts.sample(rng))
    }

    /// In closed form without clipping. Otherwise an integral over $v$ and a sum over labels; given
    /// both, $e^u$ is log-normal and the rest has a closed form.
    fn coefficients(&self, at: &Overlaps, c: f64) -> Coefficients {
        let Overlaps { q, p, v } = *at;
        if c == f64::INFINITY {
            let cross = (0.5 * (q + v) + p).exp();
            let m2 = (2.0 * q).exp() - 2.0 * cross + (2.0 * v).exp() + (0.5 * v).exp();
            return Coefficients { a: (0.5 * q).exp(), b: -(0.5 * v).exp(), m2 };
        }
        let (root, spread) = (v.sqrt(), at.model_given_teacher().sqrt());
        let shift = if root > 0.0 { p / root } else { 0.0 };
        if spread * spread <= ALIGNED * q && shift != 0.0 {
            let [a, b, m2] = counts::aligned(p / v, root, c);
            return Coefficients { a, b, m2 };
        }
        let given = |g: f64| given_teacher((root * g, shift * g, spread), c, counts::NEGLIGIBLE);
        let [a, b, m2] = if root > 0.0 {
            // Labels are as large as e^v, which moves the mass of a up.
            let (low, high) = (-REACH, REACH.min(7.5 + root));
            let width = (high - low) / f64::from(PANELS);
            let edges: Vec<f64> = (0..=PANELS).map(|i| low + width * f64::from(i)).collect();
            interval(|g| given(g).map(|x| x * phi(g)), &edges)
        } else {
            given(0.0)
        };
        Coefficients { a, b, m2 }
    }

    /// By the trapezoidal rule, whose error falls to about its square with every halving.
    fn approximate_coefficients(&self, at: &Overlaps, c: f64) -> Coefficients {
        let (root, spread) = (at.v.sqrt(), at.model_given_teacher().sqrt());
        let shift = if root > 0.0 { at.p / root } else { 0.0 };
        let aligned = spread * spread <= ALIGNED * at.q && shift != 0.0;
        if c == f64::INFINITY || root == 0.0 || aligned {
            return self.coefficients(at, c);
        }
        // Beyond these standard deviations there is 4e-8; labels are as large as e^v.
        let (low, high) = (-5.5, 5.5 + root.min(3.0));
        let sum = |first: f64, spacing: f64| {
            let points = ((high - first) / spacing).floor() as u32;
            (0..=points).fold([0.0; 3], |sum, i| {
                let g = first + spacing * f64::from(i);
                let x = given_teacher((root * g, shift * g, spread), c, 1e-10);
                std::array::from_fn(|k| sum[k] + phi(g) * x[k])
            })
        };
        let mut spacing = 0.5 / root.max(1.0);
        let mut total = sum(low, spacing);
        let mut integral = total.map(|x| spacing * x);
        for _ in 0..HALVINGS {
            let between = sum(low + 0.5 * spacing, spacing);
            spacing *= 0.5;
            total = std::array::from_fn(|k| total[k] + between[k]);
            let finer = total.map(|x| spacing * x);
            let close = (0..3).all(|k| (finer[k] - integral[k]).abs() <= 1e-4 * finer[k].abs());
            integral = finer;
            if close {
                break;
            }
        }
        let [a, b, m2] = integral;
        Coefficients { a, b, m2 }
    }

    fn expected_loss(&self, at: &Overlaps) -> f64 {
        (0.5 * at.q).exp() - at.p * (0.5 * at.v).exp()
    }
}

/// A conditional variance of $u$ given $v$ below this share of $Q$ is rounding.
const ALIGNED: f64 = 1e-12;

/// Panels of the integral over $v$, before they are halved where that is needed.
const PANELS: u32 = 6;

/// The most halvings of the trapezoidal rule.
const HALVINGS: u32 = 7;

/// $a$, $b$ and $m^{(2)}$ given $v$, where $u \sim N(m, s^2)$, from counts more likely than
/// `negligible`.
fn given_teacher((v, mean, spread): (f64, f64, f64), c: f64, negligible: f64) -> [f64; 3] {
    let mut sum = [0.0; 3];
    for label in counts::spaced(v, blur(v, spread, c), negligible) {
        let x = clipped_count(label.y, mean, spread, c);
        sum[0] += label.probability * x[0];
        sum[1] += label.slope * x[1];
        sum[2] += label.probability * x[2];
    }
    sum
}

/// Over how many counts around $e^v$ the mean clipped residual varies, where $u$ has this spread given
/// $v$: its kinks are where $e^u = y \pm c$.
fn blur(v: f64, spread: f64, c: f64) -> f64 {
    let mean = v.exp();
    if 4.0 * (c + 1.0) > mean {
        // Kinks where e^u is small, and sharp.
        0.0
    } else if spread == 0.0 {
        // u = 0: no kink is near.
        f64::INFINITY
    } else {
        0.25 * spread * mean
    }
}

/// $E\[e^u;\thinspace|r| \le c\]$, $E\psi(r)$ and $E\psi(r)^2$ for $r = e^u - y$ and $u \sim N(m, s^2)$.
fn clipped_count(y: f64, m: f64, s: f64, c: f64) -> [f64; 3] {
    if s == 0.0 {
        let r = m.exp() - y;
        let slope = if r.abs() <= c { m.exp() } else { 0.0 };
        let r = r.clamp(-c, c);
        return [slope, r, r * r];
    }
    let low = if y > c { ((y - c).ln() - m) / s } else { f64::NEG_INFINITY };
    let high = ((y + c).ln() - m) / s;
    let (below, above) = (upper_tail(-low), upper_tail(high));
    let (outside, clipped) = (c * (above - below), c * c * (above + below));
    if high - low < 2.0 {
        // A narrow window: the closed form would take differences of nearly equal numbers.
        let (low, high) = (low.max(-REACH), high.min(REACH));
        if low >= high {
            return [0.0, outside, clipped];
        }
        let (centre, half) = (0.5 * (low + high), 0.5 * (high - low));
        let mut sum = [0.0, outside, clipped];
        let rule: &[(f64, f64)] =
            if half * (1.0 + s) < 0.3 { &GAUSS_LEGENDRE_8 } else { &GAUSS_LEGENDRE_16 };
        for (x, w) in rule {
            for z in [centre - half * x, centre + half * x] {
                let (weight, mean) = (w * half * phi(z), (m + s * z).exp());
                sum[0] += weight * mean;
                sum[1] += weight * (mean - y);
                sum[2] += weight * (mean - y) * (mean - y);
            }
        }
        return sum;
    }
    let mass =
        |n: f64| (n * m + 0.5 * n * n * s * s).exp() * normal_mass(low - n * s, high - n * s);
    let (zero, one, two) = (mass(0.0), mass(1.0), mass(2.0));
    [one, outside + one - y * zero, clipped + two - 2.0 * y * one + y * y * zero]
}
