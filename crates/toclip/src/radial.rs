//! What a radial rule leaves of one residual: $\mu = E\thinspace{\psi^\prime}(X)$ and $m^{(2)} =
//! E\thinspace\psi(X)^2$ for the rules other than clipping, which every [noise](crate::noise) has
//! in closed form.

use crate::batch::smooth_residual;
use crate::information::{information, points_about};
use crate::kernel::Moments;
use crate::noise::{Noise, spread};
use crate::quad::{half_line, interval, panels_from};
use crate::rule::Smooth;

/// Below this share of what clipping leaves, the closed form of skipping has lost digits.
const CANCELLED: f64 = 0.1;
/// Steps of the trapezoidal rule for a normal residual, against its standard deviation and the
/// threshold: both errors are below $10^{-16}$.
const STEP: (f64, f64) = (0.4, 0.16);
/// Below this share of the narrowest feature of the residual a smooth rule normalises, to rounding.
const TINY: f64 = 1e-20;
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
    let precise = closed.mu.abs() > CANCELLED * clip.mu && closed.m2 > CANCELLED * clip.m2;
    if precise || clip.mu == 0.0 || !noise.is_resolved(r) || has_atoms(noise, r) {
        return closed;
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

/// $\mu = 1$ and $m^{(2)} = 1/I(X)$; no number where there is no density to integrate.
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
    let (s, atoms) = (spread(r), noise.atoms());
    let discrete = atoms.iter().map(|(w, _)| w).sum::<f64>() > 1.0 - 1e-12;
    let step = STEP.0.min(STEP.1 * c / s);
    let cheap = (atoms.len() as f64) * REACH / step < 2000.0;
    if !(discrete && (s == 0.0 || cheap || !noise.is_resolved(r))) {
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
