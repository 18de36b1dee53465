//! The candidate thresholds, and the sums of all stretches at each of them.

use super::advice::Evidence;
use super::estimates::Product;
use super::stretches::{ClipSums, StretchSums, Stretches};

/// How many candidates there are.
pub(super) const CANDIDATES: usize = 64;
/// Bins between, below and above them.
pub(super) const BINS: usize = CANDIDATES + 1;

/// Candidates go from $2^{-4}$ to $2^6$ times the scale, evenly in the logarithm: 12 percent apart,
/// finer than any threshold matters.
const LOWEST: f64 = -4.0 * std::f64::consts::LN_2;
pub(super) const STEP: f64 = 10.0 * std::f64::consts::LN_2 / (CANDIDATES - 1) as f64;

/// Candidate `k` as a multiple of the scale.
pub(super) fn multiple(k: usize) -> f64 {
    (LOWEST + STEP * k as f64).exp()
}

/// The candidate next to $\ln u$.
pub(super) fn nearest(log: f64) -> usize {
    (((log - LOWEST) / STEP).round() as usize).min(CANDIDATES - 1)
}

/// The bin of $\ln u$: as many candidates are less than $u$.
pub(super) fn bin(log: f64) -> usize {
    // The cast saturates: below all candidates it is zero.
    (((log - LOWEST) / STEP).ceil() as usize).min(CANDIDATES)
}

/// Sums by stretch, oldest first, at one threshold.
#[derive(Debug, Clone, Default)]
pub(super) struct ThresholdSums {
    pub above: Vec<f64>,
    /// $\sum \min(1, \tau/G)$.
    pub step: Vec<f64>,
    /// The numerator of $\mu$: $\sum 1\[G \le \tau\] + (1-1/N)\tau/G\thinspace 1\[G > \tau\]$.
    pub mu: Vec<f64>,
    pub square: Vec<f64>,
    pub inner: Vec<f64>,
    pub excess: Vec<f64>,
}

/// Sums by stretch.
#[derive(Debug, Clone)]
pub(super) struct StretchTable {
    pub whole: Vec<StretchSums>,
    pub count: Vec<f64>,
    pub square: Vec<f64>,
    pub inner: Vec<f64>,
    pub candidates: Vec<ThresholdSums>,
    pub watched: ThresholdSums,
}

impl StretchTable {
    pub fn new(blocks: &Stretches, kept: f64) -> Self {
        let mut table = StretchTable {
            whole: Vec::new(),
            count: Vec::new(),
            square: Vec::new(),
            inner: Vec::new(),
            candidates: vec![ThresholdSums::default(); CANDIDATES],
            watched: ThresholdSums::default(),
        };
        for block in blocks.iter() {
            let whole = block.whole;
            table.whole.push(whole);
            table.count.push(whole.count);
            table.square.push(whole.square);
            table.inner.push(whole.inner);
            let clips = block.at_candidates();
            let columns = table.candidates.iter_mut().chain([&mut table.watched]);
            for (column, clip) in columns.zip(clips.iter().chain([&block.watched])) {
                column.add(clip, whole.count, kept);
            }
        }
        table
    }

    /// The same of some stretches only.
    pub fn only(&self, kept: &[usize]) -> StretchTable {
        StretchTable {
            whole: kept.iter().map(|b| self.whole[*b]).collect(),
            count: pick(&self.count, kept),
            square: pick(&self.square, kept),
            inner: pick(&self.inner, kept),
            candidates: self.candidates.iter().map(|at| at.only(kept)).collect(),
            watched: self.watched.only(kept),
        }
    }

    pub fn blocks(&self) -> usize {
        self.whole.len()
    }

    pub fn steps(&self) -> f64 {
        self.count.iter().sum()
    }

    /// $\mu$ from norms or from inner products.
    pub fn mu(&self, at: &ThresholdSums, from: Evidence) -> Option<Product> {
        match from {
            Evidence::Norms => Product::new(&[(&at.mu, 1.0), (&self.count, -1.0)]),
            Evidence::Direct => Product::new(&[(&at.inner, 1.0), (&self.inner, -1.0)]),
        }
    }

    /// $\mu^a/\nu$: CSC for $a = 1$, CCC for $a = 2$.
    pub fn criterion(&self, at: &ThresholdSums, from: Evidence, power: f64) -> Option<Product> {
        let (mu, count) = match from {
            Evidence::Norms => (&at.mu, &self.count),
            Evidence::Direct => (&at.inner, &self.inner),
        };
        Product::new(&[(mu, power), (count, -power), (&self.square, 1.0), (&at.square, -1.0)])
    }

    /// Whether the inner products' sum is known well enough to divide by: four standard errors.
    pub fn direct(&self) -> bool {
        let with: f64 = self.whole.iter().map(|w| w.inners).sum();
        // A step without inner product would count in ν and not in μ.
        with == self.steps()
            && Product::new(&[(&self.inner, 1.0), (&self.count, -1.0)])
                .is_some_and(|mean| mean.error() < 0.25)
    }
}

impl ThresholdSums {
    fn add(&mut self, clip: &ClipSums, count: f64, kept: f64) {
        self.above.push(clip.above);
        self.step.push(count - clip.above + clip.ratio);
        self.mu.push(count - clip.above + kept * clip.ratio);
        self.square.push(clip.square);
        self.inner.push(clip.inner);
        self.excess.push(clip.excess);
    }

    /// The same of some stretches only.
    pub fn only(&self, kept: &[usize]) -> ThresholdSums {
        ThresholdSums {
            above: pick(&self.above, kept),
            step: pick(&self.step, kept),
            mu: pick(&self.mu, kept),
            square: pick(&self.square, kept),
            inner: pick(&self.inner, kept),
            excess: pick(&self.excess, kept),
        }
    }

    /// Norms above.
    pub fn exceedances(&self) -> f64 {
        self.above.iter().sum()
    }
}

fn pick(sums: &[f64], kept: &[usize]) -> Vec<f64> {
    kept.iter().map(|b| sums[*b]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_bin_is_the_number_of_candidates_below() {
        for u in [1e-9_f64, 0.06, 0.0626, 0.5, 1.0, 3.0, 63.9, 64.1, 1e9] {
            let below = (0..CANDIDATES).filter(|k| multiple(*k) < u).count();
            assert_eq!(bin(u.ln()), below, "{u}");
        }
        assert!((multiple(CANDIDATES - 1) - 64.0).abs() < 1e-12);
        assert!((0..CANDIDATES).all(|k| nearest(multiple(k).ln() + 0.4 * STEP) == k));
        assert_eq!([nearest(-90.0), nearest(90.0)], [0, CANDIDATES - 1]);
    }
}
