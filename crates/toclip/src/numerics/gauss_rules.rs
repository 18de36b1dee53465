//! Gauss quadrature: of a discrete measure, and of $dx$ on $[-1, 1]$.
//!
//! The $q$-point Gauss rule of a measure replaces it by $q$ weighted nodes that give the same
//! integral of every polynomial of degree at most $2q - 1$. It is what lets a million eigenvalues
//! or a million residuals be summed at the price of a few hundred.

use crate::numerics::sum::{compensated, dot};
use crate::numerics::tridiagonal::tridiagonal_ql;
use std::cmp::Ordering;

/// Below this off-diagonal (support scaled to $[-1, 1]$) the measure is, to rounding, carried by
/// the nodes found so far: what is dropped enters the moments squared.
const BREAKDOWN: f64 = 1e-13;

/// Above this many points the rule is built from the rules of parts this long. That is exact (each
/// part keeps its moments), keeps the Lanczos vectors in cache, and keeps sums short.
const CHUNK: usize = 2048;

/// The $q$-point Gauss rule $(x_i, w_i)$ of the discrete measure $\sum_j W_j \delta_{X_j}$, nodes
/// in ascending order: $\sum_i w_i p(x_i) = \sum_j W_j p(X_j)$ for every polynomial of degree
/// $\le 2q-1$, up to rounding.
///
/// Weights must be finite and not negative, points finite. Points of weight zero are ignored. A
/// measure on at most `q` distinct points is returned as it is, equal points merged; one that is so
/// to rounding may come back with fewer than `q` nodes. The weights are positive and keep their
/// total; the nodes lie in the convex hull of the points.
///
/// Lanczos with full re-orthogonalisation gives the Jacobi matrix of the measure (without it,
/// orthogonality is lost as soon as one heavy isolated point is resolved), implicit QL its
/// eigenvalues and the first components of its eigenvectors (Golub and Welsch, 1969). Costs
/// $O(N q^2)$ for $N$ points.
pub(crate) fn gauss_rule(points: &[f64], weights: &[f64], q: usize) -> Vec<(f64, f64)> {
    let chunk = CHUNK.max(8 * q);
    if points.len() <= chunk {
        return rule_of_part(points, weights, q);
    }
    let (mut nodes, mut masses) = (Vec::new(), Vec::new());
    for (p, w) in points.chunks(chunk).zip(weights.chunks(chunk)) {
        for (node, mass) in rule_of_part(p, w, q) {
            nodes.push(node);
            masses.push(mass);
        }
    }
    gauss_rule(&nodes, &masses, q)
}

fn rule_of_part(points: &[f64], weights: &[f64], q: usize) -> Vec<(f64, f64)> {
    if let Some(merged) = merge_few(points, weights, q) {
        return merged;
    }
    let (mut lo, mut hi) = (f64::INFINITY, f64::NEG_INFINITY);
    for (&p, &w) in points.iter().zip(weights) {
        if w > 0.0 {
            (lo, hi) = (lo.min(p), hi.max(p));
        }
    }
    let total = compensated(weights.iter().copied());
    // Halves first, so that a support near the largest f64 does not overflow.
    let (mid, half) = (0.5 * lo + 0.5 * hi, 0.5 * hi - 0.5 * lo);
    let (mut x, mut root) = (Vec::new(), Vec::new());
    for (&p, &w) in points.iter().zip(weights) {
        if w > 0.0 {
            x.push((p - mid) / half);
            root.push((w / total).sqrt());
        }
    }
    let (mut diagonal, mut off) = lanczos(&x, root, q);
    let mut first = vec![0.0; diagonal.len()];
    first[0] = 1.0;
    tridiagonal_ql(&mut diagonal, &mut off, &mut first);
    let mut rule: Vec<(f64, f64)> = diagonal
        .iter()
        .zip(&first)
        .map(|(&t, &z)| ((mid + half * t).clamp(lo, hi), z * z))
        .filter(|&(_, w)| w > 0.0)
        .collect();
    let sum: f64 = rule.iter().map(|r| r.1).sum();
    rule.iter_mut().for_each(|r| r.1 *= total / sum);
    rule.sort_by(|a, b| a.0.total_cmp(&b.0));
    rule
}

/// The measure itself if it has at most `q` distinct points, else `None` (found out early).
fn merge_few(points: &[f64], weights: &[f64], q: usize) -> Option<Vec<(f64, f64)>> {
    let mut merged: Vec<(f64, f64)> = Vec::with_capacity(q + 1);
    for (&p, &w) in points.iter().zip(weights) {
        if w > 0.0 {
            match merged.binary_search_by(|m| m.0.partial_cmp(&p).unwrap_or(Ordering::Equal)) {
                Ok(i) => merged[i].1 += w,
                Err(_) if merged.len() == q => return None,
                Err(i) => merged.insert(i, (p, w)),
            }
        }
    }
    Some(merged)
}

/// Diagonal and off-diagonal of the Jacobi matrix of order at most `q` of the measure with the unit
/// vector of square-root weights `start` on the points `x` in $[-1, 1]$.
fn lanczos(x: &[f64], start: Vec<f64>, q: usize) -> (Vec<f64>, Vec<f64>) {
    let norm = dot(&start, &start).sqrt();
    let mut basis = vec![start.iter().map(|s| s / norm).collect::<Vec<f64>>()];
    let (mut diagonal, mut off) = (Vec::with_capacity(q), Vec::with_capacity(q));
    while let Some(last) = basis.last() {
        let mut r: Vec<f64> = x.iter().zip(last).map(|(x, p)| x * p).collect();
        let alpha = dot(&r, last);
        diagonal.push(alpha);
        if diagonal.len() == q {
            break;
        }
        let mut size = dot(&r, &r).sqrt();
        loop {
            // Newest vectors first: they carry nearly all of r, the older ones only rounding.
            for p in basis.iter().rev() {
                let c = dot(&r, p);
                r.iter_mut().zip(p).for_each(|(r, p)| *r -= c * p);
            }
            // A pass that cancels little leaves r orthogonal to rounding (Kahan's "twice is
            // enough").
            let shrunk = dot(&r, &r).sqrt();
            let cancelled = shrunk < 0.1 * size;
            size = shrunk;
            if !cancelled || size <= BREAKDOWN {
                break;
            }
        }
        if size <= BREAKDOWN {
            break;
        }
        off.push(size);
        r.iter_mut().for_each(|r| *r /= size);
        basis.push(r);
    }
    off.push(0.0);
    (diagonal, off)
}

/// The $n$-point Gauss–Legendre rule on $[-1, 1]$, nodes in ascending order, to rounding.
///
/// Newton's method runs in the angle $\theta$, $x = \cos\theta$, and the recurrence in
/// $1 - x = 2\sin^2(\theta/2)$: near $x = 1$ a rounded $x$ would cost the weights a factor $n^2$ of
/// rounding. The weights are $2 / (dP_n/d\theta)^2$.
pub(crate) fn gauss_legendre(n: usize) -> Vec<(f64, f64)> {
    let order = n as f64;
    let mut rule = vec![(0.0, 0.0); n];
    for i in 0..n.div_ceil(2) {
        let mut theta = std::f64::consts::PI * (i as f64 + 0.75) / (order + 0.5);
        let mut slope = 1.0;
        // Quadratic from an error of O(n^-2 theta): five steps are more than rounding needs.
        for _newton in 0..5 {
            let t = 2.0 * (0.5 * theta).sin().powi(2);
            let (mut p, mut step) = (1.0, 0.0);
            for k in 0..n {
                let k = k as f64;
                step = (k * step - (2.0 * k + 1.0) * t * p) / (k + 1.0);
                p += step;
            }
            slope = order * (step - t * p) / theta.sin();
            theta -= p / slope;
        }
        let (node, weight) = (theta.cos(), 2.0 / (slope * slope));
        rule[i] = (-node, weight);
        rule[n - 1 - i] = (node, weight);
    }
    if n % 2 == 1 {
        rule[n / 2].0 = 0.0;
    }
    rule
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// The largest errors over the moments $x^k$ and $T_k(x)$ of degree $k < 2q$, on the hull of
    /// the points scaled to $[-1, 1]$, relative to the total weight. Compensated sums: the test
    /// must be better than what it tests.
    fn moment_errors(points: &[f64], weights: &[f64], rule: &[(f64, f64)], q: usize) -> (f64, f64) {
        let (lo, hi) = hull(points);
        let scaled = |p: f64| (p - 0.5 * (lo + hi)) / (0.5 * (hi - lo));
        let mut sums = vec![[0.0; 4]; 2 * q];
        let compensated = |sum: &mut [f64], term: f64| {
            let y = term - sum[1];
            let t = sum[0] + y;
            (sum[0], sum[1]) = (t, (t - sum[0]) - y);
        };
        let mut add = |x: f64, w: f64| {
            let (mut power, mut a, mut b) = (1.0, 1.0, x);
            for sum in sums.iter_mut() {
                compensated(&mut sum[..2], w * power);
                compensated(&mut sum[2..], w * a);
                power *= x;
                (a, b) = (b, 2.0 * x * b - a);
            }
        };
        points.iter().zip(weights).for_each(|(&p, &w)| add(scaled(p), w));
        rule.iter().for_each(|&(p, w)| add(scaled(p), -w));
        let total: f64 = weights.iter().sum();
        let largest = |i: usize| sums.iter().fold(0.0_f64, |m, s| m.max(s[i].abs() / total));
        (largest(0), largest(2))
    }

    fn hull(points: &[f64]) -> (f64, f64) {
        points.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |a, &p| (a.0.min(p), a.1.max(p)))
    }

    fn check(points: &[f64], weights: &[f64], q: usize) {
        let rule = gauss_rule(points, weights, q);
        assert!(!rule.is_empty() && rule.len() <= q);
        let (lo, hi) = hull(points);
        assert!(rule.iter().all(|&(x, w)| lo <= x && x <= hi && w > 0.0));
        assert!(rule.is_sorted_by(|a, b| a.0 <= b.0), "{rule:?}");
        let total: f64 = weights.iter().sum();
        let kept: f64 = rule.iter().map(|r| r.1).sum();
        assert!((kept / total - 1.0).abs() < 1e-14);
        // Where the hull is a few spacings of f64 wide there is no accuracy to speak of.
        if hi - lo > 1e-9 * lo.abs().max(hi.abs()) {
            // A node is rounded to the spacing of f64 where it lies, which may be coarse on the
            // scale of the hull; that moves x^k by up to k times as much. T_k is k times steeper
            // again at the ends and as steep as x^k in between.
            let rounding = f64::EPSILON * lo.abs().max(hi.abs()) / (0.5 * (hi - lo));
            let degree = 2.0 * q as f64;
            let (powers, chebyshev) = moment_errors(points, weights, &rule, q);
            let n = points.len();
            assert!(powers < 1e-13 + degree * rounding, "{powers:e}, q = {q}, {n} points");
            let allowed = degree * (1e-14 + degree * rounding);
            assert!(chebyshev < allowed, "{chebyshev:e}, q = {q}, {n} points");
        }
    }

    #[test]
    fn two_equal_halves_of_three_points() {
        // Weights 1, 2, 1 at -1, 0, 1: mean 0, variance 1/2, hence nodes -+1/sqrt 2, weights 2.
        let rule = gauss_rule(&[1.0, 0.0, -1.0, 7.0], &[1.0, 2.0, 1.0, 0.0], 2);
        let node = 0.5_f64.sqrt();
        assert!((rule[0].0 + node).abs() < 1e-15 && (rule[1].0 - node).abs() < 1e-15);
        assert!((rule[0].1 - 2.0).abs() < 1e-15 && (rule[1].1 - 2.0).abs() < 1e-15);
    }

    #[test]
    fn few_distinct_points_are_merged_and_zero_weights_ignored() {
        let rule = gauss_rule(&[3.0, 1.0, 3.0, 9.0], &[1.0, 0.5, 2.0, 0.0], 2);
        assert_eq!(rule, vec![(1.0, 0.5), (3.0, 3.0)]);
        assert!(gauss_rule(&[1.0, 2.0], &[0.0, 0.0], 4).is_empty());
    }

    #[test]
    fn a_fine_grid_has_the_rule_of_legendre() {
        // The midpoint grid differs from dx by O(h^2).
        let n = 20_000;
        let points: Vec<f64> = (0..n).map(|i| (2 * i + 1 - n) as f64 / n as f64).collect();
        let rule = gauss_rule(&points, &vec![2.0 / n as f64; n as usize], 6);
        for (a, b) in rule.iter().zip(gauss_legendre(6)) {
            assert!((a.0 - b.0).abs() < 1e-7 && (a.1 - b.1).abs() < 1e-7, "{a:?} {b:?}");
        }
    }

    #[test]
    fn a_hundred_thousand_points() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let points: Vec<f64> = (0..100_000).map(|_| rng.random::<f64>().powi(3) + 5.0).collect();
        let weights: Vec<f64> = (0..100_000).map(|_| rng.random::<f64>()).collect();
        for q in [1, 2, 5, 16, 32] {
            check(&points, &weights, q);
        }
    }

    #[test]
    fn heavy_isolated_points_do_not_break_orthogonality() {
        // Isolated points are resolved first; unorthogonalised Lanczos then finds them again.
        let mut points: Vec<f64> = (0..1000).map(|i| f64::from(i) * 1e-3).collect();
        points.extend([50.0, 100.0, -100.0]);
        let mut weights = vec![1.0; 1000];
        weights.extend([1e4, 1e4, 1e4]);
        for q in [4, 8, 16, 24, 32] {
            check(&points, &weights, q);
        }
    }

    #[test]
    fn nearly_equal_points_end_the_recurrence() {
        // Three clusters a few ulp wide are three points to rounding, however many are asked for.
        let points: Vec<f64> = (0..300)
            .map(|i| [1.0, 2.0, 4.0][i % 3] * (1.0 + f64::EPSILON * (i / 3) as f64))
            .collect();
        check(&points, &vec![1.0; 300], 16);
    }

    #[test]
    fn legendre_integrates_powers_exactly() {
        for n in [1, 2, 3, 7, 20, 64, 200, 501] {
            let rule = gauss_legendre(n);
            assert!(rule.is_sorted_by(|a, b| a.0 < b.0));
            for power in (0..2 * n as i32).step_by(2).chain([2 * n as i32 - 2]) {
                let sum: f64 = rule.iter().map(|&(x, w)| w * x.powi(power)).sum();
                let exact = 2.0 / f64::from(power + 1);
                assert!((sum - exact).abs() < 4e-15, "n = {n}, power {power}: {sum} {exact}");
            }
        }
        let five = gauss_legendre(5);
        let outer = (5.0 + 2.0 * (10.0_f64 / 7.0).sqrt()).sqrt() / 3.0;
        assert!((five[4].0 - outer).abs() < 2e-16);
        let weight = (322.0 - 13.0 * 70.0_f64.sqrt()) / 900.0;
        assert!((five[4].1 - weight).abs() < 1e-16, "{} {weight}", five[4].1);
    }

    #[test]
    fn legendre_nodes_and_weights_of_order_twenty() {
        // Abramowitz and Stegun, table 25.4, n = 20, and 30-digit arithmetic.
        let rule = gauss_legendre(20);
        for (i, node, weight) in [
            (19, 0.993_128_599_185_094_9, 0.017_614_007_139_152_118),
            (10, 0.076_526_521_133_497_33, 0.152_753_387_130_725_85),
        ] {
            assert!((rule[i].0 - node).abs() < 2e-16, "{:e}", rule[i].0 - node);
            // Twenty steps of the recurrence leave a few ulp.
            assert!((rule[i].1 / weight - 1.0).abs() < 2e-15, "{:e}", rule[i].1 / weight - 1.0);
        }
    }

    proptest! {
        #[test]
        fn moments_of_random_measures(
            seed in 0_u64..1 << 48,
            n in 1_usize..400,
            q in 1_usize..33,
            clusters in 1_usize..40,
            spread in -14.0_f64..0.0,
            weight_decades in 0.0_f64..30.0,
            shift in -1e3_f64..1e3,
        ) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let centres: Vec<f64> = (0..clusters).map(|_| rng.random::<f64>()).collect();
            let width = 10_f64.powf(spread);
            let points: Vec<f64> = (0..n)
                .map(|_| shift + centres[rng.random_range(0..clusters)] + width * rng.random::<f64>())
                .collect();
            let weights: Vec<f64> =
                (0..n).map(|_| 10_f64.powf(-weight_decades * rng.random::<f64>())).collect();
            check(&points, &weights, q);
        }
    }
}
