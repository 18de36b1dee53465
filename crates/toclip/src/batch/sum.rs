//! Clipped moments of a sum of $N$ independent squares.

use super::complex::ln_1p;
use super::contour::{Left, Sum, left};
use super::law::{Pair, Shape, SquareLaw};
use crate::kernel::Clipped;
use num_complex::Complex64;

/// Binomial weights below this do not count.
const RARE: f64 = 1e-18;

/// $\mu_N$ and $E\min(S, c^2N)/N$ of $S = \sum_{i\le N} X_i^2$, for $N \ge 2$ and $0 < c < \infty$.
pub(super) fn clipped_sum(law: &SquareLaw, n: f64, c: f64, second_moment: f64) -> Clipped {
    let a = c * c * n;
    let x = match law.pair {
        Some(pair) if counts_are_cheaper(pair, n, c) => by_counts(pair, n, a),
        _ => {
            let shape = match law.shape {
                Shape::Free => Shape::Free,
                Shape::Spread(v) => Shape::Spread(v / a),
                Shape::Atoms(v) => Shape::Atoms(v / a),
            };
            let ln_g = |z| n * law.ln_transform(z / a);
            let (mean, edge) = (second_moment / (c * c), a * law.edge);
            left(&Sum { ln_g: &ln_g, shape, n, mean, edge })
        }
    };
    let mu = x.inside + (1.0 - 1.0 / n) * x.outside;
    Clipped { mu: mu.clamp(0.0, 1.0), m2: c * c * x.square.clamp(0.0, 1.0) }
}

/// One integral for each number of samples at $\pm\lambda$, or one for all whose path has to follow
/// the atoms until the normal part blurs them.
fn counts_are_cheaper(Pair { square, p, v }: Pair, n: f64, c: f64) -> bool {
    let counts = (17.0 * (n * p * (1.0 - p)).sqrt() + 1.0).min(n + 1.0);
    let size = c.max((p * square).sqrt());
    let panels = 4.0 + 2.5 * square * (p * (1.0 - p)).sqrt() / (v.sqrt() * size);
    8.0 * counts < panels || v == 0.0
}

/// Given that $k$ samples are at $\pm\lambda$, $S/v$ is non-central $\chi^2$ with $N$ degrees of
/// freedom and non-centrality $k\lambda^2/v$.
fn by_counts(Pair { square, p, v }: Pair, n: f64, a: f64) -> Left {
    let mut sum = Left { inside: 0.0, outside: 0.0, square: 0.0 };
    let count = n as u64;
    // From the most likely number outwards, each weight from its neighbour's.
    let mode = ((n + 1.0) * p).floor().min(n) as u64;
    let mut total = 0.0;
    let mut add = |k: u64, weight: f64| {
        let at = given(k as f64 * square / a, v / a, n);
        total += weight;
        sum.inside += weight * at.inside;
        sum.outside += weight * at.outside;
        sum.square += weight * at.square;
    };
    let odds = p / (1.0 - p);
    let (mut k, mut weight) = (mode, 1.0);
    while weight > RARE {
        add(k, weight);
        if k == count {
            break;
        }
        weight *= odds * (count - k) as f64 / (k + 1) as f64;
        k += 1;
    }
    let (mut k, mut weight) = (mode, 1.0);
    while k > 0 {
        weight *= k as f64 / (odds * (count - k + 1) as f64);
        k -= 1;
        if weight < RARE {
            break;
        }
        add(k, weight);
    }
    Left { inside: sum.inside / total, outside: sum.outside / total, square: sum.square / total }
}

/// $v\thinspace\chi^2_n(\delta/v)$ clipped at one.
fn given(delta: f64, v: f64, n: f64) -> Left {
    if v == 0.0 {
        let inside = if delta <= 1.0 { 1.0 } else { 0.0 };
        let outside = if delta <= 1.0 { 0.0 } else { delta.sqrt().recip() };
        return Left { inside, outside, square: delta.min(1.0) };
    }
    let ln_g = |z: Complex64| {
        let spread = 2.0 * v * z;
        -0.5 * n * ln_1p(spread) - delta * z / (1.0 + spread)
    };
    left(&Sum { ln_g: &ln_g, shape: Shape::Free, n, mean: delta + n * v, edge: 0.5 / v })
}
