//! The eigenvalues of a covariance, of data, of a file.

use crate::{Error, Matrix, Result};
use faer::{Mat, Side};
use std::fmt;
use std::path::Path;
use toclip::spectrum::{Spectrum, SpectrumSpec};

/// Entries of a symmetric matrix may differ by this share of the largest.
const ASYMMETRY: f64 = 1e-10;

/// $\lambda_i$ of a covariance matrix $K$.
///
/// Eigenvalues within $n \epsilon \Vert K\Vert $ of zero are rounding and become zero, where $\epsilon$
/// is the spacing of the numbers that the matrix was stored in (a file in single precision is
/// forgiven more).
///
/// ```
/// use toclip_data::{Matrix, spectrum_from_covariance};
/// let k = Matrix::new(2, 2, vec![2.0, 1.0, 1.0, 2.0])?;         // eigenvalues 3 and 1
/// assert!((spectrum_from_covariance(&k)?.intrinsic_dim() - 4.0 / 3.0).abs() < 1e-15);
/// # Ok::<(), toclip_data::Error>(())
/// ```
///
/// # Errors
/// [`Error::Invalid`] for a matrix that is not square, not symmetric, or has an eigenvalue that is
/// really negative; [`Error::Theory`] for one without a positive eigenvalue.
pub fn spectrum_from_covariance(matrix: &Matrix) -> Result<Spectrum> {
    let n = matrix.rows();
    if matrix.cols() != n {
        return Err(Error::Invalid(format!(
            "a covariance is square, but the matrix is {n} x {}",
            matrix.cols()
        )));
    }
    let largest = matrix.data().iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    let allowed = largest * ASYMMETRY.max(4.0 * matrix.rounding);
    for i in 0..n {
        for j in 0..i {
            let (below, above) = (matrix.row(i)[j], matrix.row(j)[i]);
            if (below - above).abs() > allowed {
                return Err(Error::Invalid(format!(
                    "a covariance is symmetric, but row {}, column {} is {below} and row {}, \
                     column {} is {above}",
                    i + 1,
                    j + 1,
                    j + 1,
                    i + 1
                )));
            }
        }
    }
    let mean = |i: usize, j: usize| 0.5 * matrix.row(i)[j] + 0.5 * matrix.row(j)[i];
    finish(eigenvalues(&Mat::from_fn(n, n, mean))?, n as f64 * matrix.rounding, 0.0, 0)
}

/// $\lambda_i$ of the covariance $K = \frac1n \sum_k x_k x_k^\top$ of data, one sample a row.
///
/// With `centred`, the mean of every column is taken off first (and $1/n$ stays $1/n$). Whichever
/// is smaller of $X^\top X$ and $X X^\top$ is diagonalised; eigenvalues below rounding become zero,
/// as in [`spectrum_from_covariance`].
///
/// ```
/// use toclip_data::{Matrix, spectrum_from_data};
/// let x = Matrix::new(2, 3, vec![3.0, 0.0, 0.0, 0.0, 4.0, 0.0])?;
/// let k = spectrum_from_data(&x, false)?;
/// assert_eq!((k.norm(), k.ambient_dim()), (8.0, 3));               // 16/2; 9/2 and 0 below it
/// # Ok::<(), toclip_data::Error>(())
/// ```
///
/// # Errors
/// [`Error::Invalid`] where the squares overflow; [`Error::Theory`] for data without variance.
pub fn spectrum_from_data(samples: &Matrix, centred: bool) -> Result<Spectrum> {
    let (n, dim) = (samples.rows(), samples.cols());
    let mut mean = vec![0.0; dim];
    if centred {
        for i in 0..n {
            mean.iter_mut().zip(samples.row(i)).for_each(|(m, x)| *m += x / n as f64);
        }
    }
    let x = Mat::from_fn(n, dim, |i, j| samples.row(i)[j] - mean[j]);
    let gram = if dim <= n { x.transpose() * &x } else { &x * x.transpose() };
    let zeros = dim.saturating_sub(n);
    let values = eigenvalues(&gram)?.iter().map(|v| v / n as f64).collect();
    // Taking off the mean leaves its rounding behind, which constant columns must not be made of.
    let largest =
        if centred { samples.data().iter().fold(0.0_f64, |m, v| m.max(v.abs())) } else { 0.0 };
    let floor = dim as f64 * (n as f64 * samples.rounding * largest).powi(2);
    finish(values, n.max(dim) as f64 * samples.rounding, floor, zeros)
}

fn eigenvalues(symmetric: &Mat<f64>) -> Result<Vec<f64>> {
    let n = symmetric.nrows();
    if (0..n).any(|j| (0..n).any(|i| !symmetric[(i, j)].is_finite())) {
        let message = "the squares of the data overflow; divide the data by a constant first";
        return Err(Error::Invalid(message.into()));
    }
    symmetric
        .self_adjoint_eigenvalues(Side::Lower)
        .map_err(|_| Error::Invalid("the eigenvalues of the matrix did not converge".into()))
}

/// Ascending eigenvalues, and `zeros` more, to a spectrum; below `rounding` relative to the largest,
/// or below `floor`, they are noise.
fn finish(mut values: Vec<f64>, rounding: f64, floor: f64, zeros: usize) -> Result<Spectrum> {
    let largest = values.last().copied().unwrap_or(0.0);
    let smallest = values.first().copied().unwrap_or(0.0);
    let negligible = floor.max(rounding * largest);
    if smallest < -negligible {
        return Err(Error::Invalid(format!(
            "a covariance has no negative eigenvalue, but this matrix has {smallest:e} (its \
             largest is {largest:e}; down to {:e} would pass for rounding); if it was written with few \
             digits, write all of them",
            -negligible
        )));
    }
    for value in &mut values {
        if *value <= negligible {
            *value = 0.0;
        }
    }
    values.reverse();
    values.resize(values.len() + zeros, 0.0);
    Ok(Spectrum::from_eigenvalues(&values)?)
}

/// What [`read_spectrum`] took a file for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpectrumSource {
    /// One row or column of this many eigenvalues.
    Eigenvalues(usize),
    /// A covariance of this many rows and columns.
    Covariance(usize),
}

/// A noun phrase: "500 eigenvalues", "a 500 x 500 covariance".
impl fmt::Display for SpectrumSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eigenvalues(1) => write!(f, "1 eigenvalue"),
            Self::Eigenvalues(n) => write!(f, "{n} eigenvalues"),
            Self::Covariance(n) => write!(f, "a {n} x {n} covariance"),
        }
    }
}

/// $\lambda_i$ from a CSV or NPY file: one row or column of eigenvalues (in any order, which is
/// then that of a start's coordinates), or a square symmetric covariance. Says which it took.
///
/// ```no_run
/// let (spectrum, source) = toclip_data::read_spectrum("k.csv")?;
/// println!("read {source}: d = {}", spectrum.intrinsic_dim());
/// # Ok::<(), toclip_data::Error>(())
/// ```
///
/// # Errors
/// Those of [`Matrix::read`] and [`spectrum_from_covariance`], with the file's name; and
/// [`Error::File`] for a matrix that is neither.
pub fn read_spectrum(path: impl AsRef<Path>) -> Result<(Spectrum, SpectrumSource)> {
    let path = path.as_ref();
    let matrix = Matrix::read(path)?;
    let (rows, cols) = (matrix.rows(), matrix.cols());
    if rows == 1 || cols == 1 {
        let spectrum =
            Spectrum::from_eigenvalues(matrix.data()).map_err(|e| Error::from(e).in_file(path))?;
        return Ok((spectrum, SpectrumSource::Eigenvalues(rows * cols)));
    }
    if rows != cols {
        return Err(Error::file(
            path,
            format!(
                "a spectrum is one row or column of eigenvalues, or a square symmetric covariance, \
                 but the file holds a {rows} x {cols} matrix"
            ),
        ));
    }
    let spectrum = spectrum_from_covariance(&matrix).map_err(|e| e.in_file(path))?;
    Ok((spectrum, SpectrumSource::Covariance(rows)))
}

/// $\lambda_i$ as an experiment names them, a file among the ways; relative paths start at `base`.
///
/// What was read from a file is said beside the spectrum.
///
/// ```
/// use toclip::spectrum::SpectrumSpec;
/// let spec = SpectrumSpec::PowerLaw { dim: 3, exponent: 1.0 };
/// let (spectrum, source) = toclip_data::resolve_spectrum(&spec, ".")?;
/// assert_eq!((spectrum.len(), source), (3, None));
/// # Ok::<(), toclip_data::Error>(())
/// ```
///
/// # Errors
/// Those of [`SpectrumSpec::build`] and [`read_spectrum`].
pub fn resolve_spectrum(
    spec: &SpectrumSpec,
    base: impl AsRef<Path>,
) -> Result<(Spectrum, Option<SpectrumSource>)> {
    match spec {
        SpectrumSpec::File { path } => {
            let (spectrum, source) = read_spectrum(base.as_ref().join(path))?;
            Ok((spectrum, Some(source)))
        }
        named => Ok((named.build()?, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toclip::spectrum::Block;

    fn values(spectrum: &Spectrum) -> Vec<f64> {
        let each =
            |b: &Block| std::iter::repeat_n(b.value * spectrum.norm(), b.multiplicity as usize);
        spectrum.blocks().iter().flat_map(each).collect()
    }

    /// Numbers that look random, without a generator: the fractional parts of multiples of the
    /// golden ratio's square root, shifted to mean zero.
    fn scattered(count: usize) -> Vec<f64> {
        (1..=count).map(|i| (i as f64 * 1.272_019_649_514_069).fract() - 0.5).collect()
    }

    #[test]
    fn a_rotated_spectrum_comes_back() {
        // K = H diag(lambda) H with a Householder reflection H: eigenvalues known exactly.
        let lambda = [5.0, 3.0, 3.0, 0.25, 0.0, 0.0];
        let n = lambda.len();
        let w = scattered(n);
        let square: f64 = w.iter().map(|w| w * w).sum();
        let h = |i: usize, j: usize| f64::from(u8::from(i == j)) - 2.0 * w[i] * w[j] / square;
        let entry = |i: usize, j: usize| (0..n).map(|k| h(i, k) * lambda[k] * h(k, j)).sum::<f64>();
        let data = (0..n * n).map(|k| entry(k / n, k % n)).collect();
        let spectrum = spectrum_from_covariance(&Matrix::new(n, n, data).unwrap()).unwrap();
        for (a, b) in values(&spectrum).iter().zip(lambda) {
            assert!((a - b).abs() < 1e-14, "{a} {b}");
        }
        assert_eq!(spectrum.blocks().last().unwrap(), &Block { value: 0.0, multiplicity: 2 });
    }

    #[test]
    fn data_and_its_covariance_agree_on_both_sides() {
        for (n, dim) in [(40, 7), (7, 40), (9, 9)] {
            for centred in [false, true] {
                let x = Matrix::new(n, dim, scattered(n * dim)).unwrap();
                let mean = |j: usize| match centred {
                    true => (0..n).map(|i| x.row(i)[j]).sum::<f64>() / n as f64,
                    false => 0.0,
                };
                let product = |a: usize, b: usize| {
                    let (ma, mb) = (mean(a), mean(b));
                    (0..n).map(|i| (x.row(i)[a] - ma) * (x.row(i)[b] - mb)).sum::<f64>() / n as f64
                };
                let k = (0..dim * dim).map(|k| product(k / dim, k % dim)).collect();
                let k = spectrum_from_covariance(&Matrix::new(dim, dim, k).unwrap()).unwrap();
                let direct = spectrum_from_data(&x, centred).unwrap();
                assert_eq!(direct.ambient_dim(), dim as u64);
                for (a, b) in values(&direct).iter().zip(values(&k)) {
                    assert!((a - b).abs() < 1e-14 * k.norm() * dim as f64, "{a} {b}");
                }
                // Centring costs one dimension of the samples: those are exact zeros.
                let rank = dim.min(n - usize::from(centred));
                let positive = values(&direct).iter().filter(|v| **v > 0.0).count();
                assert_eq!(positive, rank, "{n} {dim} {centred}");
            }
        }
    }

    #[test]
    fn wrong_matrices_get_a_sentence() {
        let message = |rows, cols, data| {
            spectrum_from_covariance(&Matrix::new(rows, cols, data).unwrap())
                .unwrap_err()
                .to_string()
        };
        assert!(message(1, 2, vec![1.0; 2]).contains("square, but the matrix is 1 x 2"));
        let skew = message(2, 2, vec![1.0, 0.5, 0.4, 1.0]);
        assert!(skew.contains("row 2, column 1 is 0.4 and row 1, column 2 is 0.5"), "{skew}");
        assert!(message(2, 2, vec![1.0, 2.0, 2.0, 1.0]).contains("no negative eigenvalue"));
        assert!(message(2, 2, vec![-1.0, 0.0, 0.0, -2.0]).contains("no negative eigenvalue"));
        assert!(message(2, 2, vec![0.0; 4]).contains("positive eigenvalue"));
        let huge = Matrix::new(2, 2, vec![1e200; 4]).unwrap();
        assert!(spectrum_from_data(&huge, false).unwrap_err().to_string().contains("overflow"));
        let constant = Matrix::new(7, 2, [0.1, 0.7].repeat(7)).unwrap();
        let none = spectrum_from_data(&constant, true).unwrap_err().to_string();
        assert!(none.contains("all are zero"), "{none}");
    }

    #[test]
    fn single_precision_is_forgiven_its_rounding() {
        let mut k = Matrix::new(2, 2, vec![1.0, 1.0 + 5e-8, 1.0 + 5e-8, 1.0]).unwrap();
        assert!(spectrum_from_covariance(&k).is_err());
        k.rounding = f64::from(f32::EPSILON);
        assert_eq!(spectrum_from_covariance(&k).unwrap().blocks()[1].value, 0.0);
    }

    #[test]
    fn files_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let path = dir.path().join("k.csv");
            std::fs::write(&path, text).unwrap();
            read_spectrum(&path)
        };
        let (column, source) = read("lambda\n0.5\n2\n").unwrap();
        assert_eq!((column.norm(), source.to_string()), (2.0, "2 eigenvalues".to_owned()));
        assert_eq!(read("0.5,2\n").unwrap().0, column);
        let (square, source) = read("2,1\n1,2\n").unwrap();
        assert_eq!(source.to_string(), "a 2 x 2 covariance");
        assert!((square.norm() - 3.0).abs() < 1e-15);
        let message = |text: &str| read(text).unwrap_err().to_string();
        for (text, part) in [
            ("1,2\n3,4\n5,6\n", "holds a 3 x 2 matrix"),
            ("1,2\n0,1\n", "symmetric"),
            ("1\n-1\n", "none below zero"),
            ("1\nx\n", "line 2, column 1"),
        ] {
            let found = message(text);
            assert!(found.contains("k.csv") && found.contains(part), "{found}");
        }
        let spec = SpectrumSpec::File { path: "k.csv".into() };
        std::fs::write(dir.path().join("k.csv"), "1,0.5\n").unwrap();
        let (_, source) = resolve_spectrum(&spec, dir.path()).unwrap();
        assert_eq!(source, Some(SpectrumSource::Eigenvalues(2)));
    }
}
