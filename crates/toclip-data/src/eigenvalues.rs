//! The eigenvalues of a symmetric matrix: by `faer`, or without it by a short method of our own.

use crate::Result;
use crate::error::bail;

/// The ascending eigenvalues of the symmetric matrix of size `n` with these entries.
pub(crate) fn eigenvalues(n: usize, entry: impl Fn(usize, usize) -> f64) -> Result<Vec<f64>> {
    if (0..n).any(|i| (0..n).any(|j| !entry(i, j).is_finite())) {
        bail!("the squares of the data overflow; divide the data by a constant first");
    }
    #[cfg(feature = "fit")]
    let found = faer::Mat::from_fn(n, n, entry).self_adjoint_eigenvalues(faer::Side::Lower).ok();
    #[cfg(not(feature = "fit"))]
    let found = Some(by_reflections(n, entry));
    match found {
        Some(values) => Ok(values),
        None => bail!("the eigenvalues of the matrix did not converge"),
    }
}

/// Householder reflections to a tridiagonal matrix, then its eigenvalues: $2n^3$ operations, which
/// takes seconds for $n = 1000$ and is compiled in a second, where `faer` takes a minute.
#[cfg(any(test, not(feature = "fit")))]
fn by_reflections(n: usize, entry: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let mut a: Vec<f64> = (0..n * n).map(|k| entry(k / n, k % n)).collect();
    let mut off = vec![0.0; n];
    for k in 0..n.saturating_sub(1) {
        let first = k + 1;
        let mut v: Vec<f64> = (first..n).map(|i| a[i * n + k]).collect();
        let scale = v[1..].iter().fold(0.0_f64, |s, x| s.max(x.abs()));
        if scale == 0.0 {
            off[k] = v[0];
            continue;
        }
        let scale = scale.max(v[0].abs());
        v.iter_mut().for_each(|x| *x /= scale);
        let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt().copysign(v[0]);
        off[k] = -norm * scale;
        v[0] += norm;
        // A − vwᵀ − wvᵀ is the matrix reflected at v.
        let beta = 2.0 / v.iter().map(|x| x * x).sum::<f64>();
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let mut w: Vec<f64> =
            (first..n).map(|i| beta * dot(&a[i * n + first..(i + 1) * n], &v)).collect();
        let half = 0.5 * beta * dot(&v, &w);
        w.iter_mut().zip(&v).for_each(|(w, v)| *w -= half * v);
        for i in first..n {
            let (vi, wi) = (v[i - first], w[i - first]);
            let row = &mut a[i * n + first..(i + 1) * n];
            row.iter_mut().zip(v.iter().zip(&w)).for_each(|(x, (v, w))| *x -= vi * w + wi * v);
        }
    }
    let diagonal: Vec<f64> = (0..n).map(|i| a[i * n + i]).collect();
    toclip::tridiagonal_eigenvalues(&diagonal, &off)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Both methods find the same, for any symmetric matrix: also one with equal eigenvalues,
        /// with zeros, and of any scale.
        #[test]
        fn both_methods_agree(
            n in 1..12_usize, seed in prop::collection::vec(-1.0..1.0f64, 144), rank in 1..12_usize,
            scale in -100..100_i32,
        ) {
            let scale = 2.0_f64.powi(scale);
            let rank = rank.min(n);
            let gram = |i: usize, j: usize| {
                scale * (0..rank).map(|k| seed[12 * k + i] * seed[12 * k + j]).sum::<f64>()
            };
            let (found, own) = (eigenvalues(n, gram).unwrap(), by_reflections(n, gram));
            let largest = found.last().unwrap().abs().max(found[0].abs());
            for (x, y) in found.iter().zip(&own) {
                prop_assert!((x - y).abs() <= 1e-14 * largest * n as f64, "{found:?} {own:?}");
            }
        }
    }

    #[test]
    fn special_matrices() {
        let of = |n, entry: fn(usize, usize) -> f64| by_reflections(n, entry);
        assert_eq!(of(0, |_, _| 0.0), [] as [f64; 0]);
        assert_eq!(of(1, |_, _| 3.0), [3.0]);
        assert_eq!(of(3, |i, j| if i == j { 2.0 } else { 0.0 }), [2.0, 2.0, 2.0]);
        let two = of(2, |i, j| if i == j { 2.0 } else { 1.0 });
        assert!((two[0] - 1.0).abs() < 1e-15 && (two[1] - 3.0).abs() < 1e-15);
        let ones = of(50, |_, _| 1.0);
        assert!((ones[49] - 50.0).abs() < 1e-12 && ones[..49].iter().all(|x| x.abs() < 1e-13));
        assert!(eigenvalues(1, |_, _| f64::INFINITY).is_err());
    }
}
