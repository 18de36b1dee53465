//! Clipped moments of a sum of $N$ independent squares.

use super::contour::{ClippedSquares, NOTHING, SumOfSquares, UNDERFLOW, clipped_squares};
use super::squared_residual::{Atoms, Pair, SquaredResidual, TransformShape};
use super::transform::Squares;
use crate::factors::kernel::Moments;
use crate::numerics::complex::ln_1p;
use crate::rule::Rule;
use num_complex::Complex64;

/// Binomial weights below this do not count.
const RARE: f64 = 1e-18;
/// Ways to draw a batch of atoms that may be summed: points, and where each is an integral.
const MOST_WAYS: (f64, f64) = (1e5, 300.0);

/// $\mu_N$ and $E\min(S, c^2N)/N$ of $S = \sum_{i\le N} X_i^2$, for $N \ge 2$ and $0 < c < \infty$.
pub(super) fn clipped_sum(
    squared: &SquaredResidual,
    n: f64,
    c: f64,
    second_moment: f64,
) -> Moments {
    let x = at_threshold(squared, n, c, second_moment, NOTHING);
    let mu = x.inside + (1.0 - 1.0 / n) * x.outside;
    Moments { mu: mu.clamp(0.0, 1.0), m2: c * c * x.square.clamp(0.0, 1.0) }
}

/// $\mu_N$ and $E\thinspace\varphi(s)^2s^2$ of a batch with $s^2 = S/N$, for another radial rule than
/// clipping.
pub(super) fn reshaped_sum(
    squared: &SquaredResidual,
    rule: &Rule,
    n: f64,
    c: f64,
    second_moment: f64,
) -> Moments {
    let squares = Squares { squared, n, c };
    match rule {
        Rule::Skip => {
            let x = at_threshold(squared, n, c, second_moment, UNDERFLOW);
            let m2 = (c * c * x.square_inside.max(0.0)).min(second_moment);
            Moments { mu: x.inside - 2.0 / n * x.density, m2 }
        }
        Rule::Normalise => squares.normalised(),
        Rule::Smooth(smooth) => squares.smoothed(*smooth),
        _ => Moments { mu: f64::NAN, m2: f64::NAN },
    }
}

/// $P(S \le c^2N)$.
pub(super) fn within(squared: &SquaredResidual, n: f64, c: f64, second_moment: f64) -> f64 {
    at_threshold(squared, n, c, second_moment, NOTHING).inside.clamp(0.0, 1.0)
}

/// The distribution of $S$ on both sides of $a = c^2N$.
fn at_threshold(
    squared: &SquaredResidual,
    n: f64,
    c: f64,
    second_moment: f64,
    nothing: f64,
) -> ClippedSquares {
    let a = c * c * n;
    match (squared.pair, &squared.atoms) {
        (Some(pair), _) if counts_are_cheaper(pair, n, c, second_moment) => by_counts(pair, n, a),
        (_, Some(atoms)) if are_few(atoms, n) => by_draws(atoms, n, a),
        _ => {
            let shape = match squared.shape {
                TransformShape::Free => TransformShape::Free,
                TransformShape::Spread(v) => TransformShape::Spread(v / a),
                TransformShape::Atoms(v) => TransformShape::Atoms(v / a),
            };
            let ln_g = |z| n * squared.ln_transform(z / a);
            let (mean, edge) = (second_moment / (c * c), a * squared.edge);
            clipped_squares(&SumOfSquares {
                ln_g: &ln_g,
                shape,
                n,
                mean,
                edge,
                nothing,
                range: squared.range / a,
            })
        }
    }
}

/// One integral for each number of samples at $\pm\lambda$, or one for all whose path has to follow
/// the atoms until the normal part blurs them.
///
/// A count takes as long as two panels, and 0.6 above the mean, where most counts are within
/// the threshold for certain: measured for $N$ from 4 to 512, mostly within a factor of three.
fn counts_are_cheaper(Pair { square, p, v }: Pair, n: f64, c: f64, second_moment: f64) -> bool {
    let counts = (17.0 * (n * p * (1.0 - p)).sqrt() + 1.0).min(n + 1.0);
    let size = c.max((p * square).sqrt());
    let panels = 4.0 + 2.5 * square * (p * (1.0 - p)).sqrt() / (v.sqrt() * size);
    let panels_a_count = if c * c > second_moment { 0.6 } else { 2.0 };
    panels_a_count * counts < panels || v == 0.0
}

/// Given that $k$ samples are at $\pm\lambda$, $S/v$ is non-central $\chi^2$ with $N$ degrees of
/// freedom and non-centrality $k\lambda^2/v$.
fn by_counts(Pair { square, p, v }: Pair, n: f64, a: f64) -> ClippedSquares {
    let mut sum = ClippedSquares::default();
    let count = n as u64;
    // From the most likely number outwards, each weight from its neighbour's.
    let mode = ((n + 1.0) * p).floor().min(n) as u64;
    let mut total = 0.0;
    let mut add = |k: u64, weight: f64| {
        total += weight;
        sum.add(weight, given(k as f64 * square / a, v / a, n));
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
    sum.over(total)
}

/// Whether the $\binom{N+k-1}{k-1}$ ways to draw $N$ of $k$ atoms may be summed.
fn are_few(Atoms { squares, v }: &Atoms, n: f64) -> bool {
    let most = if *v == 0.0 { MOST_WAYS.0 } else { MOST_WAYS.1 };
    let mut ways = 1.0;
    for k in 1..squares.len() {
        ways *= (n + k as f64) / k as f64;
        if ways > most {
            return false;
        }
    }
    true
}

/// The mean over how often each atom is drawn, as [`by_counts`] for more than two or for others.
fn by_draws(Atoms { squares, v }: &Atoms, n: f64, a: f64) -> ClippedSquares {
    if let [(_, square)] = squares[..] {
        return given(n * square / a, v / a, n);
    }
    let mut ln_factorial = vec![0.0];
    let mut sum = 0.0;
    for k in 1..=n as u64 {
        sum += (k as f64).ln();
        ln_factorial.push(sum);
    }
    let mut clipped_squares = ClippedSquares::default();
    let mut total = 0.0;
    each_draw(squares, &ln_factorial, 0.0, sum, &mut |delta, ln_weight| {
        let weight = ln_weight.exp();
        if weight < RARE {
            return;
        }
        total += weight;
        clipped_squares.add(weight, given(delta / a, v / a, n));
    });
    clipped_squares.over(total)
}

/// Calls `visit` with $\sum_j k_j m_j^2$ and the logarithm of the multinomial probability for every
/// way to draw as many as `ln_factorial` reaches.
fn each_draw(
    squares: &[(f64, f64)],
    ln_factorial: &[f64],
    delta: f64,
    ln_weight: f64,
    visit: &mut dyn FnMut(f64, f64),
) {
    let Some((&(w, square), rest)) = squares.split_first() else { return };
    let draws = ln_factorial.len() - 1;
    let least = if rest.is_empty() { draws } else { 0 };
    for k in least..=draws {
        let delta = delta + k as f64 * square;
        let ln_weight = ln_weight + k as f64 * w.ln() - ln_factorial[k];
        if rest.is_empty() {
            visit(delta, ln_weight);
        } else {
            each_draw(rest, &ln_factorial[..=draws - k], delta, ln_weight, visit);
        }
    }
}

/// $v\thinspace\chi^2_n(\delta/v)$ clipped at one.
fn given(delta: f64, v: f64, n: f64) -> ClippedSquares {
    if v == 0.0 {
        // Rounding must not clip a batch that is at the threshold.
        if delta <= 1.0 + 1e-14 {
            return ClippedSquares::all_inside(delta.min(1.0));
        }
        return ClippedSquares::all_outside(delta.sqrt().recip());
    }
    let ln_g = |z: Complex64| {
        let spread = 2.0 * v * z;
        -0.5 * n * ln_1p(spread) - delta * z / (1.0 + spread)
    };
    let (mean, edge) = (delta + n * v, 0.5 / v);
    clipped_squares(&SumOfSquares {
        ln_g: &ln_g,
        shape: TransformShape::Free,
        n,
        mean,
        edge,
        nothing: NOTHING,
        range: 0.0,
    })
}
