//! One residual under a radial rule: $\mu = E\thinspace{\psi^\prime}(X)$ and $m^{(2)} =
//! E\thinspace\psi(X)^2$ for the rules other than clipping, which every [noise](crate::noise) has
//! in closed form.

use crate::factors::batch::smooth_residual;
use crate::factors::information::{information, points_about};
use crate::factors::kernel::{Moments, clipped_normal};
use crate::noise::{Noise, spread};
use crate::numerics::quadrature::{half_line, interval, panel, panels_from};
use crate::numerics::special::phi;
use crate::rule::Smooth;

/// Below this share of the value for clipping, the closed form for skipping has lost digits.
const CANCELLED: f64 = 0.1;
/// Steps of the trapezoidal rule for a normal residual, against its standard deviation and the
/// threshold: both errors are below $10^{-16}$.
const STEP: (f64, f64) = (0.4, 0.16);
/// Below this share of the narrowest feature of the residual a smooth rule normalises, to rounding.
const TINY: f64 = 1e-20;
/// Noise with more atoms than this is integrated as a density.
const FEW: usize = 8;
/// The width of a panel of the Gauss–Legendre rule for a normal residual, in standard deviations.
const PANEL: f64 = 3.0;
/// How far a normal residual reaches, in standard deviations.
const REACH: f64 = 9.0;

/// $\mu = P(|X| \le c) - c\thinspace(f(c) + f(-c))$ and $m^{(2)} = E\[X^2; |X| \le c\]$.
///
/// Both follow from what clipping leaves. Where the difference cancels (small thresholds, where
/// both are of order $c^3$), $\mu = -\int_{-c}^c x {f^\prime}(x)\thinspace dx$ and $m^{(2)} =
/// \int_{-c}^c x^2 f(x)\thinspace dx$ are integrated instead.
pub(crate) fn skip(noise: &dyn Noise, r: f64, c: f64) -> Moments {
    let clip = noise.clipped(r, c);
    if c == f64::INFINITY {
        return clip;
    }
    let density = |x: f64| noise.residual_density(r, x).map_or(f64::NAN, |(f, _)| f);
    let edge = density(c) + density(-c);
    let closed = Moments {
        // c·f(c) with c infinitely far out is zero, not ∞·0.
        mu: clip.mu - if edge == 0.0 { 0.0 } else { c * edge },
        m2: (clip.m2 - c * c * (1.0 - clip.mu)).max(0.0),
    };
    if let Some(atoms) = only_atoms(noise).filter(|_| r == 0.0) {
        let kept = atoms.iter().filter(|(_, x)| x.abs() <= c);
        return Moments { m2: kept.map(|(weight, x)| weight * x * x).sum(), ..closed };
    }
    let precise = closed.mu.abs() > CANCELLED * clip.mu && closed.m2 > CANCELLED * clip.m2;
    if precise || clip.mu == 0.0 || !noise.is_resolved(r) || has_atoms(noise, r) {
        return closed;
    }
    if let Some(normals) = only_atoms(noise).filter(|atoms| atoms.len() <= FEW) {
        return normals.into_iter().fold(Moments { mu: 0.0, m2: 0.0 }, |sum, (weight, at)| {
            let x = skipped_normal(at, spread(r), c);
            Moments { mu: sum.mu + weight * x.mu, m2: sum.m2 + weight * x.m2 }
        });
    }
    let features = noise.features(r);
    let side = |sign: f64| {
        let mut points = points_about(&features, sign);
        points.retain(|x| *x < c);
        points.push(c);
        let integrand = |x: f64| {
            let (f, df) = noise.residual_density(r, sign * x).unwrap_or((0.0, 0.0));
            [-sign * x * df, x * x * f]
        };
        interval(integrand, &panels_from(0.0, points))
    };
    let ([mu, m2], [mu_left, m2_left]) = (side(1.0), side(-1.0));
    Moments { mu: mu + mu_left, m2: m2 + m2_left }
}

/// The atoms of a noise that consists of atoms only: the residual is then a mixture of normals.
fn only_atoms(noise: &dyn Noise) -> Option<Vec<(f64, f64)>> {
    let atoms = noise.atoms();
    (atoms.iter().map(|(w, _)| w).sum::<f64>() > 1.0 - 1e-12).then_some(atoms)
}

/// What skipping leaves of $N(m, s^2)$.
///
/// $m^{(2)}$ is integrated over the part of $\[-c, c\]$ that is within [`REACH`] of where the density
/// is highest. $\mu$ is the closed form, or for $c < s$, where that cancels, the integral
/// $\int_0^c x\thinspace({f^\prime}(-x) - {f^\prime}(x))\thinspace dx$.
fn skipped_normal(m: f64, s: f64, c: f64) -> Moments {
    let highest = m.clamp(-c, c);
    let (from, to) = ((highest - REACH * s).max(-c), (highest + REACH * s).min(c));
    let count = ((to - from) / (PANEL * s)).ceil().max(1.0);
    let width = (to - from) / count;
    let squares = (0..count as usize).map(|k| {
        let start = from + k as f64 * width;
        let [square] = panel(&|x| [x * x * phi((x - m) / s) / s], start, start + width);
        square
    });
    let mu = if c < s {
        let folded = |x: f64| {
            // f(-x)/f(x) = exp(-2xm/s²).
            let (x, m) = (x / s, m.abs() / s);
            let lower = (-2.0 * x * m).exp_m1();
            [x * phi(x - m) / s * (x * (2.0 + lower) + m * lower)]
        };
        panel(&folded, 0.0, c)[0]
    } else {
        let edge = phi((c - m) / s) + phi((c + m) / s);
        clipped_normal(m, s, c).mu - c / s * edge
    };
    Moments { mu, m2: squares.sum() }
}

/// $\mu = 2cf(0)$ and $m^{(2)} = c^2$.
pub(crate) fn normalise(noise: &dyn Noise, r: f64, c: f64) -> Moments {
    // At R = 0 an atom at zero has no sign, and next to it every step is along the error.
    if has_atoms(noise, r) && noise.atoms().iter().any(|(_, x)| *x == 0.0) {
        return Moments { mu: f64::INFINITY, m2: c * c };
    }
    let f = noise.residual_density(r, 0.0).map_or(f64::NAN, |(f, _)| f);
    Moments { mu: 2.0 * c * f, m2: c * c }
}

/// $\mu = E\thinspace{\psi^\prime}(X)$ and $m^{(2)} = E\thinspace\psi(X)^2$.
///
/// A few normals are summed directly. Other distributions have a transform, along which two
/// integrals over the real axis give both ([`smooth_residual`]), or else a density to integrate.
pub(crate) fn smooth(noise: &dyn Noise, smooth: Smooth, r: f64, c: f64) -> Moments {
    let second_moment = 2.0 * r + noise.second_moment();
    if c == f64::INFINITY {
        return Moments::open(second_moment);
    }
    // Next to zero every rule normalises; squares of the threshold would underflow.
    let narrowest = noise.features(r).iter().map(|f| f.width).fold(f64::INFINITY, f64::min);
    if c < TINY * narrowest && !has_atoms(noise, r) {
        return normalise(noise, r, c).within(c, second_moment);
    }
    let g = |x: f64| smooth.slope_and_square(x / c);
    let of_pair = |[mu, square]: [f64; 2]| Moments { mu, m2: c * c * square };
    let moments = match of_normals(noise, r, c, g) {
        Some(pair) => of_pair(pair),
        None => smooth_residual(noise, smooth, r, c)
            .unwrap_or_else(|| of_pair(over_density(noise, r, c, g))),
    };
    moments.within(c, second_moment)
}

/// $\mu = 1$ and $m^{(2)} = 1/I(X)$; NaN where there is no density to integrate.
pub(crate) fn optimal(noise: &dyn Noise, r: f64) -> Moments {
    let m2 = information(noise, &noise.features(r), r).map_or(f64::NAN, f64::recip);
    Moments { mu: 1.0, m2 }
}

fn has_atoms(noise: &dyn Noise, r: f64) -> bool {
    r == 0.0 && !noise.atoms().is_empty()
}

/// $E\thinspace g(X)$ of a function that is analytic within $c$ of the real axis, where the noise is a
/// few atoms: with $X = m + s z$, by the trapezoidal rule in $z$.
fn of_normals(noise: &dyn Noise, r: f64, c: f64, g: impl Fn(f64) -> [f64; 2]) -> Option<[f64; 2]> {
    let (s, atoms) = (spread(r), only_atoms(noise)?);
    let step = STEP.0.min(STEP.1 * c / s);
    let cheap = (atoms.len() as f64) * REACH / step < 2000.0;
    if !(s == 0.0 || cheap || !noise.is_resolved(r)) {
        return None;
    }
    Some(atoms.into_iter().fold([0.0; 2], |sum, (weight, at)| {
        let [a, b] = normal_expectation(at, s, step, &g);
        [sum[0] + weight * a, sum[1] + weight * b]
    }))
}

/// The same over the density of $X$, and its atoms at $R = 0$.
fn over_density(noise: &dyn Noise, r: f64, c: f64, g: impl Fn(f64) -> [f64; 2]) -> [f64; 2] {
    let features = noise.features(r);
    let side = |sign: f64| {
        let mut points = points_about(&features, sign);
        points.extend([0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0].map(|k| k * c));
        let integrand = |x: f64| {
            let f = noise.residual_density(r, sign * x).map_or(f64::NAN, |(f, _)| f);
            g(sign * x).map(|g| g * f)
        };
        half_line(integrand, &panels_from(0.0, points))
    };
    let ([a, b], [a_left, b_left]) = (side(1.0), side(-1.0));
    let atoms = if r == 0.0 { noise.atoms() } else { Vec::new() };
    atoms.into_iter().fold([a + a_left, b + b_left], |sum, (weight, at)| {
        let [a, b] = g(at);
        [sum[0] + weight * a, sum[1] + weight * b]
    })
}

/// $E\thinspace g(m + s z)$ of a standard normal $z$.
fn normal_expectation(m: f64, s: f64, step: f64, g: &impl Fn(f64) -> [f64; 2]) -> [f64; 2] {
    if s == 0.0 {
        return g(m);
    }
    let count = (REACH / step).ceil() as i64;
    let (mut sum, mut mass) = ([0.0; 2], 0.0);
    for k in -count..=count {
        let z = k as f64 * step;
        let weight = (-0.5 * z * z).exp();
        let [a, b] = g(m + s * z);
        mass += weight;
        sum = [sum[0] + weight * a, sum[1] + weight * b];
    }
    sum.map(|x| x / mass)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The integrals at 40 digits, by mpmath.
    #[test]
    fn moments_of_a_skipped_normal() {
        let table = [
            ([0.0, 1.0, 0.01], 2.659535415644913e-07, 2.659535415644913e-07),
            ([1.0, 0.03, 0.5], -3.1806807403031216e-60, 2.842292931156028e-63),
            ([1.0, 0.03, 0.98], -10.18280897618325, 0.23374456930268742),
            ([0.0, 0.03, 0.5], 1.0, 0.0009),
            ([5.0, 1.0, 0.001], -2.378755961257002e-14, 9.911534794183294e-16),
            ([1.0, 0.001, 1.002], -53.12169857816261, 0.9771427553867295),
            ([30.0, 1.0, 0.5], -1.9817079663991542e-190, 3.1447307193529227e-192),
            ([-2.0, 1.0, 1.5], -0.2211021045420665, 0.3097322459072316),
            ([0.3, 1.0, 0.999], 0.1771722221611111, 0.19437560362670872),
        ];
        for ([m, s, c], mu, m2) in table {
            let x = skipped_normal(m, s, c);
            // Rounding of (c - m)/s is magnified by the exponent.
            let digits = 1e-13 * (1.0 + ((c - f64::abs(m)) / s).powi(2));
            for (found, exact) in [(x.mu, mu), (x.m2, m2)] {
                let error = (found - exact).abs();
                let most = digits * f64::abs(exact).max(1e-30);
                assert!(error < most, "{m} {s} {c}: {found} is not {exact}");
            }
        }
    }
}
