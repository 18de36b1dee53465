//! Samples $(x_k, b_k)$, read in blocks, as often as needed.

use crate::error::bail;
use crate::{Matrix, Result};

/// Some rows of a data set.
#[derive(Debug, Clone, Copy)]
pub struct SampleBlock<'a> {
    /// $x_k$, row by row, `targets.len()` rows of `cols` numbers.
    pub features: &'a [f64],
    /// $b_k$.
    pub targets: &'a [f64],
    /// The number of features of a sample.
    pub cols: usize,
}

/// Receives one block after the other.
pub type BlockVisitor<'a> = &'a mut dyn FnMut(SampleBlock<'_>) -> Result<()>;

/// A data set that need not fit in memory.
///
/// Mean, covariance and residuals take a pass each, so it can be read again from its start.
pub trait SampleSource: Sync {
    /// The number of samples.
    fn rows(&self) -> usize;

    /// The number of features of a sample.
    fn cols(&self) -> usize;

    /// The name of the file or the data set, for messages.
    fn name(&self) -> String;

    /// Passes all samples to `visit`, in order, in blocks of at most `size` rows.
    ///
    /// # Errors
    /// An error in the file, or the first error of `visit`.
    fn visit(&self, size: usize, visit: BlockVisitor<'_>) -> Result<()>;
}

/// Samples in memory.
///
/// ```
/// use toclip_data::{Matrix, SampleSource, Samples};
/// let samples = Samples::new(Matrix::new(3, 2, vec![1., 2., 3., 4., 5., 6.])?, vec![1., 0., 1.])?;
/// let mut sizes = Vec::new();
/// samples.visit(2, &mut |block| Ok(sizes.push(block.targets.len())))?;
/// assert_eq!(sizes, [2, 1]);
/// # Ok::<(), toclip_data::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    pub(crate) features: Matrix,
    pub(crate) targets: Vec<f64>,
}

impl Samples {
    /// One target for each row of features.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if their numbers differ or a target is not finite.
    pub fn new(features: Matrix, targets: Vec<f64>) -> Result<Self> {
        if features.rows() != targets.len() {
            bail!("{} rows of features but {} targets", features.rows(), targets.len());
        }
        if let Some(row) = targets.iter().position(|b| !b.is_finite()) {
            bail!("the target of row {} is {}; all must be finite", row + 1, targets[row]);
        }
        Ok(Self { features, targets })
    }
}

impl SampleSource for Samples {
    fn rows(&self) -> usize {
        self.targets.len()
    }

    fn cols(&self) -> usize {
        self.features.cols()
    }

    fn name(&self) -> String {
        "samples in memory".into()
    }

    fn visit(&self, size: usize, visit: BlockVisitor<'_>) -> Result<()> {
        let (size, cols) = (size.max(1), self.cols());
        for (features, targets) in
            self.features.data().chunks(size * cols).zip(self.targets.chunks(size))
        {
            visit(SampleBlock { features, targets, cols })?;
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
        let results = [vec![1.0], vec![1.0, f64::NAN]].map(|b| Samples::new(features.clone(), b));
        insta::assert_snapshot!(crate::testing::messages("".as_ref(), results));
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
