//! Quantiles of the distribution of Marchenko and Pastur (1967).
//!
//! With $a = \sqrt\gamma \le 1$ and $x = 1 + a^2 - 2a\cos\varphi$ the square root of the density at
//! the edges goes away:
//! $$dF = \frac2\pi\thinspace \frac{\sin^2\varphi}{1 + a^2 - 2a\cos\varphi}\thinspace d\varphi, \qquad
//! F(\varphi) = \frac2\pi\Bigl[\frac{(1 + a^2)\varphi}{4a^2} + \frac{\sin\varphi}{2a} -
//! \frac{1 - a^2}{2a^2}\arctan\frac{(1 + a)\sin(\varphi/2)}{(1 - a)\cos(\varphi/2)}\Bigr].$$
//! For small $a$ that cancels, and $\sin\varphi/(1 + a^2 - 2a\cos\varphi) = \sum_k a^{k-1}\sin
//! k\varphi$ is integrated term by term instead.

use std::f64::consts::PI;

/// Below this $a$ the closed form loses more than $a^{-2} \approx 400$ roundings.
const SERIES_BELOW: f64 = 0.05;

/// The `dim` eigenvalues in descending order, the zeros of $\gamma > 1$ as one item.
pub(super) fn quantiles(dim: u64, aspect: f64) -> Vec<(f64, u64)> {
    // The samples' Gram matrix has the same positive eigenvalues, gamma times those of 1/gamma.
    let (gamma, scale) = if aspect <= 1.0 { (aspect, 1.0) } else { (1.0 / aspect, aspect) };
    let positive = if aspect <= 1.0 { dim } else { ((dim as f64 / aspect).round() as u64).max(1) };
    let a = gamma.sqrt();
    let mut items: Vec<(f64, u64)> = Vec::with_capacity(positive as usize + 1);
    let mut phi = 0.0;
    for j in 0..positive {
        phi = quantile(a, (j as f64 + 0.5) / positive as f64, phi);
        let half = (0.5 * phi).sin();
        items.push((scale * ((1.0 - a).powi(2) + 4.0 * a * half * half), 1));
    }
    items.reverse();
    if positive < dim {
        items.push((0.0, dim - positive));
    }
    items
}

/// The angle above `from` where $F = p$: Newton's method, kept inside a bracket.
fn quantile(a: f64, p: f64, from: f64) -> f64 {
    let (mut lo, mut hi) = (from, PI);
    // The last quantile is the best guess but for the first, where the density vanishes.
    let mut phi = if from > 0.0 { from } else { 1.0 };
    for _ in 0..100 {
        let excess = distribution(a, phi) - p;
        if excess < 0.0 {
            lo = phi;
        } else {
            hi = phi;
        }
        let newton = phi - excess / density(a, phi);
        let next = if newton > lo && newton < hi { newton } else { 0.5 * (lo + hi) };
        if (next - phi).abs() <= 4.0 * f64::EPSILON * phi {
            return next;
        }
        phi = next;
    }
    phi
}

fn density(a: f64, phi: f64) -> f64 {
    let half = (0.5 * phi).sin();
    let x = (1.0 - a).powi(2) + 4.0 * a * half * half;
    2.0 / PI * phi.sin().powi(2) / x
}

fn distribution(a: f64, phi: f64) -> f64 {
    if a >= SERIES_BELOW {
        let (sin, cos) = (0.5 * phi).sin_cos();
        let angle = ((1.0 + a) * sin).atan2((1.0 - a) * cos);
        let square = a * a;
        let sum = 0.5 * (1.0 + square) * phi + a * phi.sin() - (1.0 - square) * angle;
        return sum / (PI * square);
    }
    // Terms k = 1, 2, ... of sin(phi) sin(k phi), integrated; sin(k phi) by its recurrence.
    let mut sum = 0.5 * phi - 0.25 * (2.0 * phi).sin();
    let twice_cos = 2.0 * phi.cos();
    let (mut previous, mut current, mut next) = (phi.sin(), (2.0 * phi).sin(), (3.0 * phi).sin());
    let mut power = a;
    for k in 2..16_u32 {
        let k = f64::from(k);
        sum += 0.5 * power * (previous / (k - 1.0) - next / (k + 1.0));
        (previous, current, next) = (current, next, twice_cos * next - current);
        power *= a;
    }
    2.0 / PI * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASPECTS: [f64; 9] = [1e-6, 1e-3, 0.00249, 0.00251, 0.1, 0.5, 0.99, 1.0, 0.9999];

    #[test]
    fn distribution_is_the_integral_of_the_density_in_x() {
        // The density as it is written in x, over panels that shrink towards the lower edge: near
        // gamma = 1 it is steep there.
        let rule = crate::numerics::gauss_rules::gauss_legendre(40);
        for gamma in ASPECTS {
            let a = f64::sqrt(gamma);
            let integrand = |phi: f64| {
                let x = (1.0 - a).powi(2) + 4.0 * a * (0.5 * phi).sin().powi(2);
                let edges = ((1.0 + a).powi(2) - x) * (x - (1.0 - a).powi(2));
                let rho = edges.max(0.0).sqrt() / (2.0 * PI * gamma * x);
                rho * 2.0 * a * phi.sin()
            };
            for end in [0.3, 1.0, 2.0, 3.0, PI] {
                let panels = (0..25).map(|k| (end * 0.5_f64.powi(k + 1), end * 0.5_f64.powi(k)));
                let integral: f64 = panels
                    .flat_map(|(lo, hi)| rule.iter().map(move |&(t, w)| (lo, hi, t, w)))
                    .map(|(lo, hi, t, w)| {
                        0.5 * (hi - lo) * w * integrand(0.5 * (lo + hi) + 0.5 * (hi - lo) * t)
                    })
                    .sum();
                let f = distribution(a, end);
                // Left out: end/2^25 at the edge. Subtracting under the root: 1/a roundings.
                let allowed = 1e-13 / a + 1e-12 + integrand(end * 0.5_f64.powi(25)) * 1e-7;
                assert!((f - integral).abs() < allowed, "{gamma} {end}: {f} {integral}");
            }
            assert!((distribution(a, PI) - 1.0).abs() < 1e-13);
        }
    }

    #[test]
    fn quantiles_invert_the_distribution() {
        for gamma in ASPECTS {
            let a = f64::sqrt(gamma);
            let mut phi = 0.0;
            for j in 0..200 {
                let p = (f64::from(j) + 0.5) / 200.0;
                phi = quantile(a, p, phi);
                assert!((distribution(a, phi) - p).abs() < 1e-12, "{gamma} {p}");
            }
        }
    }

    #[test]
    fn moments_are_those_of_the_distribution() {
        // E x = 1, E x^2 = 1 + g, E x^3 = 1 + 3g + g^2; mid-quantiles err by O(n^-5/3) at most.
        for gamma in [0.01, 0.1, 0.5, 1.0, 2.0, 10.0] {
            let dim = 40_000;
            let items = quantiles(dim, gamma);
            assert_eq!(items.iter().map(|i| i.1).sum::<u64>(), dim);
            let moment =
                |k: i32| items.iter().map(|&(x, n)| n as f64 * x.powi(k)).sum::<f64>() / dim as f64;
            let error = 1e-6;
            assert!((moment(1) - 1.0).abs() < error, "{gamma} {}", moment(1));
            assert!((moment(2) / (1.0 + gamma) - 1.0).abs() < error);
            let third = 1.0 + 3.0 * gamma + gamma * gamma;
            assert!((moment(3) / third - 1.0).abs() < error);
        }
    }

    #[test]
    fn wide_data_has_the_right_share_of_zeros() {
        let items = quantiles(1000, 4.0);
        assert_eq!(items.last(), Some(&(0.0, 750)));
        assert_eq!(items.len(), 251);
        // A single sample still has one positive eigenvalue.
        assert_eq!(quantiles(10, 1e9).iter().filter(|i| i.0 > 0.0).count(), 1);
    }
}
