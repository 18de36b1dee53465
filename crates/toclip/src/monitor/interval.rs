//! A number, how well it is known, and how the steps say so.

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
    /// Shares of the stretches; they sum to zero where $f$ does not change with the number of steps.
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
    /// A gain that rests on a few large norms is skewed: a run that happens to lack them shows both
    /// too small a gain and too small an error, and an even interval lies below the truth several times
    /// as often as it says. Hall's cubic transformation (Hall 1992, equation 3.3) takes the skewness
    /// of the stretches out of Student's statistic.
    pub fn interval(&self, t: f64) -> Interval {
        let error = self.error();
        Interval {
            value: self.log.exp(),
            low: (self.log - error * self.unskewed(t)).exp(),
            high: (self.log - error * self.unskewed(-t)).exp(),
        }
    }

    /// The logarithm of $f$ at least, even or allowing for skewness, whichever is less.
    pub fn at_least(&self, t: f64) -> f64 {
        self.log - self.error() * self.unskewed(t).max(t)
    }

    /// The inverse of Hall's transformation, $\frac{3}{\gamma}\bigl(\sqrt\[3\]{1 + \gamma(x -
    /// \gamma/6)} - 1\bigr)$ with $\gamma$ the skewness of the sum.
    fn unskewed(&self, x: f64) -> f64 {
        let squares: f64 = self.shares.iter().map(|s| s * s).sum();
        let cubes: f64 = self.shares.iter().map(|s| s * s * s).sum();
        let skew = cubes / squares.powf(1.5);
        // Below this the transformation differs from x by less than its own rounding. Where it is
        // steep it reaches to any distance: twice the even one covers as often in simulations.
        if !(skew.abs() > 1e-5) {
            return x;
        }
        let reach = 2.0 * x.abs();
        (3.0 / skew * ((1.0 + skew * (x - skew / 6.0)).cbrt() - 1.0)).clamp(-reach, reach)
    }

    /// For an $f$ between zero and one: the interval is even in $\ln (f/(1-f))$, and stays there.
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
/// Neighbouring stretches that are still alike add twice their covariance; where it is negative
/// by chance nothing is taken away.
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
