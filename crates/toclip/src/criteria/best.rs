//! The threshold with the largest CCC.

use crate::error::Result;
use crate::factors::check_risk;
use crate::factors::information::information;
use crate::factors::step::Step;
use crate::noise::Feature;
use crate::numerics::maximise::{PRECISION, log_grid, refined};
use crate::parallel::map_timed;
use crate::rule::Rule;
use serde::Serialize;

/// The threshold $c^\ast$ that maximises CCC $= \mu^2/\nu$ (paper, equation 14), and its value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BestThreshold {
    /// $c^\ast$: zero if the supremum is only approached as $c \to 0$, infinite if not clipping is
    /// best (the supremum is one).
    pub c: f64,
    /// $\mu$ at $c^\ast$.
    pub mu: f64,
    /// $m^{(2)}$ of the step at $c^\ast$.
    pub m2: f64,
    /// The largest CCC; infinite for noise of infinite variance, which clipping improves without
    /// bound.
    pub ccc: f64,
    /// $\sup_c \mu^2/m^{(2)}$, which is $B\cdot$CCC$/(2R+\sigma^2)$ and finite for every noise with
    /// a density.
    pub efficiency: f64,
}

/// A gain below this is rounding: the best is then not to clip.
const ROUNDING: f64 = 1e-12;
/// Thresholds this far apart are not the same peak, and how often the end of a plateau is bisected.
const DISTINCT: f64 = 1.01;
const BISECTIONS: usize = 40;
/// The grid reaches from this share of the smallest scale of the residual to this multiple of the
/// largest.
const BELOW: f64 = 1e-2;
const ABOVE: f64 = 1e2;
/// Thresholds so far below the smallest one that matters, as shares of it, stand for the limit $c \to
/// 0$.
const NEAR_ZERO: f64 = 1e-5;
const NEARER_ZERO: f64 = 1e-7;

/// How finely thresholds are searched.
pub(super) struct Search {
    /// Points of the grid for each factor of ten in $c$.
    pub per_decade: f64,
    /// Points of the grid about every feature, in units of its width.
    pub offsets: &'static [f64],
    /// The precision of a peak, in $\ln c$.
    pub precision: f64,
}

/// The search at one risk.
const THOROUGH: Search = Search {
    per_decade: 16.0,
    offsets: &[-6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
    precision: PRECISION,
};

/// $c^\ast = \arg\max_c \mu_c^2(R)/\nu_c(R)$ over $0 < c \le \infty$.
///
/// CCC may have several peaks (one before and one after each bump of the noise), so the search
/// first looks on a grid that covers every scale and every [`Feature`] of the distribution, then
/// refines each peak, and compares with both ends. $\mu^2/m^{(2)}$ is maximised, which orders
/// thresholds as CCC does but stays finite for noise of infinite variance.
///
/// For $R > 0$ the residual has a smooth density and CCC grows at first, $4f(0)^2 E X^2 (1 +
/// \tfrac43 f(0) c + \dots)$, so the optimum is never at zero; for Laplace noise it tends to zero
/// with $R$ and is there at $R = 0$.
///
/// The search depends on the [rule](crate::Rule):
///
/// | rule | $c \to 0$ | $c \to \infty$ | reported |
/// |---|---|---|---|
/// | `Clip`, `Smooth` | `Normalise` | unclipped SGD | the best threshold |
/// | `Skip` | nothing is left | unclipped SGD | the best threshold with $\mu > 0$: where $\mu \le 0$ no learning rate descends, and the efficiency counts as zero |
/// | `Normalise` | | | CCC is the same for every threshold; the one with $\mu = 1$, which is $1/2f_X(0)$ for one residual |
/// | `Optimal` | | | there is no threshold: $c = \infty$, $\mu = 1$, and CCC is the [limit](super::fisher_limit) |
///
/// # Errors
/// [`Error::Parameter`](crate::Error::Parameter) for a risk that is negative or not finite,
/// [`StepError`](crate::StepError) or [`Error::NotProvided`](crate::Error::NotProvided)
/// for a rule that has no factors here.
///
/// ```
/// use toclip::{criteria::best_threshold, noise::{Gaussian, Rademacher}};
/// let best = best_threshold(&Rademacher::from_sigma(5.0, 0.2)?, 3.0)?;
/// assert!((best.c - 2.2).abs() < 0.1 && (best.ccc - 2.5).abs() < 0.05);
/// assert_eq!(best_threshold(&Gaussian::new(5.0)?, 3.0)?.c, f64::INFINITY);
/// # Ok::<(), toclip::Error>(())
/// ```
pub fn best_threshold<'a>(step: impl Into<Step<'a>>, r: f64) -> Result<BestThreshold> {
    let step = step.into();
    step.check_sizes(r, f64::INFINITY)?;
    let best = best_for_residual(&step, r)?;
    let size = step.batch().size() as f64;
    Ok(BestThreshold { m2: best.m2 / size, efficiency: best.efficiency * size, ..best })
}

/// The same with $m^{(2)}$ and the efficiency in the unit of one residual, whatever the batch.
pub(super) fn best_for_residual(step: &Step<'_>, r: f64) -> Result<BestThreshold> {
    check_risk(r)?;
    step.check_radial()?;
    if let Some(best) = without_search(step, r) {
        return best;
    }
    let efficiency = Efficiency::new(step, r);
    let Found { optimum, smallest, top, .. } = efficiency.search(&THOROUGH);
    let ccc = |efficient: f64| efficient * efficiency.second_moment;
    Ok(match optimum {
        Optimum::Unclipped => BestThreshold::unclipped(efficiency.second_moment),
        Optimum::Small => {
            let limit = efficiency.limit(smallest, top);
            BestThreshold { c: 0.0, mu: 0.0, m2: 0.0, ccc: ccc(limit), efficiency: limit }
        }
        Optimum::At(c) => {
            let x = step.residual_moments(r, c);
            BestThreshold { c, mu: x.mu, m2: x.m2, ccc: ccc(top), efficiency: top }
        }
    })
}

/// The rules that need no search: to normalise, where every threshold has the same CCC, and the
/// optimal rule, which has none.
pub(super) fn without_search(step: &Step<'_>, r: f64) -> Option<Result<BestThreshold>> {
    let second_moment = step.residual_second_moment(r);
    let (c, efficiency) = match step.rule() {
        Rule::Optimal => {
            let found = information(step.noise(), &step.noise().features(r), r);
            let information = match found {
                Ok(information) => information,
                Err(error) => return Some(Err(error)),
            };
            (f64::INFINITY, information)
        }
        Rule::Normalise => {
            let x = step.residual_moments(r, 1.0);
            if let Err(error) = step.check_defined(r, 1.0, x) {
                return Some(Err(error));
            }
            (1.0 / x.mu, x.mu * x.mu)
        }
        _ => return None,
    };
    // Without error or noise there is no residual, and nothing to gain.
    if second_moment == 0.0 {
        return Some(Ok(BestThreshold::unclipped(0.0)));
    }
    // With an atom at zero the threshold is zero and μ has no value; without a density at zero no
    // threshold gives μ = 1.
    let mu = if c == 0.0 || efficiency == 0.0 { 0.0 } else { 1.0 };
    let m2 = if mu == 0.0 { c * c } else { 1.0 / efficiency };
    let ccc = efficiency * second_moment;
    Some(Ok(BestThreshold { c, mu, m2, ccc, efficiency }))
}

impl BestThreshold {
    /// Not clipping.
    fn unclipped(second_moment: f64) -> Self {
        let efficiency = 1.0 / second_moment;
        BestThreshold { c: f64::INFINITY, mu: 1.0, m2: second_moment, ccc: 1.0, efficiency }
    }

    pub(super) fn optimum(&self) -> Optimum {
        match self.c {
            0.0 => Optimum::Small,
            f64::INFINITY => Optimum::Unclipped,
            c => Optimum::At(c),
        }
    }
}

/// Where CCC is largest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Optimum {
    /// At this threshold.
    At(f64),
    /// Without clipping.
    Unclipped,
    /// Towards zero.
    Small,
}

/// The result of a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub optimum: Optimum,
    /// The smallest threshold that matters.
    pub smallest: f64,
    /// The highest efficiency at or above it.
    pub top: f64,
    /// The efficiency as $c \to 0$.
    pub towards_zero: f64,
    /// Whether thresholds far from the best one are equally good, to rounding.
    pub is_flat: bool,
}

/// $\mu^2/m^{(2)}$ as a function of the threshold, in the unit of one residual; zero where $\mu \le
/// 0$, since no learning rate descends with such steps.
pub(super) struct Efficiency<'a> {
    step: &'a Step<'a>,
    r: f64,
    second_moment: f64,
}

impl<'a> Efficiency<'a> {
    pub fn new(step: &'a Step<'a>, r: f64) -> Self {
        Efficiency { step, r, second_moment: step.residual_second_moment(r) }
    }

    pub fn at(&self, c: f64) -> f64 {
        let x = self.step.residual_moments(self.r, c);
        if x.mu <= 0.0 { 0.0 } else { x.mu * (x.mu / x.m2) }
    }

    /// The limit as $c \to 0$, by extrapolation: a constant for a density, near which the efficiency
    /// is linear in $c$, and infinite for an atom at zero, where it grows like $1/c^2$.
    fn limit(&self, smallest: f64, top: f64) -> f64 {
        let (near, nearer) = (self.at(NEAR_ZERO * smallest), self.at(NEARER_ZERO * smallest));
        if nearer.is_infinite() || nearer > 2.0 * near.max(top) {
            f64::INFINITY
        } else {
            // Linear in c: 99 is the ratio of the two thresholds, less one.
            nearer + (nearer - near) / 99.0
        }
    }

    /// The best threshold.
    pub fn search(&self, search: &Search) -> Found {
        let grid = thresholds(&self.step.features(self.r), search);
        let Some(&smallest) = grid.first() else {
            let (optimum, top) = (Optimum::Unclipped, 1.0 / self.second_moment);
            return Found { optimum, smallest: 0.0, top, towards_zero: 0.0, is_flat: false };
        };
        let values = map_timed(&grid, |&c| self.at(c));
        let (c, top) = refined(&grid, &values, search.precision, |c| self.at(c));
        let towards_zero = self.at(NEARER_ZERO * smallest);
        let is_far = |x: f64| !(c / DISTINCT..=c * DISTINCT).contains(&x);
        let mut each = grid.iter().zip(&values);
        let is_flat = each.any(|(&x, &value)| is_far(x) && is_as_good(value, top));
        let optimum = if towards_zero >= top {
            Optimum::Small
        } else if top * self.second_moment <= 1.0 + ROUNDING {
            Optimum::Unclipped
        } else if is_flat {
            Optimum::At(self.end_of_plateau(&grid, &values, top).unwrap_or(c))
        } else {
            Optimum::At(c)
        };
        Found { optimum, smallest, top, towards_zero, is_flat }
    }

    /// The largest threshold that is as good as the best, to rounding. Skipping is equally good at
    /// every threshold between the residuals and outliers far from them: the search would leave it
    /// to rounding which of those is found, and the largest is farthest from losing good steps.
    fn end_of_plateau(&self, grid: &[f64], values: &[f64], top: f64) -> Option<f64> {
        let is_end = |i: &usize| is_as_good(values[i - 1], top) && !is_as_good(values[*i], top);
        let end = (1..grid.len()).rfind(is_end)?;
        let (mut low, mut high) = (grid[end - 1], grid[end]);
        for _ in 0..BISECTIONS {
            let middle = (low * high).sqrt();
            if is_as_good(self.at(middle), top) { low = middle } else { high = middle }
        }
        Some(low)
    }
}

/// Whether an efficiency is the highest, to rounding.
fn is_as_good(value: f64, top: f64) -> bool {
    value >= top * (1.0 - ROUNDING)
}

/// A grid of thresholds fine enough for every feature of the distribution.
fn thresholds(features: &[Feature], search: &Search) -> Vec<f64> {
    let scales = features.iter().flat_map(|f| [f.at.abs(), f.width]).filter(|x| *x > 0.0);
    let (low, high) = scales.fold((f64::INFINITY, 0.0f64), |(a, b), x| (a.min(x), b.max(x)));
    if high == 0.0 {
        return Vec::new();
    }
    let mut grid = log_grid(BELOW * low, ABOVE * high, search.per_decade);
    for f in features {
        grid.extend(search.offsets.iter().map(|k| f.at.abs() + k * f.width));
    }
    grid.retain(|c| *c >= BELOW * low);
    grid.sort_by(f64::total_cmp);
    grid.dedup();
    grid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Family, Laplace, NoNoise, Noise, Rademacher, StudentT};
    use proptest::prelude::*;

    #[test]
    fn laplace_noise_without_error_is_best_clipped_to_its_sign() {
        let noise = Laplace::new(0.7).unwrap();
        let best = best_threshold(&noise, 0.0).unwrap();
        assert_eq!(best.c, 0.0);
        assert!((best.ccc - 2.0).abs() < 1e-8, "{best:?}");
        // With a little error the optimum leaves zero, and grows with the error.
        let near = [1e-8, 1e-6, 1e-4].map(|r| best_threshold(&noise, r).unwrap());
        assert!(near[0].c > 0.0 && near.windows(2).all(|w| w[0].c < w[1].c), "{near:?}");
        assert!(near.windows(2).all(|w| w[0].ccc > w[1].ccc) && near[0].ccc < 2.0);
    }

    #[test]
    fn an_atom_at_zero_is_recovered_exactly() {
        let best = best_threshold(&Rademacher::new(1.0, 0.3).unwrap(), 0.0).unwrap();
        assert_eq!((best.c, best.ccc), (0.0, f64::INFINITY));
        assert_eq!(best_threshold(&NoNoise, 0.0).unwrap().c, f64::INFINITY);
        assert_eq!(best_threshold(&NoNoise, 2.0).unwrap().ccc, 1.0);
    }

    #[test]
    fn of_equally_good_thresholds_the_largest_is_chosen() {
        let noise = Rademacher::new(1.0, 0.2).unwrap();
        let step = Step::from(&noise as &dyn Noise).with_rule(Rule::Skip).unwrap();
        let best = [1.0e-4, 1.01e-4, 1.02e-4].map(|r| best_threshold(&step, r).unwrap());
        // Eight standard deviations of the residual below the outliers, and smooth in the risk.
        let below = best.map(|x| 1.0 - x.c);
        assert!((0.09..0.12).contains(&below[0]), "{best:?}");
        assert!((below[0] - 2.0 * below[1] + below[2]).abs() < 1e-4, "{best:?}");
        // Nothing is lost against a threshold in the middle.
        let middle = step.moments(1.0e-4, 0.5);
        let efficiency = middle.mu * middle.mu / middle.m2;
        assert!((best[0].efficiency / efficiency - 1.0).abs() < 1e-11, "{best:?}");
    }

    #[test]
    fn residuals_without_error_are_searched_one_by_one() {
        use crate::noise::Empirical;
        use rand::SeedableRng;
        let heavy = StudentT::new(1.5, 1.0).unwrap();
        for seed in 0..5 {
            let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
            let values: Vec<f64> = (0..500).map(|_| heavy.sample(&mut rng)).collect();
            let noise = Empirical::new(&values).unwrap();
            let best = best_threshold(&noise, 0.0).unwrap();
            // At R = 0 the maximum is at one of the residuals.
            let top = values.iter().map(|e| {
                let x = noise.clipped(0.0, e.abs());
                x.mu * x.mu / x.m2 * noise.second_moment()
            });
            let top = top.fold(0.0, f64::max);
            assert!(best.ccc >= top * (1.0 - 1e-12), "{} is not {top}", best.ccc);
        }
    }

    #[test]
    fn noise_of_infinite_variance_has_a_finite_best_threshold() {
        let best = best_threshold(&StudentT::new(1.0, 0.5).unwrap(), 0.1).unwrap();
        assert_eq!(best.ccc, f64::INFINITY);
        assert!(best.c > 0.1 && best.c < 2.0 && best.efficiency.is_finite(), "{best:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        /// No threshold of a much finer grid does better.
        #[test]
        fn nothing_does_better(
            log_r in -8.0..2.0f64,
            far in 1.0..100.0f64,
            narrow in -4.0..0.0f64,
            rare in 0.001..0.4f64,
        ) {
            let r = 10f64.powf(log_r);
            let width = 10f64.powf(narrow);
            let text = format!(
                r#"{{"family":"gaussian_mixture","weights":[{rare},0.3,0.4],"means":[{far},-1,0],"stds":[{width},{width},0.1]}}"#
            );
            let noise: Family = serde_json::from_str(&text).unwrap();
            let best = best_threshold(&noise, r).unwrap();
            let second = 2.0 * r + noise.second_moment();
            for c in log_grid(1e-6, 1e4, 400.0) {
                let x = noise.clipped(r, c);
                let ccc = x.mu * x.mu / x.m2 * second;
                prop_assert!(ccc <= best.ccc * (1.0 + 1e-9), "c = {c} gives {ccc}, not {best:?}");
            }
        }
    }
}
