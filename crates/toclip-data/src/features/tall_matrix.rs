//! Products with tall matrices in blocks of rows of a fixed size: results do not depend on the
//! number of threads, which the linear algebra library does not guarantee.

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{BlockStructure, matmul as triangular};
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

/// Rows of a block: enough for a fast product, few enough to keep every core busy.
pub const ROWS: usize = 256;
/// Products of blocks that are added up before the next are started, to bound the memory.
const ROUND: usize = 16;

/// $y = X a$ for the rows of $X$.
pub fn times(x: &[f64], a: &[f64]) -> Vec<f64> {
    let mut y = vec![0.0; x.len() / a.len()];
    let blocks = x.par_chunks(ROWS * a.len()).zip(y.par_chunks_mut(ROWS));
    blocks.for_each(|(x, y)| {
        for (x, y) in x.chunks_exact(a.len()).zip(y) {
            *y = x.iter().zip(a).map(|(x, a)| x * a).sum();
        }
    });
    y
}

/// $Z = X A$ into `z`, both by rows.
pub fn product(x: &[f64], a: MatRef<'_, f64>, z: &mut [f64]) {
    let rows = x.len() / a.nrows();
    let from = MatRef::from_row_major_slice(x, rows, a.nrows());
    let to = MatMut::from_row_major_slice_mut(z, rows, a.ncols());
    matmul(to, Accum::Replace, from, a, 1.0, Par::Seq);
}

/// The same in blocks, with `then` applied to each row of $Z$.
pub fn map_rows(x: &[f64], a: &Mat<f64>, z: &mut [f64], then: &(dyn Fn(&mut [f64]) + Sync)) {
    let (inputs, outputs) = (a.nrows(), a.ncols());
    let blocks = x.par_chunks(ROWS * inputs).zip(z.par_chunks_mut(ROWS * outputs));
    blocks.for_each(|(x, z)| {
        product(x, a.as_ref(), z);
        z.chunks_exact_mut(outputs).for_each(then);
    });
}

/// Adds the contribution of a block, given the index of its first row, its rows, and the sum.
pub type AddBlock<'a> = &'a (dyn Fn(usize, &[f64], &mut [f64]) + Sync);

/// The sum over the rows of $x$ of what `add` adds to `width` numbers for each block, in the order
/// of the blocks.
pub fn sum(x: &[f64], cols: usize, width: usize, add: AddBlock<'_>) -> Vec<f64> {
    let mut total = vec![0.0; width];
    let blocks: Vec<(usize, &[f64])> = x.chunks(ROWS * cols).enumerate().collect();
    for round in blocks.chunks(ROUND) {
        let parts: Vec<Vec<f64>> = round
            .par_iter()
            .map(|&(block, x)| {
                let mut part = vec![0.0; width];
                add(block * ROWS, x, &mut part);
                part
            })
            .collect();
        for part in parts {
            total.iter_mut().zip(part).for_each(|(t, p)| *t += p);
        }
    }
    total
}

/// $\frac1n X^\top X$, all entries.
pub fn gram(x: &[f64], cols: usize) -> Mat<f64> {
    weighted_gram(x, cols, None)
}

/// $\frac1n \sum_k w_kx_kx_k^\top$ for weights that are not negative, all entries.
pub fn weighted_gram(x: &[f64], cols: usize, weights: Option<&[f64]>) -> Mat<f64> {
    let total = sum(x, cols, cols * cols, &|first, x, part| {
        let mut scaled = Vec::new();
        let x = match weights {
            None => x,
            Some(weights) => {
                let rows = x.chunks_exact(cols).zip(&weights[first..]);
                scaled.extend(rows.flat_map(|(x, w)| x.iter().map(|x| x * w.sqrt())));
                &scaled
            }
        };
        let x = MatRef::from_row_major_slice(x, x.len() / cols, cols);
        let to = MatMut::from_column_major_slice_mut(part, cols, cols);
        let (lower, full) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
        triangular(to, lower, Accum::Replace, x.transpose(), full, x, full, 1.0, Par::Seq);
    });
    let n = (x.len() / cols) as f64;
    Mat::from_fn(cols, cols, |i, j| total[i.max(j) + i.min(j) * cols] / n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_written_out() {
        let (n, p) = (ROWS * ROUND + 77, 3);
        let x: Vec<f64> = (0..n * p).map(|i| (i as f64 * 0.7).sin()).collect();
        let k = gram(&x, p);
        for (i, j) in [(0, 0), (1, 0), (0, 2), (2, 2)] {
            let direct: f64 = x.chunks(p).map(|x| x[i] * x[j]).sum::<f64>() / n as f64;
            assert!((k[(i, j)] - direct).abs() < 1e-13);
        }
        let weights: Vec<f64> = (0..n).map(|k| (k % 5) as f64).collect();
        let weighted = weighted_gram(&x, p, Some(&weights));
        let direct =
            x.chunks(p).zip(&weights).map(|(x, w)| w * x[2] * x[0]).sum::<f64>() / n as f64;
        assert!((weighted[(0, 2)] - direct).abs() < 1e-13);
        let a = Mat::from_fn(p, 2, |i, j| (1 + i + 3 * j) as f64);
        let mut z = vec![0.0; n * 2];
        map_rows(&x, &a, &mut z, &|row| row[0] += 1.0);
        let y = times(&x, &[1.0, 2.0, 3.0]);
        for row in [0, ROWS - 1, ROWS, n - 1] {
            let x = &x[row * p..][..p];
            assert!((z[2 * row] - 1.0 - y[row]).abs() < 1e-14);
            assert!((z[2 * row + 1] - (4.0 * x[0] + 5.0 * x[1] + 6.0 * x[2])).abs() < 1e-14);
        }
    }
}
