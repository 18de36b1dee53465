//! Images as bytes, and the two classes of the paper as samples.

use crate::Result;
use crate::samples::{BlockVisitor, SampleBlock, SampleSource};

/// The numbers of an image: 32 × 32 pixels of red, then of green, then of blue.
pub const PIXELS: usize = 3 * 32 * 32;

/// The target of each class in the paper's problem: airplane, automobile, bird, cat, deer, dog, frog,
/// horse, ship, truck. Deer, frog, horse and automobile are left out.
const TARGETS: [Option<f64>; 10] = {
    let (minus, plus) = (Some(-1.0), Some(1.0));
    [plus, None, minus, minus, None, minus, None, None, plus, plus]
};

/// Images with their labels, a byte a pixel as they are stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Images {
    pub(super) pixels: Vec<u8>,
    pub(super) labels: Vec<u8>,
}

impl Images {
    /// The bytes of image `i`: 1024 of red, of green and of blue, each row by row.
    pub(super) fn image(&self, i: usize) -> &[u8] {
        &self.pixels[i * PIXELS..(i + 1) * PIXELS]
    }

    /// The mean of every pixel over all images, in $[0, 1]$; the sums are of integers, so exact.
    pub fn pixel_means(&self) -> Vec<f64> {
        let mut sums = vec![0_u64; PIXELS];
        for image in self.pixels.chunks_exact(PIXELS) {
            sums.iter_mut().zip(image).for_each(|(sum, p)| *sum += u64::from(*p));
        }
        let all = 255.0 * self.labels.len() as f64;
        sums.into_iter().map(|sum| sum as f64 / all).collect()
    }

    /// The paper's problem: bird, cat and dog have the target −1, truck, ship and airplane +1.
    ///
    /// The other images are removed in place, without a second copy.
    pub fn into_two_classes(mut self) -> TwoClasses {
        let mut kept = 0;
        for i in 0..self.labels.len() {
            if TARGETS[usize::from(self.labels[i])].is_some() {
                self.pixels.copy_within(i * PIXELS..(i + 1) * PIXELS, kept * PIXELS);
                self.labels[kept] = self.labels[i];
                kept += 1;
            }
        }
        self.pixels.truncate(kept * PIXELS);
        self.labels.truncate(kept);
        self.pixels.shrink_to_fit();
        TwoClasses(self)
    }
}

/// Animals against vehicles: the samples of the paper's figure 1c, pixels in $[0, 1]$, targets ±1.
///
/// Pixels stay bytes; only the block being visited is `f64`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TwoClasses(Images);

impl SampleSource for TwoClasses {
    fn rows(&self) -> usize {
        self.0.labels.len()
    }

    fn cols(&self) -> usize {
        PIXELS
    }

    fn name(&self) -> String {
        "CIFAR-10 (bird, cat, dog against truck, ship, airplane)".into()
    }

    fn visit(&self, size: usize, visit: BlockVisitor<'_>) -> Result<()> {
        let size = size.clamp(1, self.rows().max(1));
        let scaled: [f64; 256] = std::array::from_fn(|p| p as f64 / 255.0);
        let (mut features, mut targets) = (Vec::with_capacity(size * PIXELS), Vec::new());
        let blocks = self.0.pixels.chunks(size * PIXELS).zip(self.0.labels.chunks(size));
        for (pixels, labels) in blocks {
            features.clear();
            features.extend(pixels.iter().map(|p| scaled[usize::from(*p)]));
            targets.clear();
            targets.extend(labels.iter().filter_map(|label| TARGETS[usize::from(*label)]));
            visit(SampleBlock { features: &features, targets: &targets, cols: PIXELS })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images(labels: &[u8]) -> Images {
        let pixels = (0..labels.len() * PIXELS).map(|i| (i / PIXELS * 16 + i % 7) as u8).collect();
        Images { pixels, labels: labels.to_vec() }
    }

    #[test]
    fn six_classes_are_kept_in_order() {
        let all = images(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2]);
        let means = all.pixel_means();
        let by_hand: f64 = (0..11).map(|i| f64::from(all.image(i)[5]) / 255.0).sum::<f64>() / 11.0;
        assert!((means[5] - by_hand).abs() < 1e-15);
        let two = all.clone().into_two_classes();
        assert_eq!(two.0.labels, [0, 2, 3, 5, 8, 9, 2]);
        for size in [1, 3, 100] {
            let (mut features, mut targets) = (Vec::new(), Vec::new());
            two.visit(size, &mut |block| {
                assert!(block.targets.len() <= size && block.cols == PIXELS);
                features.extend_from_slice(block.features);
                targets.extend_from_slice(block.targets);
                Ok(())
            })
            .unwrap();
            assert_eq!(targets, [1.0, -1.0, -1.0, -1.0, 1.0, 1.0, -1.0]);
            for (row, original) in [0, 2, 3, 5, 8, 9, 10].into_iter().enumerate() {
                let expected = all.image(original).iter().map(|p| f64::from(*p) / 255.0);
                assert!(
                    features[row * PIXELS..].iter().copied().zip(expected).all(|(a, b)| a == b)
                );
            }
        }
    }

    #[test]
    fn none_is_no_block() {
        let none = images(&[1, 4]).into_two_classes();
        none.visit(10, &mut |_| unreachable!("no rows, no block")).unwrap();
        assert_eq!(none.rows(), 0);
    }
}
