//! The eigenvalues of a covariance, of data, or in a file.

use crate::eigenvalues::eigenvalues;
use crate::error::bail;
use crate::{Error, Matrix, Result};
use std::fmt;
use std::path::Path;
use toclip::spectrum::{Spectrum, SpectrumSpec};

/// Entries of a symmetric matrix may differ by this share of the largest.
const ASYMMETRY: f64 = 1e-10;

/// $\lambda_i$ of a covariance matrix $K$.
///
/// Eigenvalues within $n \epsilon \Vert K\Vert $ of zero are rounding errors and become zero, where
/// $\epsilon$ is the precision of the stored numbers (larger for a file in single precision).
///
/// ```
/// use toclip_data::{Matrix, spectrum_from_covariance};
/// let k = Matrix::new(2, 2, vec![2.0, 1.0, 1.0, 2.0])?;         // eigenvalues 3 and 1
/// assert!((spectrum_from_covariance(&k)?.intrinsic_dim() - 4.0 / 3.0).abs() < 1e-15);
/// # Ok::<(), toclip_data::Error>(())
/// ```
///
/// # Errors
/// [`Error::Invalid`] for a matrix that is not square, not symmetric, or has an eigenvalue below
/// zero by more than rounding; [`Error::Theory`] for one without a positive eigenvalue.
pub fn spectrum_from_covariance(matrix: &Matrix) -> Result<Spectrum> {
    let n = matrix.rows();
    if matrix.cols() != n {
        bail!("a covariance must be square, but the matrix is {n} x {}", matrix.cols());
    }
    let allowed = largest(matrix) * ASYMMETRY.max(4.0 * matrix.rounding);
    for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
        let (below, above) = (matrix.row(i)[j], matrix.row(j)[i]);
        if (below - above).abs() > allowed {
            let (i, j) = (i + 1, j + 1);
            bail!(
                "a covariance must be symmetric, but row {i}, column {j} is {below} and row {j}, \
                   column {i} is {above}"
            );
        }
    }
    let mean = |i: usize, j: usize| 0.5 * matrix.row(i)[j] + 0.5 * matrix.row(j)[i];
    finish(eigenvalues(n, mean)?, n as f64 * matrix.rounding, 0.0, 0)
}

/// $\lambda_i$ of the covariance $K = \frac1n \sum_k x_k x_k^\top$ of data, one sample a row.
///
/// With `centred`, the mean of every column is subtracted first (and $1/n$ stays $1/n$). The smaller
/// of $X^\top X$ and $X X^\top$ is diagonalised; eigenvalues below the rounding error become zero, as
/// in [`spectrum_from_covariance`].
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
#[cfg(feature = "fit")]
pub fn spectrum_from_data(samples: &Matrix, centred: bool) -> Result<Spectrum> {
    let (n, dim) = (samples.rows(), samples.cols());
    let mut mean = vec![0.0; dim];
    if centred {
        for i in 0..n {
            mean.iter_mut().zip(samples.row(i)).for_each(|(m, x)| *m += x / n as f64);
        }
    }
    let x = faer::Mat::from_fn(n, dim, |i, j| samples.row(i)[j] - mean[j]);
    let gram = if dim <= n { x.transpose() * &x } else { &x * x.transpose() };
    let zeros = dim.saturating_sub(n);
    let values = eigenvalues(gram.nrows(), |i, j| gram[(i, j)])?;
    let values = values.iter().map(|v| v / n as f64).collect();
    // Subtracting the mean leaves rounding errors, which must not pass for variance.
    let largest = if centred { largest(samples) } else { 0.0 };
    let floor = dim as f64 * (n as f64 * samples.rounding * largest).powi(2);
    finish(values, n.max(dim) as f64 * samples.rounding, floor, zeros)
}

/// The largest size of an entry.
fn largest(matrix: &Matrix) -> f64 {
    matrix.data().iter().fold(0.0, |m, v| v.abs().max(m))
}

/// A spectrum from ascending eigenvalues and `zeros` more; below `rounding` relative to the largest,
/// or below `floor`, they count as zero.
fn finish(mut values: Vec<f64>, rounding: f64, floor: f64, zeros: usize) -> Result<Spectrum> {
    let largest = values.last().copied().unwrap_or(0.0);
    let smallest = values.first().copied().unwrap_or(0.0);
    let negligible = floor.max(rounding * largest);
    if smallest < -negligible {
        bail!(
            "a covariance has no negative eigenvalue, but this matrix has {smallest:e}, more than \
               rounding errors explain (largest eigenvalue {largest:e}); if the file has few digits, \
               write all of them"
        );
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

/// The content of a file of [`read_spectrum`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpectrumSource {
    /// One row or column of this many eigenvalues.
    Eigenvalues(usize),
    /// A covariance of this many rows and columns.
    Covariance(usize),
    /// A covariance of this many rows and columns with zeros off the diagonal.
    Diagonal(usize),
}

/// A noun phrase: "500 eigenvalues", "a 500 x 500 covariance".
impl fmt::Display for SpectrumSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eigenvalues(1) => write!(f, "1 eigenvalue"),
            Self::Eigenvalues(n) => write!(f, "{n} eigenvalues"),
            Self::Covariance(n) => write!(f, "a {n} x {n} covariance"),
            Self::Diagonal(n) => write!(f, "a diagonal {n} x {n} covariance"),
        }
    }
}

/// $\lambda_i$ from a CSV, NPY or Parquet file: one row or column of eigenvalues (in any order, which
/// is then that of a start's coordinates), or a square symmetric covariance; and which it was.
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
        bail!(in path, "expected one row or column of eigenvalues, or a square symmetric \
              covariance, but the file has a {rows} x {cols} matrix");
    }
    let spectrum = spectrum_from_covariance(&matrix).map_err(|e| e.in_file(path))?;
    let beside = (0..rows).flat_map(|i| (0..cols).filter(move |j| *j != i).map(move |j| (i, j)));
    let source = match beside.into_iter().all(|(i, j)| matrix.row(i)[j] == 0.0) {
        true => SpectrumSource::Diagonal(rows),
        false => SpectrumSource::Covariance(rows),
    };
    Ok((spectrum, source))
}

/// $\lambda_i$ as an experiment specifies them; relative paths start at `base`. For a file, also
/// its content.
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
    fn errors_say_what_a_covariance_must_be() {
        let results = [
            (1, 2, vec![1.0; 2]),
            (2, 2, vec![1.0, 0.5, 0.4, 1.0]),
            (2, 2, vec![1.0, 2.0, 2.0, 1.0]),
            (2, 2, vec![-1.0, 0.0, 0.0, -2.0]),
            (2, 2, vec![0.0; 4]),
        ]
        .map(|(rows, cols, data)| {
            spectrum_from_covariance(&Matrix::new(rows, cols, data).unwrap())
        });
        let huge = Matrix::new(2, 2, vec![1e200; 4]).unwrap();
        let constant = Matrix::new(7, 2, [0.1, 0.7].repeat(7)).unwrap();
        let data = [spectrum_from_data(&huge, false), spectrum_from_data(&constant, true)];
        let results = results.into_iter().chain(data);
        insta::assert_snapshot!(crate::testing::messages("".as_ref(), results));
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
        let results = ["1,2\n3,4\n5,6\n", "1,2\n0,1\n", "1\n-1\n", "1\nx\n"].map(read);
        insta::assert_snapshot!(crate::testing::messages(dir.path(), results));
        let spec = SpectrumSpec::File { path: "k.csv".into() };
        std::fs::write(dir.path().join("k.csv"), "1,0.5\n").unwrap();
        let (_, source) = resolve_spectrum(&spec, dir.path()).unwrap();
        assert_eq!(source, Some(SpectrumSource::Eigenvalues(2)));
    }
}
