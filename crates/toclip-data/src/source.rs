//! Samples $(x_k, b_k)$ read in blocks, from the first row, as often as asked.

use crate::{Error, Matrix, Result};

/// Some rows of a data set.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// $x_k$, row by row, `targets.len()` rows of `cols` numbers.
    pub features: &'a [f64],
    /// $b_k$.
    pub targets: &'a [f64],
    /// The number of features of a sample.
    pub cols: usize,
}

/// A data set that need not fit in memory: one pass is the point of streaming SGD.
///
/// Mean, covariance and residuals take a pass each, so a source can be read again from its start.
pub trait Source: Sync {
    /// The number of samples.
    fn rows(&self) -> usize;

    /// The number of features of a sample.
    fn cols(&self) -> usize;

    /// What to call it in messages: a file's name, a data set's.
    fn name(&self) -> String;

    /// Hands all samples to `visit`, in order, in blocks of at most `size` rows.
    ///
    /// # Errors
    /// What the file says, or the first error of `visit`.
    fn visit(&self, size: usize, visit: &mut dyn FnMut(Block<'_>) -> Result<()>) -> Result<()>;
}

/// Samples in memory.
///
/// ```
/// use toclip_data::{Matrix, Samples, Source};
/// let samples = Samples::new(Matrix::new(3, 2, vec![1., 2., 3., 4., 5., 6.])?, vec![1., 0., 1.])?;
/// let mut sizes = Vec::new();
/// samples.visit(2, &mut |block| Ok(sizes.push(block.targets.len())))?;
/// assert_eq!(sizes, [2, 1]);
/// # Ok::<(), toclip_data::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    features: Matrix,
    targets: Vec<f64>,
}

impl Samples {
    /// One target for each row of features.
    ///
    /// # Errors
    /// [`Error::Invalid`] where their numbers differ or a target is not finite.
    pub fn new(features: Matrix, targets: Vec<f64>) -> Result<Self> {
        if features.rows() != targets.len() {
            let (rows, count) = (features.rows(), targets.len());
            return Err(Error::Invalid(format!(
                "{rows} rows of features but {count} targets; each sample needs one"
            )));
        }
        if let Some(row) = targets.iter().position(|b| !b.is_finite()) {
            return Err(Error::Invalid(format!(
                "the target of row {} is {}; all must be finite",
                row + 1,
                targets[row]
            )));
        }
        Ok(Self { features, targets })
    }

    /// $x_k$, one row a sample.
    pub fn features(&self) -> &Matrix {
        &self.features
    }

    /// $b_k$.
    pub fn targets(&self) -> &[f64] {
        &self.targets
    }
}

impl Source for Samples {
    fn rows(&self) -> usize {
        self.targets.len()
    }

    fn cols(&self) -> usize {
        self.features.cols()
    }

    fn name(&self) -> String {
        "samples in memory".into()
    }

    fn visit(&self, size: usize, visit: &mut dyn FnMut(Block<'_>) -> Result<()>) -> Result<()> {
        let (size, cols) = (size.max(1), self.cols());
        for (features, targets) in
            self.features.data().chunks(size * cols).zip(self.targets.chunks(size))
        {
            visit(Block { features, targets, cols })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_needs_one_finite_target() {
        let features = Matrix::new(2, 1, vec![1.0, 2.0]).unwrap();
        let message = |targets| Samples::new(features.clone(), targets).unwrap_err().to_string();
        assert!(message(vec![1.0]).contains("2 rows of features but 1 targets"));
        assert!(message(vec![1.0, f64::NAN]).contains("the target of row 2 is NaN"));
    }

    #[test]
    fn blocks_cover_every_sample_once_in_order() {
        let data: Vec<f64> = (0..21).map(f64::from).collect();
        let samples =
            Samples::new(Matrix::new(7, 3, data.clone()).unwrap(), (0..7).map(f64::from).collect())
                .unwrap();
        for size in [1, 2, 7, 100] {
            let (mut x, mut b) = (Vec::new(), Vec::new());
            samples
                .visit(size, &mut |block| {
                    assert!(block.targets.len() <= size && block.cols == 3);
                    x.extend_from_slice(block.features);
                    b.extend_from_slice(block.targets);
                    Ok(())
                })
                .unwrap();
            assert_eq!((x, b.len()), (data.clone(), 7));
        }
    }
}
