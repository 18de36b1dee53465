//! Loops over all coordinates, sixteen at a time.

use crate::sim::normal::Block16;

/// A residual small enough for its square not to overflow. Larger ones are clipped to nearly the
/// same gradient anyway.
pub(crate) fn bounded(residual: f64) -> f64 {
    residual.clamp(-1e140, 1e140)
}

/// $\sum f(a_i, b_i)$ over all coordinates.
pub(crate) fn each(a: &[Block16], b: &[Block16], f: impl Fn(f64, f64) -> f64) -> f64 {
    let mut sums = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for i in 0..8 {
            sums[i] += f(a.first[i], b.first[i]) + f(a.second[i], b.second[i]);
        }
    }
    sums.iter().sum()
}

/// $a_i \leftarrow f(a_i, b_i)$ for all coordinates.
pub(crate) fn change(a: &mut [Block16], b: &[Block16], f: impl Fn(f64, f64) -> f64) {
    for (a, b) in a.iter_mut().zip(b) {
        for i in 0..8 {
            a.first[i] = f(a.first[i], b.first[i]);
            a.second[i] = f(a.second[i], b.second[i]);
        }
    }
}
