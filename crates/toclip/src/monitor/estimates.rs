//! Confidence intervals, and estimates from the norms: the factors at a threshold, and the tail.

use super::advice::Evidence;
use super::candidates::{StretchTable, ThresholdSums};
use crate::student_critical;
use serde::{Deserialize, Serialize};

/// An estimate and its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a number lies inside.
    ///
    /// ```
    /// use toclip::monitor::Interval;
    /// assert!(Interval { value: 1.0, low: 0.5, high: 2.0 }.contains(0.5));
    /// ```
    pub fn contains(&self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }
}

/// A product of powers of sums, known by the share of each stretch in its logarithm:
/// $\ln f = \sum_j a_j \ln \sum_b S_{jb}$ moves with stretch $b$ by $\sum_j a_j S_{jb}/\sum_b
/// S_{jb}$ (the delta method). All estimates here are such products.
#[derive(Debug, Clone)]
pub(super) struct Product {
    pub log: f64,
    /// Shares of the stretches; they sum to zero where $f$ does not change with the number of
    /// steps.
    pub shares: Vec<f64>,
}

impl Product {
    /// $\prod_j (\sum_b S_{jb})^{a_j}$; `None` unless all sums are positive.
    pub fn new(factors: &[(&[f64], f64)]) -> Option<Self> {
        let blocks = factors.first().map_or(0, |(sums, _)| sums.len());
        let mut product = Product { log: 0.0, shares: vec![0.0; blocks] };
        for (sums, power) in factors {
            let total: f64 = sums.iter().sum();
            if !(total > 0.0) {
                return None;
            }
            product.log += power * total.ln();
            product.shares.iter_mut().zip(*sums).for_each(|(share, s)| *share += power * s / total);
        }
        Some(product)
    }

    /// The ratio to another.
    pub fn over(mut self, other: &Product) -> Self {
        self.log -= other.log;
        self.shares.iter_mut().zip(&other.shares).for_each(|(a, b)| *a -= b);
        self
    }

    /// The standard error of the logarithm.
    pub fn error(&self) -> f64 {
        variance(&self.shares).sqrt()
    }

    /// The interval with critical value $t$, allowing for skewness.
    ///
    /// A gain that comes from a few large norms is skewed: a run that happens to lack them shows
    /// both too small a gain and too small an error, and a symmetric interval lies below the truth
    /// several times as often as its confidence allows. Hall's cubic transformation (Hall 1992,
    /// equation 3.3) takes the skewness of the stretches out of Student's statistic.
    pub fn interval(&self, t: f64) -> Interval {
        let error = self.error();
        Interval {
            value: self.log.exp(),
            low: (self.log - error * self.unskewed(t)).exp(),
            high: (self.log - error * self.unskewed(-t)).exp(),
        }
    }

    /// A lower bound of $\ln f$: symmetric or allowing for skewness, whichever is less.
    pub fn at_least(&self, t: f64) -> f64 {
        self.log - self.error() * self.unskewed(t).max(t)
    }

    /// The inverse of Hall's transformation, $\frac{3}{\gamma}\bigl(\sqrt\[3\]{1 + \gamma(x -
    /// \gamma/6)} - 1\bigr)$ with $\gamma$ the skewness of the sum.
    fn unskewed(&self, x: f64) -> f64 {
        let squares: f64 = self.shares.iter().map(|s| s * s).sum();
        let cubes: f64 = self.shares.iter().map(|s| s * s * s).sum();
        let skew = cubes / squares.powf(1.5);
        // Below this skewness the transformation differs from x by less than its own rounding.
        // Where it is steep its result has no bound; in simulations twice the symmetric distance
        // covers as often.
        if !(skew.abs() > 1e-5) {
            return x;
        }
        let reach = 2.0 * x.abs();
        (3.0 / skew * ((1.0 + skew * (x - skew / 6.0)).cbrt() - 1.0)).clamp(-reach, reach)
    }

    /// For an $f$ between zero and one: the interval is symmetric in $\ln (f/(1-f))$, and stays
    /// between them.
    pub fn interval_of_share(&self, t: f64) -> Interval {
        let value = self.log.exp().min(1.0);
        let rest = -self.log.min(0.0).exp_m1();
        if rest <= 0.0 {
            return Interval { value: 1.0, low: 1.0, high: 1.0 };
        }
        // The derivative of ln f − ln(1−f) by ln f is 1/(1−f).
        let reach = (t * self.error() / rest).exp();
        Interval {
            value,
            low: value / (value + rest * reach),
            high: value * reach / (value * reach + rest),
        }
    }
}

/// The variance of a sum over stretches, from their shares in it.
///
/// Neighbouring stretches that are still correlated add twice their covariance; a negative estimate
/// of it is ignored.
pub(super) fn variance(shares: &[f64]) -> f64 {
    let k = shares.len() as f64;
    let own: f64 = shares.iter().map(|s| s * s).sum();
    let next: f64 = shares.windows(2).map(|w| w[0] * w[1]).sum();
    (own + 2.0 * next.max(0.0)) * k / (k - 1.0).max(1.0)
}

/// An interval for a share of steps (Wilson 1927), for as many independent steps as the error of
/// the share is worth; `inflation` says how many steps count for one where all or none are above.
pub(super) fn wilson(above: &[f64], counts: &[f64], inflation: f64, t: f64) -> Interval {
    let (a, n) = (above.iter().sum::<f64>(), counts.iter().sum::<f64>());
    let p = a / n;
    let shares: Vec<f64> = above.iter().zip(counts).map(|(a, n_b)| (a - p * n_b) / n).collect();
    let error = variance(&shares);
    let worth = if error > 0.0 { (p * (1.0 - p) / error).min(n) } else { n / inflation };
    let z = t * t / worth;
    let centre = (p + 0.5 * z) / (1.0 + z);
    let reach = (z * (p * (1.0 - p) + 0.25 * z)).sqrt() / (1.0 + z);
    Interval {
        value: p,
        low: (centre - reach).max(0.0).min(p),
        high: (centre + reach).min(1.0).max(p),
    }
}

/// The critical value of a single interval from so many stretches.
pub(super) fn single(confidence: f64, blocks: usize) -> f64 {
    student_critical(confidence, blocks.max(2) - 1)
}

/// What clipping at one threshold $\tau$ does to gradients of norm $G$.
///
/// | field | symbol | |
/// |---|---|---|
/// | `clip_fraction` | $P(G > \tau)$ | how often it fires |
/// | `step_factor` | $E\min(1, \tau/G)$ | the mean factor of a step |
/// | `mu_single` | $P(G \le \tau)$ | the share of the descent that is kept, for single samples |
/// | `mu` | $P(G \le \tau) + (1-\tfrac1N) E\[\tau/G; G > \tau\]$ | the same for batches of $N$ residual components |
/// | `nu` | $E\min(G^2, \tau^2)/E G^2$ | the share of the variance that is kept |
/// | `csc` | $\mu/\nu$ | above one: larger learning rates are stable |
/// | `ccc` | $\mu^2/\nu$ | above one: better than any learning rate without clipping |
///
/// Intervals hold for each number by itself. Above the largest norm, $\nu$ is estimated as one
/// without an interval: `exceedances` is the number of norms behind an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimates {
    /// $\tau$, at the present scale.
    pub threshold: f64,
    /// $\tau$ over the scale; for a watched number, over the present scale.
    pub multiple: f64,
    /// Norms above $\tau$.
    pub exceedances: u64,
    /// $P(G > \tau)$.
    pub clip_fraction: Interval,
    /// $E\min(1, \tau/G)$.
    pub step_factor: Interval,
    /// $P(G \le \tau)$.
    pub mu_single: Interval,
    /// $\mu$, batch form.
    pub mu: Interval,
    /// $\nu$.
    pub nu: Interval,
    /// CSC $= \mu/\nu$.
    pub csc: Interval,
    /// CCC $= \mu^2/\nu$.
    pub ccc: Interval,
    /// $\mu$, CSC and CCC from inner products, where enough were given.
    pub direct: Option<Direct>,
}

/// The direct form: $\mu = \langle E \operatorname{clip} g, E g\rangle/\Vert E g\Vert ^2$.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Direct {
    /// $\mu$; above one where large gradients point the wrong way.
    pub mu: Interval,
    /// CSC $= \mu/\nu$.
    pub csc: Interval,
    /// CCC $= \mu^2/\nu$.
    pub ccc: Interval,
}

const NOTHING: Interval = Interval { value: f64::NAN, low: 0.0, high: f64::INFINITY };

impl Estimates {
    pub(super) fn new(
        table: &StretchTable,
        at: &ThresholdSums,
        threshold: f64,
        multiple: f64,
        t: f64,
    ) -> Self {
        let inflation = inflation(table);
        let clip_fraction = wilson(&at.above, &table.count, inflation, t);
        let mu_single = Interval {
            value: 1.0 - clip_fraction.value,
            low: 1.0 - clip_fraction.high,
            high: 1.0 - clip_fraction.low,
        };
        // Where no norm was clipped, the only uncertainty is how many could have been: the share
        // kept is at least the share not clipped.
        let share = |product: Option<Product>| {
            let mut interval = product.map_or(NOTHING, |p| p.interval_of_share(t));
            if clip_fraction.value == 0.0 {
                interval.low = mu_single.low;
            }
            interval
        };
        let step_factor = share(Product::new(&[(&at.step, 1.0), (&table.count, -1.0)]));
        let single = at.mu.iter().zip(&at.above).zip(&table.count).all(|((m, a), n)| *m == n - a);
        let mu = if single { mu_single } else { share(table.mu(at, Evidence::Norms)) };
        let nu = Product::new(&[(&at.square, 1.0), (&table.square, -1.0)]);
        let criterion = |evidence, power| {
            table.criterion(at, evidence, power).map_or(NOTHING, |product| product.interval(t))
        };
        let direct =
            table.direct().then(|| table.mu(at, Evidence::Direct)).flatten().map(|mu| Direct {
                mu: mu.interval(t),
                csc: criterion(Evidence::Direct, 1.0),
                ccc: criterion(Evidence::Direct, 2.0),
            });
        Estimates {
            threshold,
            multiple,
            exceedances: at.exceedances() as u64,
            clip_fraction,
            step_factor,
            mu_single,
            mu,
            nu: nu.map_or(NOTHING, |p| p.interval_of_share(t)),
            csc: criterion(Evidence::Norms, 1.0),
            ccc: criterion(Evidence::Norms, 2.0),
            direct,
        }
    }
}

/// How many steps count for one independent step, by the means of $(\ln u)^2$: the spread of their
/// means over that of single steps, which for near normal $\ln u$ is $2 E\[(\ln u)^2\]^2$.
pub(super) fn inflation(table: &StretchTable) -> f64 {
    let squares: Vec<f64> = table.whole.iter().map(|w| w.log_square).collect();
    let relative = Product::new(&[(&squares, 1.0), (&table.count, -1.0)]);
    relative.map_or(1.0, |p| (0.5 * p.error().powi(2) * table.steps()).max(1.0))
}

/// The tail index $\alpha$ of the norms, $P(G > x) \sim x^{-\alpha}$, by Hill's estimator.
///
/// Moments of higher order than $\alpha$ do not exist. Light tails, such as the normal, have no
/// index, and the estimate is then large and grows with the number of steps. It is taken from the
/// upper twentieth of the norms, or from where it becomes clearly larger further out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// $\hat\alpha$, with an interval that allows for neighbouring steps being alike; it knows
    /// nothing of a tail that is not yet a power law where it was measured.
    pub index: Interval,
    /// Norms it is estimated from: those above `multiple`.
    pub exceedances: u64,
    /// Where the tail was taken to begin, as a multiple of the scale.
    pub multiple: f64,
}

/// What the tail means for $E G^2$, and so for $\nu$, CSC and CCC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecondMoment {
    /// The index is clearly above 4: the estimates can be trusted.
    Sound,
    /// The index is not clearly above 4: $E G^4$ may be infinite, and then the intervals of $\nu$,
    /// CSC and CCC cover less often than they say.
    SlowIntervals,
    /// The index is not clearly above 2: $E G^2$ may be infinite, and then $\nu$, CSC and CCC have
    /// no value to estimate; they say what clipping did to the norms that were seen.
    MayNotExist,
}

/// The tail begins where at most this share of the norms is above …
const SHARE: f64 = 0.05;
/// … and must have this many.
const LEAST: f64 = 30.0;

impl Tail {
    pub(super) fn new(
        table: &StretchTable,
        multiples: impl Fn(usize) -> f64,
        t: f64,
    ) -> Option<Self> {
        let most = SHARE * table.steps();
        let beyond = table.candidates.iter().enumerate().filter(|(_, at)| {
            let count = at.exceedances();
            count <= most && count >= LEAST
        });
        let mut found: Option<Tail> = None;
        for (k, at) in beyond {
            let Some(index) = Product::new(&[(&at.above, 1.0), (&at.excess, -1.0)]) else { break };
            let index = index.interval(t);
            // Clearly lighter further out: what came before was no power law but, say, a second
            // hump, which lies far above the rest and yet ends.
            if found.is_none_or(|tail| index.low > tail.index.high) {
                let exceedances = at.exceedances() as u64;
                found = Some(Tail { index, exceedances, multiple: multiples(k) });
            }
        }
        found
    }

    /// What the tail means for $E G^2$.
    pub fn second_moment(&self) -> SecondMoment {
        match self.index.low {
            low if low > 4.0 => SecondMoment::Sound,
            low if low > 2.0 => SecondMoment::SlowIntervals,
            _ => SecondMoment::MayNotExist,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn the_error_of_a_ratio_is_that_of_the_textbook() {
        let x = [3.0, 5.0, 4.0, 6.0, 2.0];
        let y = [2.0, 2.0, 3.0, 2.0, 1.0];
        let ratio = Product::new(&[(&x, 1.0), (&y, -1.0)]).unwrap();
        assert!((ratio.log.exp() - 2.0).abs() < 1e-15);
        // s²_r = K/(K−1) Σ (x − r y)²/(r Σy)², without the covariance of neighbours, here negative.
        let sum: f64 = x.iter().zip(&y).map(|(x, y)| (x - 2.0 * y).powi(2)).sum();
        assert!((ratio.error().powi(2) - 1.25 * sum / 400.0).abs() < 1e-15);
    }

    #[test]
    fn an_interval_leans_the_way_of_the_skewness() {
        let skewed = |sign: f64| {
            let shares = [4.0, -2.0, -1.0, -1.0].map(|s| 0.01 * sign * s);
            Product { log: 0.0, shares: shares.to_vec() }
        };
        for sign in [1.0, -1.0] {
            let product = skewed(sign);
            let Interval { value, low, high } = product.interval(1.0);
            assert!(low < value && value < high);
            assert_eq!(high.ln() + low.ln() > 0.0, sign > 0.0);
            // Undoing it: Hall's transformation of the end is the critical value.
            let skew = sign * 54.0 / 22.0_f64.powf(1.5);
            let t = -low.ln() / product.error();
            let hall = t + skew * t * t / 3.0 + skew * skew * t.powi(3) / 27.0 + skew / 6.0;
            assert!((hall - 1.0).abs() < 1e-12, "{hall}");
            assert!(product.at_least(1.0) <= low.ln());
        }
    }

    #[test]
    fn a_share_never_leaves_its_range_and_wilson_is_wilson() {
        let counts = [100.0; 10];
        let above = [10.0, 12.0, 8.0, 9.0, 11.0, 10.0, 13.0, 7.0, 10.0, 10.0];
        let got = wilson(&above, &counts, 1.0, 1.96);
        // The shares vary less than independent steps would: never worth more than their number.
        let (p, n, z) = (0.1, 1000.0, 1.96_f64);
        let centre = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
        let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt() / (1.0 + z * z / n);
        assert!(
            (got.low - centre + half).abs() < 1e-12 && (got.high - centre - half).abs() < 1e-12
        );
        let none = wilson(&[0.0; 10], &counts, 1.0, 1.96);
        assert!(none.low == 0.0 && none.high > 0.003 && none.high < 0.004, "{none:?}");
        let near = Product::new(&[(&[9.0, 9.9], 1.0), (&[10.0, 10.0], -1.0)]).unwrap();
        let share = near.interval_of_share(12.7);
        assert!(share.low > 0.0 && share.high < 1.0 && share.contains(0.945));
    }
}
