//! The threshold with the largest CCC under the distribution of the last norms.

use super::sliding::SlidingWindow;
use super::{NextStep, ThresholdRule};
use crate::error::{Error, Result};
use crate::numerics::special::upper_tail;
use serde::{Deserialize, Serialize};

/// $c_k = \arg\max_c \hat\mu_c^2/\hat m^{(2)}_c$ over the last 400 norms, from the first steps on,
/// with the learning rate divided by $\hat\mu_c$.
///
/// The norm of a gradient of $N$ residual components is $s = \sqrt{\sum X_i^2/N}$ up to a factor
/// that cancels. So the descent and the noise that clipping at $c$ leaves are means over norms,
/// $$ \hat\mu_c = \hat P(s \le c) + \bigl(1 - \tfrac1N\bigr)\thinspace \hat E\bigl[\tfrac cs;
/// s > c\bigr] - \frac zN \sqrt{\hat P(s \le c)\hat P(s > c)/n}, \qquad
/// \hat m^{(2)}_c = \hat E\min(s^2, c^2), $$
/// the last term of $\hat\mu$ a margin of $z = 2$ standard errors against the choice of a
/// threshold that is best by chance. The rule takes the largest threshold within one percent of
/// the best.
///
/// - **Prior.** The means also run over 30 quantiles of the norms of Gaussian residuals, at the
///   scale that the median shows. With few norms, or without outliers, the rule does not clip.
/// - **Cap.** No threshold is above twice the 90th percentile, so that the first outlier is
///   clipped as well.
/// - **Check.** For $N \le 8$ the smallest norms must be distributed as a linear model has
///   them: $P(s \le c) \sim c^N$ for small $c$. Where they are not (logistic regression, where large
///   gradients carry the signal), $\hat\mu$ is wrong and only the cap applies.
///
/// The current norm is not used for its own threshold. Without $N$ it is estimated from the
/// spread of the norms, on the low side, and the rule clips less. The constants and how they
/// were chosen are in `docs/online-rule.md`.
///
/// ```
/// use toclip::threshold_rules::{EmpiricalCcc, ThresholdRule};
/// // One residual in five is off by ten times the others.
/// let mut rule = EmpiricalCcc::new(Some(1.0))?;
/// for k in 0..400_u32 {
///     let u = (f64::from(k) * 0.618_033_988_749_895).fract();
///     rule.threshold(if k % 5 == 3 { 10.0 + u } else { u });
/// }
/// let next = rule.next_step();
/// assert!(next.threshold < 2.0 && next.rate_factor > 1.1);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmpiricalCcc {
    /// $N$, if it is known.
    components: Option<f64>,
    gaussian: Gaussian,
    norms: SlidingWindow,
    seen: u64,
    current: Choice,
    next: Choice,
}

/// A threshold in a form that can be written: `None` is infinity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Choice {
    threshold: Option<f64>,
    rate_factor: f64,
}

/// The distribution of the norms of Gaussian residuals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Gaussian {
    /// $N$.
    components: f64,
    /// Quantiles over their median.
    prior: Vec<f64>,
    /// The mean of $\log(q/s)$ over the norms below the low quantile $q$.
    low_tail: f64,
}

/// How many norms are remembered: enough for CCC to a few percent; the risk may fall by a factor
/// of three meanwhile.
const WINDOW: usize = 400;
/// Pseudo-norms of the prior.
const PRIOR: usize = 30;
/// Standard errors of $\hat P(s \le c)$ that $\hat\mu$ is lowered by.
const STANDARD_ERRORS: f64 = 2.0;
/// Thresholds whose CCC is within this share of the best are as good.
const TOLERANCE: f64 = 0.01;
/// The cap is this multiple of this quantile.
const CAP: (f64, f64) = (2.0, 0.9);
/// For single samples $\hat\mu$ is too noisy below this quantile.
const LOWEST_QUANTILE: f64 = 0.25;
/// The quantile below which norms are compared with a linear model's.
const LOW_TAIL: f64 = 0.3;
/// The check needs this many norms.
const CHECK_AFTER: usize = 40;
/// The check has no power for more components than this, and a wrong $\hat\mu$ does less harm.
const CHECK_UP_TO: f64 = 8.0;
/// The largest index of the low tail, over that of Gaussian residuals, that passes the check.
const LARGEST_INDEX: f64 = 1.6;
/// With at least this many components $N$, a gain above the second number over $N$ is trusted even if
/// the check fails: logistic regression shows at most 1.5 with eight.
const LARGE_GAIN: (f64, f64) = (4.0, 16.0);
/// The choice is updated at each of the first [`CHECK_AFTER`] steps, then at intervals of this many.
const EVERY: u64 = 10;
/// The largest $1/\hat\mu$.
const LARGEST_RATE: f64 = 20.0;

impl EmpiricalCcc {
    /// For batches of `components` $= N$ residual components, the batch size times the outputs;
    /// `None` if that is not known.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless $N \ge 1$.
    pub fn new(components: Option<f64>) -> Result<Self> {
        if let Some(n) = components
            && !(n >= 1.0)
        {
            let expected = "a batch has at least one residual component";
            return Err(Error::parameter("components", n, expected));
        }
        let open = Choice { threshold: None, rate_factor: 1.0 };
        // An infinite N means many; most formats cannot write infinity.
        let components = components.map(|n| n.min(1e9));
        let gaussian = Gaussian::new(components.unwrap_or(1.0));
        let norms = SlidingWindow::new(WINDOW);
        Ok(EmpiricalCcc { components, gaussian, norms, seen: 0, current: open, next: open })
    }

    fn choose(&mut self) -> Choice {
        let at = |threshold: f64, rate_factor| {
            let threshold = threshold.is_finite().then_some(threshold);
            Choice { threshold, rate_factor }
        };
        let quantile = |p| self.norms.quantile(p).unwrap_or(0.0);
        let median = quantile(0.5);
        // A median of zero is a window of gradients that vanish: nothing to clip.
        if !(median > 0.0) {
            return at(f64::INFINITY, 1.0);
        }
        let n = self.components.unwrap_or_else(|| spread_components(&quantile));
        if n != self.gaussian.components {
            self.gaussian = Gaussian::new(n);
        }
        let norms: Vec<f64> = self.norms.sorted().iter().map(|s| s / median).collect();
        let cap = CAP.0 * quantile(CAP.1) / median;
        let curve = Curve::new(&norms, &self.gaussian);
        let best = curve.best();
        let gain = best.score / curve.last_up_to(cap).score;
        let believed = n > CHECK_UP_TO
            || is_like_a_linear_model(&norms, &self.gaussian)
            || (n >= LARGE_GAIN.0 && gain > LARGE_GAIN.1 / n);
        if believed && best.c <= cap {
            at(best.c * median, (1.0 / best.mu).clamp(1.0, LARGEST_RATE))
        } else {
            at(cap * median, 1.0)
        }
    }
}

/// $N$ of Gaussian residuals whose norms spread as these do: $\log s$ has variance $1/(2N)$.
/// Heavy tails and anything else that spreads the norms make it smaller.
fn spread_components(quantile: &dyn Fn(f64) -> f64) -> f64 {
    // A normal distribution's quartiles are 1.349 standard deviations apart.
    let std = (quantile(0.75) / quantile(0.25)).ln() / 1.349;
    let n = (0.5 / (std * std)).floor();
    // Two components cannot be told from one.
    if n >= 3.0 { n.min(1e9) } else { 1.0 }
}

/// Whether the smallest norms are distributed as those of a linear model, $P(s \le c) \sim c^N$:
/// Hill's estimator of the index, relative to Gaussian residuals, is near one.
///
/// At the optimum of a logistic regression it is about 0.45, for residuals that keep away from zero
/// 2 and more; heavy tails lower it to 0.7 for batches of eight, and to no less than 0.9 for
/// single samples. The lower limit is $0.6 + 0.2/N$.
fn is_like_a_linear_model(norms: &[f64], gaussian: &Gaussian) -> bool {
    let below = (LOW_TAIL * norms.len() as f64) as usize;
    if norms.len() < CHECK_AFTER {
        return false;
    }
    let index = gaussian.low_tail / mean_log_ratio(&norms[..below], norms[below]);
    (0.6 + 0.2 / gaussian.components..LARGEST_INDEX).contains(&index)
}

/// The mean of $\log(q/s)$ over positive norms: one over Hill's estimator of the index.
fn mean_log_ratio(s: &[f64], q: f64) -> f64 {
    // A gradient that is exactly zero says nothing about those next to zero.
    let positive = &s[s.partition_point(|s| *s <= 0.0)..];
    positive.iter().map(|s| (q / s).ln()).sum::<f64>() / positive.len() as f64
}

impl Gaussian {
    fn new(components: f64) -> Self {
        let at = |p| gaussian_norm(p, components);
        let prior = (0..PRIOR).map(|i| at(mid(i, PRIOR)) / at(0.5)).collect();
        let low: Vec<f64> = (0..100).map(|i| at(LOW_TAIL * mid(i, 100))).collect();
        Gaussian { components, prior, low_tail: mean_log_ratio(&low, at(LOW_TAIL)) }
    }
}

/// $\hat\mu$ and $\hat\mu^2/\hat m^{(2)}$ at every norm and pseudo-norm.
struct Curve(Vec<At>);

#[derive(Debug, Clone, Copy)]
struct At {
    c: f64,
    /// Without the margin.
    mu: f64,
    /// $\hat\mu^2/\hat m^{(2)}$ with the margin, which orders thresholds as CCC does.
    score: f64,
}

impl Curve {
    /// From the norms in units of their median, in ascending order.
    fn new(norms: &[f64], gaussian: &Gaussian) -> Self {
        let n = gaussian.components;
        let mut s = gaussian.prior.clone();
        s.extend(norms);
        s.sort_by(f64::total_cmp);
        let count = s.len() as f64;
        let mut squares = 0.0;
        let mut curve: Vec<At> = s
            .iter()
            .enumerate()
            .map(|(i, &c)| {
                squares += c * c;
                let above = (s.len() - i - 1) as f64;
                At { c, mu: 0.0, score: (squares + c * c * above) / count }
            })
            .collect();
        let mut inverses = 0.0;
        for (i, at) in curve.iter_mut().enumerate().rev() {
            let below = (i + 1) as f64 / count;
            at.mu = below + (1.0 - 1.0 / n) * at.c * inverses / count;
            let error = (below * (1.0 - below) / count).sqrt() / n;
            let sure = (at.mu - STANDARD_ERRORS * error).max(0.0);
            let reliable = n > 1.0 || below >= LOWEST_QUANTILE;
            let score = sure * sure / at.score;
            at.score = if reliable && score.is_finite() { score } else { 0.0 };
            if at.c > 0.0 {
                inverses += 1.0 / at.c;
            }
        }
        Curve(curve)
    }

    /// The largest threshold within the tolerance of the best.
    fn best(&self) -> At {
        let most = self.0.iter().map(|at| at.score).fold(0.0, f64::max);
        let good = |at: &&At| at.score >= (1.0 - TOLERANCE) * most;
        self.0.iter().rev().find(good).copied().unwrap_or(self.last_up_to(f64::INFINITY))
    }

    /// The largest threshold up to `c`.
    fn last_up_to(&self, c: f64) -> At {
        let place = self.0.partition_point(|at| at.c <= c);
        self.0.get(place.saturating_sub(1)).copied().unwrap_or(At {
            c: f64::INFINITY,
            mu: 1.0,
            score: 1.0,
        })
    }
}

/// The middle of cell `i` of `count` in $(0, 1)$.
fn mid(i: usize, count: usize) -> f64 {
    (i as f64 + 0.5) / count as f64
}

/// The quantile $p$ of $\sqrt{\chi^2_N/N}$: exact for $N = 1, 2$, else that of Wilson and Hilferty
/// (1931).
fn gaussian_norm(p: f64, n: f64) -> f64 {
    if n < 1.5 {
        normal_quantile(0.5 + 0.5 * p)
    } else if n < 2.5 {
        (-(-p).ln_1p()).sqrt()
    } else {
        let a = 2.0 / (9.0 * n);
        (1.0 - a + normal_quantile(p) * a.sqrt()).max(0.01).powf(1.5)
    }
}

/// $\Phi^{-1}(p)$ for $10^{-9} < p < 1 - 10^{-9}$, by bisection.
fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-6.5, 6.5);
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if 1.0 - upper_tail(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

impl ThresholdRule for EmpiricalCcc {
    fn threshold(&mut self, norm: f64) -> f64 {
        self.current = self.next;
        if norm.is_finite() {
            self.norms.add(norm);
            self.seen += 1;
            if self.seen < CHECK_AFTER as u64 || self.seen.is_multiple_of(EVERY) {
                self.next = self.choose();
            }
        }
        self.current.threshold.unwrap_or(f64::INFINITY)
    }

    fn rate_factor(&self) -> f64 {
        self.current.rate_factor
    }

    fn next_step(&self) -> NextStep {
        NextStep {
            threshold: self.next.threshold.unwrap_or(f64::INFINITY),
            rate_factor: self.next.rate_factor,
        }
    }

    fn describe(&self) -> String {
        match self.components {
            Some(n) => format!("empirical CCC, N = {n}"),
            None => "empirical CCC".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Factors;
    use crate::noise::{Family, Gaussian as GaussianNoise, Laplace, Noise, Rademacher, StudentT};
    use crate::{Batch, Step};
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    /// The norms of batches of residuals at risk $R$, of gradients in very many dimensions.
    fn norms(noise: &Family, r: f64, batch: usize, count: usize) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut residual = || {
            let z: f64 = StandardNormal.sample(&mut rng);
            (2.0 * r).sqrt() * z - noise.sample(&mut rng)
        };
        let mut norm = || {
            let squares: f64 = (0..batch).map(|_| residual().powi(2)).sum();
            (squares / batch as f64).sqrt()
        };
        (0..count).map(|_| norm()).collect()
    }

    fn after(norms: &[f64], components: Option<f64>) -> NextStep {
        let mut rule = EmpiricalCcc::new(components).unwrap();
        norms.iter().for_each(|norm| {
            rule.threshold(*norm);
        });
        rule.next_step()
    }

    #[test]
    fn a_zero_norm_does_not_end_the_rule() {
        let mut with = EmpiricalCcc::new(Some(1.0)).unwrap();
        let mut without = with.clone();
        with.threshold(0.0);
        let noise = Rademacher::new(10.0, 0.2).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..399 {
            let z: f64 = StandardNormal.sample(&mut rng);
            let norm = (z - noise.sample(&mut rng)).abs();
            with.threshold(norm);
            without.threshold(norm);
        }
        without.threshold(1.0);
        let [a, b] = [with, without].map(|rule| rule.next_step().threshold);
        assert!(a < 3.0 && (a / b - 1.0).abs() < 0.1, "{a} {b}");
    }

    #[test]
    fn the_chosen_threshold_has_nearly_the_best_ccc_of_the_theory() {
        let cases: [(Family, usize, f64); 7] = [
            (GaussianNoise::new(1.0).unwrap().into(), 1, 0.98),
            (GaussianNoise::new(1.0).unwrap().into(), 8, 0.98),
            (Laplace::new(1.0).unwrap().into(), 1, 0.9),
            (Laplace::new(1.0).unwrap().into(), 8, 0.95),
            (StudentT::from_sigma(2.5, 1.0).unwrap().into(), 1, 0.9),
            (StudentT::from_sigma(2.5, 1.0).unwrap().into(), 8, 0.95),
            (Rademacher::from_sigma(1.0, 0.2).unwrap().into(), 1, 0.85),
        ];
        for (noise, batch, share) in cases {
            let r = 0.02;
            let step = Step::new(&noise).with_batch(Batch::mean(batch as u64).unwrap()).unwrap();
            let next = after(&norms(&noise, r, batch, WINDOW), Some(batch as f64));
            let got = Factors::new(&step, r, next.threshold).unwrap();
            let best = crate::criteria::best_threshold(&step, r).unwrap();
            let ratio = got.ccc().unwrap() / best.ccc;
            assert!(ratio > share && ratio < 1.0 + 1e-9, "{noise:?} {batch}: {ratio} {next:?}");
            // 1/μ is estimated from 400 norms: four standard errors of a share are 10%.
            assert!((next.rate_factor * got.mu - 1.0).abs() < 0.12, "{noise:?} {batch} {next:?}");
        }
    }

    #[test]
    fn mu_and_m2_are_those_of_the_theory() {
        for batch in [1, 8] {
            let noise: Family = Laplace::new(1.0).unwrap().into();
            let step = Step::new(&noise).with_batch(Batch::mean(batch as u64).unwrap()).unwrap();
            let mut s = norms(&noise, 0.1, batch, 40_000);
            s.sort_by(f64::total_cmp);
            let curve = Curve::new(&s, &Gaussian::new(batch as f64));
            for place in [12_000, 20_000, 30_000] {
                let at = curve.0[place];
                let want = Factors::new(&step, 0.1, at.c).unwrap();
                // The 30 pseudo-norms move a share by 0.08% at most; four standard errors of one
                // over 40,000 norms are 1%, and twice that of the square; false alarms below 1e-3.
                assert!((at.mu - want.mu).abs() < 0.011, "{batch} {place}: {at:?} {want:?}");
                let score = want.mu * want.mu / (want.m2 * batch as f64);
                let low = 1.0 - 2.0 * STANDARD_ERRORS * 0.0025 / want.mu;
                let ratio = at.score / score;
                assert!((low - 0.03..1.03).contains(&ratio), "{batch} {place}: {ratio}");
            }
        }
    }

    #[test]
    fn a_logistic_regression_is_not_clipped_below_its_cap() {
        // Residuals σ(u) − y of a model at its optimum, u ~ N(0, 16), single samples.
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let uniform = rand_distr::Uniform::new(0.0, 1.0).unwrap();
        let residuals: Vec<f64> = (0..WINDOW)
            .map(|_| {
                let z: f64 = StandardNormal.sample(&mut rng);
                let p = 1.0 / (1.0 + (-4.0 * z).exp());
                if uniform.sample(&mut rng) < p { 1.0 - p } else { p }
            })
            .collect();
        let next = after(&residuals, Some(1.0));
        assert_eq!(next.rate_factor, 1.0);
        assert!(next.threshold > 0.9, "{next:?}");
    }

    #[test]
    fn an_outlier_is_clipped_from_the_second_step_on() {
        let mut rule = EmpiricalCcc::new(Some(1.0)).unwrap();
        assert_eq!(rule.threshold(1.0), f64::INFINITY);
        assert_eq!(rule.threshold(1e6), 2.0);
    }

    #[test]
    fn without_the_batch_size_it_is_estimated_on_the_low_side() {
        let noise: Family = GaussianNoise::new(1.0).unwrap().into();
        for (batch, least) in [(1, 1.0), (8, 4.0), (64, 32.0)] {
            let mut s = norms(&noise, 0.1, batch, 2000);
            s.sort_by(f64::total_cmp);
            let n = spread_components(&|p| s[(p * 1999.0) as usize]);
            // The quartiles of 2000 norms give N to 7%: 1.3 times it is four standard errors off.
            assert!(n >= least && n <= 1.3 * batch as f64, "{batch}: {n}");
        }
        let heavy: Family = StudentT::new(1.0, 0.5).unwrap().into();
        let norms = norms(&heavy, 0.1, 64, WINDOW);
        let (known, blind) = (after(&norms, Some(64.0)), after(&norms, None));
        assert!(blind.threshold >= known.threshold && blind.threshold.is_finite());
    }

    proptest! {
        #[test]
        fn the_unit_of_the_norms_does_not_matter(
            values in prop::collection::vec(0.01..10.0_f64, 1..120),
            exponent in -60..60_i32,
            components in prop::sample::select(vec![None, Some(1.0), Some(2.0), Some(8.0), Some(64.0)]),
        ) {
            let unit = 2.0_f64.powi(exponent);
            let scaled: Vec<f64> = values.iter().map(|v| v * unit).collect();
            let (one, other) = (after(&values, components), after(&scaled, components));
            prop_assert_eq!(one.threshold * unit, other.threshold);
            prop_assert_eq!(one.rate_factor, other.rate_factor);
        }

        #[test]
        fn any_norms_give_a_threshold_between_the_least_and_the_cap(
            values in prop::collection::vec(
                prop::sample::select(vec![0.0, 5e-324, 1e-300, 0.5, 1.0, 3.0, 1e200, f64::MAX]),
                1..80,
            ),
            components in prop::sample::select(vec![None, Some(1.0), Some(3.0), Some(f64::INFINITY)]),
        ) {
            let mut rule = EmpiricalCcc::new(components).unwrap();
            for value in values {
                let before = rule.next_step();
                let threshold = rule.threshold(value);
                prop_assert_eq!(threshold, before.threshold);
                prop_assert_eq!(rule.rate_factor(), before.rate_factor);
                prop_assert!(threshold > 0.0);
                prop_assert!((1.0..=LARGEST_RATE).contains(&rule.rate_factor()));
            }
        }
    }

    #[test]
    fn nan_norms_change_nothing_and_saved_rules_continue() {
        let values = norms(&Laplace::new(1.0).unwrap().into(), 0.1, 1, 300);
        let mut rule = EmpiricalCcc::new(Some(1.0)).unwrap();
        values[..200].iter().for_each(|v| {
            rule.threshold(*v);
        });
        let next = rule.next_step();
        assert_eq!(rule.threshold(f64::NAN), next.threshold);
        assert_eq!(rule.threshold(f64::INFINITY), next.threshold);
        assert_eq!(rule.next_step(), next);
        let text = serde_json::to_string(&rule).unwrap();
        let mut again: EmpiricalCcc = serde_json::from_str(&text).unwrap();
        for v in &values[200..] {
            assert_eq!(rule.threshold(*v), again.threshold(*v));
        }
    }

    #[test]
    fn impossible_batches_are_refused() {
        for n in [0.0, 0.5, -1.0, f64::NAN] {
            assert!(EmpiricalCcc::new(Some(n)).is_err());
        }
        assert!(EmpiricalCcc::new(Some(f64::INFINITY)).is_ok());
    }
}
