//! The eigenvalues of a symmetric tridiagonal matrix.

/// The ascending eigenvalues of the symmetric tridiagonal matrix with this diagonal; `off[i]` couples
/// $i$ and $i + 1$, and entries from the last row on are not used.
///
/// Errors are at the rounding of the largest.
///
/// ```
/// let values = toclip::tridiagonal_eigenvalues(&[2.0, 2.0, 2.0], &[1.0, 1.0]);
/// for (value, exact) in values.iter().zip([2.0 - 2f64.sqrt(), 2.0, 2.0 + 2f64.sqrt()]) {
///     assert!((value - exact).abs() < 1e-15);
/// }
/// ```
pub fn tridiagonal_eigenvalues(diagonal: &[f64], off: &[f64]) -> Vec<f64> {
    let mut values = diagonal.to_vec();
    let mut off = off.to_vec();
    off.resize(values.len(), 0.0);
    tridiagonal_ql(&mut values, &mut off, &mut vec![0.0; diagonal.len()]);
    values.sort_by(f64::total_cmp);
    values
}

/// Eigenvalues of the symmetric tridiagonal matrix (`d`, `e`), `e[i]` coupling `i` and `i + 1` and
/// its last entry unused; the rotations are applied to the row `z`. Implicit QL with Wilkinson's
/// shift.
pub(crate) fn tridiagonal_ql(d: &mut [f64], e: &mut [f64], z: &mut [f64]) {
    let n = d.len();
    let largest = d.iter().chain(e.iter()).fold(0.0_f64, |m, v| m.max(v.abs()));
    // Off-diagonals enter the eigenvalues squared, so this is far below their rounding.
    let negligible = 0.25 * f64::EPSILON * largest;
    for l in 0..n {
        // Convergence is cubic, two or three sweeps each; the cap only rules out an endless loop.
        for _sweep in 0..64 {
            let m = (l..n - 1).find(|&m| e[m].abs() <= negligible).unwrap_or(n - 1);
            if m == l {
                break;
            }
            let g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let mut bulge = d[m] - d[l] + e[l] / (g + g.hypot(1.0).copysign(g));
            let (mut s, mut c, mut carried) = (1.0, 1.0, 0.0);
            let mut split = false;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = f.hypot(bulge);
                e[i + 1] = r;
                if r == 0.0 {
                    // The matrix has come apart here: take back the shift and start again.
                    d[i + 1] -= carried;
                    e[m] = 0.0;
                    split = true;
                    break;
                }
                (s, c) = (f / r, bulge / r);
                let shifted = d[i + 1] - carried;
                let t = (d[i] - shifted) * s + 2.0 * c * b;
                carried = s * t;
                d[i + 1] = shifted + carried;
                bulge = c * t - b;
                (z[i], z[i + 1]) = (c * z[i] - s * z[i + 1], s * z[i] + c * z[i + 1]);
            }
            if !split {
                d[l] -= carried;
                e[l] = bulge;
                e[m] = 0.0;
            }
        }
    }
}
