//! The spectrum of $K$ and the start of the iteration: all that the dynamics depend on.
//!
//! With Gaussian data of covariance $K = \sum_i \lambda_i w_i w_i^\top$ the risk and the distance
//! depend on $K$ only through its eigenvalues $\lambda_i$, and on the start only through
//! $v_i(0) = \langle\theta_0 - \theta^\ast, w_i\rangle^2 / 2$. Four steps, one file each:
//!
//! 1. [`Spectrum`]: eigenvalues, checked, equal ones merged, rescaled so that $\Vert K\Vert = 1$;
//! 2. [`Rescaling`]: converts learning rate, threshold and distance, both ways;
//! 3. [`Start`] gives the $v_i(0)$, and together they are the [`Modes`] of the dynamics;
//! 4. [`Modes::compress`]: a million of them to a few hundred, with a bound on the error.

mod bound;
mod compress;
mod error;
mod marchenko_pastur;
mod modes;
mod rescaling;
mod spec;
mod start;
mod teacher;

pub use bound::Bound;
pub use error::{SpectrumError, StartError};
pub(crate) use modes::GroupLabels;
pub use modes::{Mode, Modes};
pub use rescaling::Rescaling;
pub use spec::SpectrumSpec;
pub use start::Start;
pub use teacher::Alignment;

use crate::error::{Error, Result};
use crate::numerics::sum::compensated;

/// Negative eigenvalues down to this share of the largest are rounding errors of an eigen-solver.
const ROUNDING: f64 = 1e-12;

/// The most eigenvalues that a named spectrum writes out one by one.
const LARGEST: u64 = 100_000_000;

/// $(\lambda_b, n_b)$: an eigenvalue of $K$ and how often it occurs.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// $\lambda_b$.
    pub value: f64,
    /// $n_b$, at least one.
    pub multiplicity: u64,
}

/// $\lambda_1 > \lambda_2 > \dots \ge 0$, the distinct eigenvalues of the covariance $K$ with their
/// multiplicities, scaled so that $\Vert K\Vert = \lambda_1 = 1$.
///
/// The norm it was given with is kept ([`norm`](Self::norm)); [`rescaling`](Self::rescaling)
/// converts the rest of a problem. So is the order in which the eigenvalues were given, which is
/// the order of the coordinates of a [`Start`].
///
/// ```
/// use toclip::spectrum::Spectrum;
/// let k = Spectrum::from_eigenvalues(&[2.0, 8.0, 2.0])?;
/// assert_eq!(k.norm(), 8.0);
/// assert_eq!(k.blocks()[1].value, 0.25);
/// assert_eq!(k.blocks()[1].multiplicity, 2);
/// assert_eq!(k.intrinsic_dim(), 1.5);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrum {
    blocks: Vec<Block>,
    norm: f64,
    ambient: u64,
    trace: f64,
    trace_sq: f64,
    /// Blocks in the order given, where that is not the order of `blocks`.
    given: Option<Vec<CoordinateRun>>,
}

/// The next `count` coordinates of the user belong to block number `block`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CoordinateRun {
    pub(crate) block: usize,
    pub(crate) count: u64,
}

impl Spectrum {
    /// $K = I$ in `dim` dimensions.
    ///
    /// ```
    /// let k = toclip::spectrum::Spectrum::isotropic(1_000_000)?;
    /// assert_eq!((k.len(), k.intrinsic_dim()), (1, 1e6));
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Parameter`] for `dim` = 0.
    pub fn isotropic(dim: u64) -> Result<Self> {
        check_dim(dim, u64::MAX)?;
        Self::from_blocks(&[Block { value: 1.0, multiplicity: dim }])
    }

    /// $\lambda_j = j^{-a}$ for $j = 1, \dots,$ `dim`, with $a$ = `exponent`.
    ///
    /// ```
    /// // Figure 1 of the paper: d = 179.75.
    /// let k = toclip::spectrum::Spectrum::power_law(500, 0.2)?;
    /// assert!((k.intrinsic_dim() - 179.75).abs() < 0.005);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Parameter`] for `dim` = 0 or an exponent that is negative or not finite.
    pub fn power_law(dim: u64, exponent: f64) -> Result<Self> {
        check_dim(dim, LARGEST)?;
        if !(exponent.is_finite() && exponent >= 0.0) {
            return Err(Error::parameter("exponent", exponent, "give a finite number >= 0"));
        }
        Self::from_items((1..=dim).map(|j| ((j as f64).powf(-exponent), 1)).collect())
    }

    /// $\lambda_i$ from a list, in any order.
    ///
    /// Values down to $-10^{-12}\lambda_1$ are treated as rounding of an eigen-solver and set to
    /// zero.
    ///
    /// ```
    /// use toclip::spectrum::Spectrum;
    /// assert_eq!(Spectrum::from_eigenvalues(&[1.0, 0.5, -1e-15])?.blocks()[2].value, 0.0);
    /// let message = Spectrum::from_eigenvalues(&[1.0, -0.5]).unwrap_err().to_string();
    /// assert!(message.contains("eigenvalue 2 of 2 is -0.5"));
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SpectrumError`] for an empty list, a value that is not finite or really negative, or no
    /// positive one.
    pub fn from_eigenvalues(values: &[f64]) -> Result<Self> {
        Self::from_items(values.iter().map(|&value| (value, 1)).collect())
    }

    /// $(\lambda_b, n_b)$ from a list, in any order; equal values are merged.
    ///
    /// ```
    /// use toclip::spectrum::{Block, Spectrum};
    /// let blocks = [(0.5, 300), (1.0, 200)].map(|(value, multiplicity)| Block { value, multiplicity });
    /// assert_eq!(Spectrum::from_blocks(&blocks)?.intrinsic_dim(), 350.0);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`from_eigenvalues`](Self::from_eigenvalues), and for a multiplicity of zero.
    pub fn from_blocks(blocks: &[Block]) -> Result<Self> {
        if let Some(block) = blocks.iter().position(|b| b.multiplicity == 0) {
            return Err(SpectrumError::NoMultiplicity { block, count: blocks.len() }.into());
        }
        Self::from_items(blocks.iter().map(|b| (b.value, b.multiplicity)).collect())
    }

    /// The spectrum of the sample covariance of white data under the distribution of Marchenko and
    /// Pastur: `dim` dimensions, $\gamma$ = `aspect` = dim/samples.
    ///
    /// Eigenvalues are the $(j - \tfrac12)/n$ quantiles of the density
    /// $$\rho(x) = \frac{\sqrt{(\lambda_+ - x)(x - \lambda_-)}}{2\pi\gamma x}, \qquad
    /// \lambda_\pm = (1 \pm \sqrt\gamma)^2,$$
    /// so the same every time. For $\gamma > 1$ the share $1 - 1/\gamma$ of them is zero.
    ///
    /// ```
    /// let k = toclip::spectrum::Spectrum::marchenko_pastur(1000, 0.25)?;
    /// assert!((k.norm() - 2.25).abs() < 0.02);          // (1 + 1/2)^2
    /// assert!((k.norm() * k.trace() / 1000.0 - 1.0).abs() < 1e-3);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Parameter`] for `dim` = 0 or an aspect that is not finite and positive.
    pub fn marchenko_pastur(dim: u64, aspect: f64) -> Result<Self> {
        check_dim(dim, LARGEST)?;
        if !(aspect.is_finite() && aspect > 0.0) {
            let expected = "the aspect is dim/samples, a finite number > 0";
            return Err(Error::parameter("aspect", aspect, expected));
        }
        Self::from_items(marchenko_pastur::quantiles(dim, aspect))
    }

    /// All constructors end here: check, order, merge, normalise.
    fn from_items(mut items: Vec<(f64, u64)>) -> Result<Self> {
        let norm = check_values(&mut items)?;
        let mut ambient: u64 = 0;
        for item in &items {
            ambient = ambient.checked_add(item.1).ok_or(SpectrumError::TooManyDimensions)?;
        }
        let descending = items.is_sorted_by(|a, b| a.0 >= b.0);
        let (blocks, given) = if descending {
            (merge(items.iter().copied(), norm), None)
        } else {
            let mut rank: Vec<usize> = (0..items.len()).collect();
            rank.sort_unstable_by(|&a, &b| items[b].0.total_cmp(&items[a].0));
            let blocks = merge(rank.iter().map(|&i| items[i]), norm);
            let mut given = vec![CoordinateRun { block: 0, count: 0 }; items.len()];
            let mut block = 0;
            for (k, &i) in rank.iter().enumerate() {
                if k > 0 && items[i].0 != items[rank[k - 1]].0 {
                    block += 1;
                }
                given[i] = CoordinateRun { block, count: items[i].1 };
            }
            (blocks, Some(given))
        };
        let weighted = |b: &Block| b.value * b.multiplicity as f64;
        let trace = compensated(blocks.iter().map(weighted));
        let trace_sq = compensated(blocks.iter().map(|b| b.value * weighted(b)));
        Ok(Self { blocks, norm, ambient, trace, trace_sq, given })
    }

    /// $d = \mathrm{Tr}\thinspace K / \Vert K\Vert $, the intrinsic dimension.
    ///
    /// ```
    /// let k = toclip::spectrum::Spectrum::from_eigenvalues(&[4.0, 1.0, 1.0])?;
    /// assert_eq!(k.intrinsic_dim(), 1.5);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn intrinsic_dim(&self) -> f64 {
        self.trace
    }

    /// The number of eigenvalues, zeros and multiplicities counted.
    pub fn ambient_dim(&self) -> u64 {
        self.ambient
    }

    /// $\mathrm{Tr}\thinspace K$ of the rescaled $K$, equal to $d$ since $\Vert K\Vert = 1$.
    pub fn trace(&self) -> f64 {
        self.trace
    }

    /// $\mathrm{Tr}\thinspace K^2$ of the rescaled $K$.
    ///
    /// ```
    /// let k = toclip::spectrum::Spectrum::from_eigenvalues(&[4.0, 2.0, 2.0])?;
    /// assert_eq!(k.trace_sq(), 1.5);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn trace_sq(&self) -> f64 {
        self.trace_sq
    }

    /// $\Vert K\Vert $ as it was given, before the rescaling to one.
    pub fn norm(&self) -> f64 {
        self.norm
    }

    /// The rescaling of the problem that goes with $\Vert K\Vert = 1$.
    ///
    /// ```
    /// let k = toclip::spectrum::Spectrum::from_eigenvalues(&[4.0, 1.0])?;
    /// assert_eq!(k.rescaling().learning_rate(0.1), 0.4);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn rescaling(&self) -> Rescaling {
        Rescaling::of_checked(self.norm)
    }

    /// $(\lambda_b, n_b)$, rescaled, in descending order of $\lambda_b$.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The number of distinct eigenvalues, never zero.
    #[expect(clippy::len_without_is_empty, reason = "a spectrum is never empty")]
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The same spectrum with the blocks split by group, and the group of every block: the first
    /// `sizes[0]` coordinates in the order given are group 0, and so on. Blocks of one eigenvalue
    /// follow each other in the order of their groups.
    fn split(&self, sizes: &[u64]) -> Result<(Self, Vec<usize>)> {
        let total = sizes.iter().try_fold(0_u64, |sum, size| sum.checked_add(*size));
        if total != Some(self.ambient) || sizes.contains(&0) {
            return Err(
                SpectrumError::Groups { sizes: sizes.to_vec(), dimensions: self.ambient }.into()
            );
        }
        // Pieces (block, group, count) in the order given.
        let mut pieces = Vec::new();
        let (mut group, mut left) = (0, sizes.first().copied().unwrap_or(0));
        for run in self.runs() {
            let mut count = run.count;
            while count > 0 {
                if left == 0 {
                    group += 1;
                    left = sizes.get(group).copied().unwrap_or(count);
                }
                let taken = count.min(left);
                pieces.push((run.block, group, taken));
                (count, left) = (count - taken, left - taken);
            }
        }
        let mut order: Vec<(usize, usize)> = pieces.iter().map(|p| (p.0, p.1)).collect();
        order.sort_unstable();
        order.dedup();
        let mut blocks: Vec<Block> = order
            .iter()
            .map(|(block, _)| Block { value: self.blocks[*block].value, multiplicity: 0 })
            .collect();
        let mut given = Vec::with_capacity(pieces.len());
        for (block, group, count) in pieces {
            let place = order.partition_point(|key| *key < (block, group));
            blocks[place].multiplicity += count;
            given.push(CoordinateRun { block: place, count });
        }
        let groups = order.into_iter().map(|(_, group)| group).collect();
        Ok((Self { blocks, given: Some(given), ..self.clone() }, groups))
    }

    /// Which block the coordinates belong to, in the order in which the eigenvalues were given.
    pub(crate) fn runs(&self) -> impl Iterator<Item = CoordinateRun> + '_ {
        let ordered = self.blocks.iter().enumerate();
        let own = ordered.map(|(block, b)| CoordinateRun { block, count: b.multiplicity });
        let own = self.given.is_none().then_some(own);
        own.into_iter().flatten().chain(self.given.iter().flatten().copied())
    }
}

fn check_dim(dim: u64, largest: u64) -> Result<()> {
    if dim == 0 {
        return Err(Error::parameter("dim", 0.0, "give at least 1"));
    }
    if dim > largest {
        let expected = "at most 1e8 eigenvalues are written out one by one; use blocks for more";
        return Err(Error::parameter("dim", dim as f64, expected));
    }
    Ok(())
}

/// Checks the values, clips rounding below zero, and returns the largest.
fn check_values(items: &mut [(f64, u64)]) -> Result<f64> {
    let count = items.len();
    if let Some(index) = items.iter().position(|item| !item.0.is_finite()) {
        return Err(SpectrumError::NotFinite { index, count, value: items[index].0 }.into());
    }
    let norm = items.iter().fold(0.0_f64, |m, item| m.max(item.0));
    for (index, item) in items.iter_mut().enumerate() {
        if item.0 < -ROUNDING * norm {
            return Err(SpectrumError::Negative {
                index,
                count,
                value: item.0,
                largest: norm,
                rounding: ROUNDING,
            }
            .into());
        }
        // Also turns -0 into 0, which the ordering would keep apart.
        item.0 = if item.0 > 0.0 { item.0 } else { 0.0 };
    }
    if norm == 0.0 {
        let error = if count == 0 { SpectrumError::Empty } else { SpectrumError::AllZero };
        return Err(error.into());
    }
    Ok(norm)
}

/// Runs of equal values in a descending list, divided by `norm`.
fn merge(descending: impl Iterator<Item = (f64, u64)>, norm: f64) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::with_capacity(descending.size_hint().0);
    let mut last = f64::NAN;
    for (value, multiplicity) in descending {
        match blocks.last_mut() {
            // Equal as given: dividing could make neighbours equal, which would upset `given`.
            Some(block) if value == last => block.multiplicity += multiplicity,
            _ => blocks.push(Block { value: value / norm, multiplicity }),
        }
        last = value;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn power_law_dimensions_are_those_of_the_paper() {
        assert!((Spectrum::power_law(500, 0.2).unwrap().intrinsic_dim() - 179.75).abs() < 5e-3);
        let sixth = Spectrum::power_law(500, 1.0 / 6.0).unwrap();
        assert!((sixth.intrinsic_dim() - 212.46).abs() < 5e-3);
        // Tr K^2 of exponent 1 in infinite dimension is pi^2/6; the tail is 1/n - 1/(2 n^2).
        let harmonic = Spectrum::power_law(100_000, 1.0).unwrap();
        let tail = 1e-5 - 0.5e-10;
        let exact = std::f64::consts::PI.powi(2) / 6.0 - tail;
        assert!((harmonic.trace_sq() - exact).abs() < 1e-14);
    }

    #[test]
    fn flat_power_law_and_isotropic_are_the_same() {
        let flat = Spectrum::power_law(30, 0.0).unwrap();
        assert_eq!(flat.blocks(), Spectrum::isotropic(30).unwrap().blocks());
        assert_eq!(flat.ambient_dim(), 30);
    }

    #[test]
    fn runs_follow_the_order_given() {
        let k = Spectrum::from_eigenvalues(&[1.0, 3.0, 0.0, 1.0, 2.0]).unwrap();
        let order: Vec<usize> = k.runs().map(|r| r.block).collect();
        assert_eq!(order, [2, 0, 3, 2, 1]);
        let k = Spectrum::power_law(3, 1.0).unwrap();
        assert_eq!(k.runs().map(|r| r.block).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn bad_input_is_refused_with_a_message() {
        let message = |values: &[f64]| Spectrum::from_eigenvalues(values).unwrap_err().to_string();
        assert!(message(&[]).contains("the list is empty"));
        assert!(message(&[0.0, 0.0]).contains("all are zero"));
        assert!(message(&[1.0, f64::NAN]).contains("eigenvalue 2 of 2 is NaN"));
        assert!(message(&[f64::INFINITY]).contains("finite"));
        assert!(message(&[1.0, -1e-11]).contains("none below zero"));
        assert!(message(&[-1.0]).contains("none below zero"));
        assert!(Spectrum::isotropic(0).unwrap_err().to_string().contains("dim = 0"));
        assert!(Spectrum::power_law(5, -1.0).is_err() && Spectrum::power_law(5, f64::NAN).is_err());
        assert!(Spectrum::power_law(u64::MAX, 1.0).unwrap_err().to_string().contains("blocks"));
        assert!(Spectrum::marchenko_pastur(5, 0.0).is_err());
        let none = Block { value: 1.0, multiplicity: 0 };
        assert!(Spectrum::from_blocks(&[none]).unwrap_err().to_string().contains("block 1 of 1"));
        let half = Block { value: 1.0, multiplicity: 1 << 63 };
        assert!(Spectrum::from_blocks(&[half, half]).is_err());
    }

    proptest! {
        #[test]
        fn invariants(values in prop::collection::vec(0_u8..20, 1..60), scale in 1e-9_f64..1e9) {
            let values: Vec<f64> = values.iter().map(|&v| scale * f64::from(v)).collect();
            prop_assume!(values.iter().any(|v| *v > 0.0));
            let k = Spectrum::from_eigenvalues(&values).unwrap();
            prop_assert_eq!(k.blocks()[0].value, 1.0);
            prop_assert!(k.blocks().is_sorted_by(|a, b| a.value > b.value));
            prop_assert_eq!(k.ambient_dim(), values.len() as u64);
            prop_assert_eq!(k.blocks().iter().map(|b| b.multiplicity).sum::<u64>(), k.ambient_dim());
            let largest = values.iter().copied().fold(0.0, f64::max);
            let trace: f64 = values.iter().map(|v| v / largest).sum();
            prop_assert!((k.trace() - trace).abs() < 1e-13 * trace);
            // The runs give back the list.
            let back: Vec<f64> = k
                .runs()
                .flat_map(|r| std::iter::repeat_n(k.blocks()[r.block].value, r.count as usize))
                .collect();
            prop_assert_eq!(back.len(), values.len());
            for (a, b) in back.iter().zip(&values) {
                prop_assert!((a * largest - b).abs() <= 1e-15 * largest);
            }
        }
    }
}
