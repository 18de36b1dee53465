//! Residuals from data as the distribution of the noise.

use super::{Feature, Noise, NoiseError, mixture::normal_density, spread};
use crate::error::{Error, Result};
use crate::factors::batch::SquaredResidual;
use crate::factors::batch::squared_residual::TransformShape;
use crate::factors::kernel::{Moments, clipped_normal};
use crate::numerics::gauss_rules::gauss_rule;
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Points of a Gauss rule on a piece of the data.
///
/// On a piece of half-width $\delta$ a $q$-point rule misses a kernel of width $s$ by at most
/// $2(\delta/2s)^{2q}/\sqrt{(2q)!}$, since $|\Phi^{(k)}| \le \sqrt{k!}$: below $10^{-17}$ for
/// $q = 16$ and $\delta \le 2s$.
const RULE: usize = 16;
/// Widest piece, in units of the kernel, on which the Gauss rule replaces the data.
const WIDEST: f64 = 4.0;
/// Pieces of at most this many points are summed as they are.
const LEAF: usize = 64;
/// The most residuals for which the ways to draw a batch may be few.
const FEW: usize = 64;
/// The most features that such a distribution reports.
const FEATURES: usize = 1000;
/// Distance from the threshold, in units of the kernel, beyond which a piece is fully clipped or not
/// at all.
const REACH: f64 = 9.0;

/// Empirical noise: $\epsilon$ is one of $n$ observed residuals, each with probability $1/n$.
///
/// $\mu = \frac1n \sum_i \mu_{N(e_i, 2R)}$, likewise $m^{(2)}$. The sum is not taken over the data:
/// the sorted residuals form a tree of pieces, each with a 16-point Gauss rule that replaces it
/// wherever it is narrow compared with $\sqrt{2R}$, so an evaluation costs a few hundred kernels
/// however many residuals there are. Up to 64 residuals the sum is exact to rounding; beyond, $\mu$
/// and $m^{(2)}/\min(c^2, E X^2)$ have an absolute error below $10^{-14}$, or the change from
/// moving each residual by a unit in its last place, whichever is larger.
///
/// ```
/// use toclip::noise::{Empirical, Noise};
/// let noise = Empirical::new(&[-1.0, 0.5, 2.0, 0.5])?;
/// assert_eq!(noise.mean(), Some(0.5));
/// assert_eq!(noise.clipped(0.0, 1.0).mu, 0.75);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct Empirical {
    data: Arc<Data>,
}

#[derive(Debug)]
struct Data {
    sorted: Vec<f64>,
    root: Piece,
    mean: f64,
    variance: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    values: Vec<f64>,
}

impl TryFrom<Raw> for Empirical {
    type Error = Error;
    fn try_from(raw: Raw) -> Result<Self> {
        Empirical::new(&raw.values)
    }
}

impl From<Empirical> for Raw {
    fn from(noise: Empirical) -> Self {
        Raw { values: noise.data.sorted.clone() }
    }
}

impl PartialEq for Empirical {
    fn eq(&self, other: &Self) -> bool {
        self.data.sorted == other.data.sorted
    }
}

impl Empirical {
    /// From the residuals $e_1, \dots, e_n$, in any order.
    ///
    /// # Errors
    /// [`NoiseError`] if there are none or one is not finite, with its position.
    pub fn new(values: &[f64]) -> Result<Self> {
        if values.is_empty() {
            return Err(NoiseError::NoResiduals.into());
        }
        if let Some(index) = values.iter().position(|x| !(x.abs() <= 1e150)) {
            return Err(NoiseError::Residual { index, value: values[index] }.into());
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / n;
        let variance = sorted.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / n;
        let root = Piece::new(&sorted);
        Ok(Empirical { data: Arc::new(Data { sorted, root, mean, variance }) })
    }

    /// How many residuals there are.
    pub fn count(&self) -> usize {
        self.data.sorted.len()
    }
}

/// A contiguous run of the sorted residuals.
#[derive(Debug)]
struct Piece {
    low: f64,
    high: f64,
    count: f64,
    sum_sq: f64,
    /// Nodes and weights that stand for the piece: a Gauss rule, or the points themselves.
    rule: Vec<(f64, f64)>,
    halves: Option<Box<[Piece; 2]>>,
}

impl Piece {
    fn new(sorted: &[f64]) -> Self {
        let (low, high) = (sorted[0], sorted[sorted.len() - 1]);
        let count = sorted.len() as f64;
        let middle = low + 0.5 * (high - low);
        let split = sorted.partition_point(|&e| e <= middle);
        // One value repeated, or two values with nothing between them, cannot be halved.
        if sorted.len() <= LEAF || split == sorted.len() || split == 0 {
            let rule = if low == high {
                vec![(low, count)]
            } else {
                sorted.iter().map(|&e| (e, 1.0)).collect()
            };
            let sum_sq = sorted.iter().map(|e| e * e).sum();
            return Piece { low, high, count, sum_sq, rule, halves: None };
        }
        let halves = [Piece::new(&sorted[..split]), Piece::new(&sorted[split..])];
        let (points, weights): (Vec<f64>, Vec<f64>) =
            halves.iter().flat_map(|half| &half.rule).copied().unzip();
        let rule = gauss_rule(&points, &weights, RULE);
        let sum_sq = halves[0].sum_sq + halves[1].sum_sq;
        Piece { low, high, count, sum_sq, rule, halves: Some(Box::new(halves)) }
    }

    /// Whether the rule is as good as the points for a kernel of width `s`.
    fn is_narrow(&self, s: f64) -> bool {
        self.halves.is_none() || self.high - self.low <= WIDEST * s
    }

    fn add_clipped(&self, s: f64, c: f64, sum: &mut Moments) {
        let furthest = self.low.abs().max(self.high.abs());
        let nearest = if self.low <= 0.0 && self.high >= 0.0 {
            0.0
        } else {
            self.low.abs().min(self.high.abs())
        };
        if furthest + REACH * s < c {
            sum.add(1.0, Moments { mu: self.count, m2: self.sum_sq + self.count * s * s });
        } else if nearest - REACH * s > c && self.halves.is_some() {
            sum.add(self.count, Moments { mu: 0.0, m2: c * c });
        } else if let (false, Some(halves)) = (self.is_narrow(s), &self.halves) {
            halves.iter().for_each(|half| half.add_clipped(s, c, sum));
        } else {
            for &(e, weight) in &self.rule {
                sum.add(weight, clipped_normal(e, s, c));
            }
        }
    }

    /// Adds $(w_j, e_j)$ that stand for the data to a kernel of width `s`.
    fn add_means(&self, s: f64, means: &mut Vec<(f64, f64)>) {
        match &self.halves {
            Some(halves) if self.high - self.low > WIDEST * s => {
                halves.iter().for_each(|half| half.add_means(s, means));
            }
            _ => means.extend(self.rule.iter().map(|&(e, weight)| (weight, e))),
        }
    }

    /// Adds the narrow pieces below this one; false if there are too many.
    fn add_features(&self, s: f64, features: &mut Vec<Feature>) -> bool {
        if let (false, Some(halves)) = (self.is_narrow(s), &self.halves) {
            return halves.iter().all(|half| half.add_features(s, features));
        }
        if self.high - self.low <= WIDEST * s {
            let middle = self.low + 0.5 * (self.high - self.low);
            features.push(Feature::new(-middle, s.hypot(0.5 * (self.high - self.low))));
        } else {
            features.extend(self.rule.iter().map(|&(e, _)| Feature::new(-e, s)));
        }
        features.len() <= FEATURES
    }

    fn add_density(&self, s: f64, x: f64, sum: &mut (f64, f64)) {
        if let (false, Some(halves)) = (self.is_narrow(s), &self.halves) {
            for half in halves.iter() {
                // The noise enters the residual with its sign turned.
                if -half.high - REACH * s <= x && x <= -half.low + REACH * s {
                    half.add_density(s, x, sum);
                }
            }
            return;
        }
        for &(e, weight) in &self.rule {
            let (f, df) = normal_density(x, -e, s);
            sum.0 += weight * f;
            sum.1 += weight * df;
        }
    }
}

impl Noise for Empirical {
    fn describe(&self) -> String {
        format!("empirical ({} residuals)", self.count())
    }

    fn sample(&self, rng: &mut dyn Rng) -> f64 {
        self.data.sorted[rng.random_range(0..self.count())]
    }

    fn mean(&self) -> Option<f64> {
        Some(self.data.mean)
    }

    fn second_moment(&self) -> f64 {
        self.data.root.sum_sq / self.data.root.count
    }

    fn variance(&self) -> f64 {
        self.data.variance
    }

    fn clipped(&self, r: f64, c: f64) -> Moments {
        let second_moment = 2.0 * r + self.second_moment();
        if c == f64::INFINITY {
            return Moments::open(second_moment);
        }
        let mut sum = Moments::default();
        self.data.root.add_clipped(spread(r), c, &mut sum);
        let n = self.data.root.count;
        Moments { mu: sum.mu / n, m2: sum.m2 / n }.within(c, second_moment)
    }

    fn residual_density(&self, r: f64, x: f64) -> Option<(f64, f64)> {
        if r == 0.0 {
            return Some((0.0, 0.0));
        }
        let mut sum = (0.0, 0.0);
        self.data.root.add_density(spread(r), x, &mut sum);
        let n = self.data.root.count;
        Some((sum.0 / n, sum.1 / n))
    }

    fn atoms(&self) -> Vec<(f64, f64)> {
        let weight = 1.0 / self.count() as f64;
        self.data.sorted.iter().map(|e| (weight, -e)).collect()
    }

    /// Not where the residuals are further apart than the kernel is wide, and too many to visit one
    /// by one.
    fn is_resolved(&self, r: f64) -> bool {
        // A kernel as wide as this never sees more pieces than are allowed.
        let (s, root) = (spread(r), &self.data.root);
        let wide = root.high - root.low <= 0.5 * FEATURES as f64 * s;
        wide || self.count() <= FEATURES || root.add_features(s, &mut Vec::new())
    }

    fn squared_residual(&self, r: f64) -> Option<SquaredResidual> {
        // Below this the residuals can be treated as points, with an error of this size.
        let v = (2.0 * r).max(1e-6 * self.second_moment());
        let few = self.count() <= FEW && 2.0 * r < v;
        let mut means = Vec::new();
        self.data.root.add_means(v.sqrt(), &mut means);
        means.iter_mut().for_each(|m| m.0 /= self.data.root.count);
        let squared = SquaredResidual::located(means, v, TransformShape::Atoms(v));
        let squared = squared.exact_if(2.0 * r >= v);
        if few {
            let weight = 1.0 / self.count() as f64;
            return Some(squared.of_atoms(self.data.sorted.iter().map(|x| (weight, *x)), 2.0 * r));
        }
        Some(squared)
    }

    /// One feature for each piece of the data that is narrow against the kernel. With more than
    /// a thousand such pieces, as many quantiles: a search then sees the data at that resolution.
    fn features(&self, r: f64) -> Vec<Feature> {
        let (s, n) = (spread(r), self.count());
        let std = self.data.variance.sqrt();
        let mut features = vec![Feature::new(-self.data.mean, s.hypot(std))];
        if self.data.root.add_features(s, &mut features) {
            return features;
        }
        features.truncate(1);
        let quantile = |k: usize| self.data.sorted[k * (n - 1) / FEATURES];
        for k in 0..FEATURES {
            features.push(Feature::new(-quantile(k), s.hypot(quantile(k + 1) - quantile(k))));
        }
        features
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_distr::{Distribution, StandardNormal};

    fn brute(values: &[f64], r: f64, c: f64) -> Moments {
        // In short runs: twenty thousand equal terms in one sum would drift by 1e-12.
        let mut total = Moments::default();
        for run in values.chunks(128) {
            let mut sum = Moments::default();
            run.iter().for_each(|&e| sum.add(1.0, clipped_normal(e, spread(r), c)));
            total.add(1.0 / values.len() as f64, sum);
        }
        total
    }

    #[test]
    fn the_tree_agrees_with_the_sum_over_all_residuals() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        // A bell, a far cluster, repeated values and one wild outlier.
        let mut values: Vec<f64> = (0..20_000)
            .map(|i| {
                let z: f64 = StandardNormal.sample(&mut rng);
                if i % 10 == 0 { 5.0 + 0.01 * z } else { z }
            })
            .collect();
        values.extend([0.25; 500]);
        values.push(-3e6);
        let noise = Empirical::new(&values).unwrap();
        for r in [0.0, 1e-12, 1e-6, 1e-3, 0.1, 1.0, 100.0, 1e9] {
            for c in [1e-4, 0.03, 0.25, 1.0, 4.999, 5.0, 20.0, 1e4, 1e8] {
                let (got, want) = (noise.clipped(r, c), brute(&values, r, c));
                let size = (c * c).min(2.0 * r + noise.second_moment());
                assert!((got.mu - want.mu).abs() < 1e-13, "mu at {r}, {c}: {got:?} {want:?}");
                assert!(
                    (got.m2 - want.m2).abs() < 1e-13 * size,
                    "m2 at {r}, {c}: {got:?} {want:?}"
                );
            }
        }
        let (f, df) = noise.residual_density(0.01, 0.4).unwrap();
        let direct = values.iter().map(|&e| normal_density(0.4, -e, spread(0.01)));
        let (g, dg) = direct.fold((0.0, 0.0), |(f, df), (g, dg)| (f + g, df + dg));
        let n = values.len() as f64;
        assert!((f / (g / n) - 1.0).abs() < 1e-12 && (df / (dg / n) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn few_residuals_are_exact_even_deep_in_the_tail() {
        let noise = Empirical::new(&[10.0, 11.0]).unwrap();
        let (got, want) = (noise.clipped(0.5, 0.1), brute(&[10.0, 11.0], 0.5, 0.1));
        assert!(got.mu > 0.0 && (got.mu / want.mu - 1.0).abs() < 1e-14);
    }

    #[test]
    fn refuses_invalid_data() {
        assert!(Empirical::new(&[]).is_err());
        let nan = Empirical::new(&[1.0, f64::NAN]).unwrap_err().to_string();
        assert!(nan.contains("number 2 is NaN"), "{nan}");
    }
}
