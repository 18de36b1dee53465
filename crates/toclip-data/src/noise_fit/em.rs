//! Expectation and maximisation for Gaussian mixtures (Dempster, Laird and Rubin 1977).

use super::cells::Cell;
use super::gaussian::ln_normal;
use toclip::noise::Component;

/// EM ends when this much log-likelihood, in nats, is still to be gained. A parameter is then
/// within a fiftieth of its standard error of the maximum.
const LEFT_TO_GAIN: f64 = 1e-4;

/// $\ln\sum_j w_j \varphi((x - m_j)/s_j)/s_j$, with the largest term taken out of the sum.
pub(super) fn ln_density(mixture: &[Component], x: f64) -> f64 {
    let term = |k: &Component| k.weight.ln() + ln_normal((x - k.mean) / k.std) - k.std.ln();
    let largest = mixture.iter().map(term).fold(f64::NEG_INFINITY, f64::max);
    largest + mixture.iter().map(|k| (term(k) - largest).exp()).sum::<f64>().ln()
}

/// One step: the log-likelihood of `mixture`, and a mixture that has no smaller one.
///
/// A variance that would fall below the square of `floor` is set there, which is where the
/// likelihood under that constraint is largest, so that the promise holds all the same.
pub(super) fn step(mixture: &[Component], data: &[Cell], floor: f64) -> (f64, Vec<Component>) {
    let ready: Vec<(f64, f64, f64)> = mixture
        .iter()
        .map(|k| (k.weight.ln() + ln_normal(0.0) - k.std.ln(), k.mean, 1.0 / k.std))
        .collect();
    // Of each component: the sum of shares, and of shares times (x − m) and (x − m)².
    let mut sums = vec![[0.0f64; 3]; mixture.len()];
    let mut shares = vec![0.0f64; mixture.len()];
    let mut log_likelihood = 0.0;
    for cell in data {
        let mut largest = f64::NEG_INFINITY;
        for (share, &(constant, mean, precision)) in shares.iter_mut().zip(&ready) {
            let z = (cell.at - mean) * precision;
            *share = constant - 0.5 * z * z;
            largest = largest.max(*share);
        }
        let mut total = 0.0;
        for share in &mut shares {
            *share = (*share - largest).exp();
            total += *share;
        }
        log_likelihood += cell.count * (largest + total.ln());
        for ((share, sum), &(_, mean, _)) in shares.iter().zip(&mut sums).zip(&ready) {
            let part = cell.count * share / total;
            let away = cell.at - mean;
            sum[0] += part;
            sum[1] += part * away;
            sum[2] += part * away * away;
        }
    }
    let n: f64 = sums.iter().map(|sum| sum[0]).sum();
    let update = |(k, sum): (&Component, &[f64; 3])| {
        let weight = sum[0] / n;
        // A component that holds nothing stays where it is, with no weight.
        if !(sum[0] > 1e-200) {
            return Component { weight, ..*k };
        }
        let (shift, square) = (sum[1] / sum[0], sum[2] / sum[0]);
        let mean = k.mean + shift;
        // After a long way little is left of the difference but rounding. To move only the mean
        // raises the likelihood too, and from there the next step sees the variance.
        if square - shift * shift < 1e-6 * shift * shift {
            return Component { weight, mean, ..*k };
        }
        let variance = (square - shift * shift).max(floor * floor);
        Component { weight, mean, std: variance.sqrt() }
    };
    (log_likelihood, mixture.iter().zip(&sums).map(update).collect())
}

/// Steps until little is left to gain, at most `most` of them; with the log-likelihood.
pub(super) fn climb(
    mut mixture: Vec<Component>,
    data: &[Cell],
    floor: f64,
    most: usize,
) -> (f64, Vec<Component>) {
    let (mut before, mut gain) = (f64::NEG_INFINITY, f64::INFINITY);
    for _ in 0..most {
        let (now, next) = step(&mixture, data, floor);
        let last = std::mem::replace(&mut gain, now - before);
        // Gains fall geometrically in the end, so what is left is the sum of a series (Aitken).
        let ratio = (gain / last).clamp(0.0, 0.9999);
        let settled = last.is_finite() && gain * ratio / (1.0 - ratio) < LEFT_TO_GAIN;
        if settled || gain <= 1e-13 * now.abs() {
            return (now, mixture);
        }
        (before, mixture) = (now, next);
    }
    (step(&mixture, data, floor).0, mixture)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn component() -> impl Strategy<Value = Component> {
        (0.01..1.0f64, -5.0..5.0f64, 0.01..3.0f64).prop_map(|(weight, mean, std)| Component {
            weight,
            mean,
            std,
        })
    }

    proptest! {
        /// On any data, from any mixture: ties, outliers and floors included.
        #[test]
        fn the_likelihood_never_falls(
            mut mixture in prop::collection::vec(component(), 1..6),
            values in prop::collection::vec(prop_oneof![-3.0..3.0f64, Just(0.0), Just(1e6)], 5..80),
            floor in prop_oneof![Just(1e-3), Just(0.5)],
        ) {
            let total: f64 = mixture.iter().map(|k| k.weight).sum();
            mixture.iter_mut().for_each(|k| {
                k.weight /= total;
                k.std = k.std.max(floor);
            });
            let data: Vec<Cell> = values.iter().map(|&at| Cell { at, count: 1.0 }).collect();
            let mut before = f64::NEG_INFINITY;
            for _ in 0..30 {
                let (now, next) = step(&mixture, &data, floor);
                let terms = values.iter().map(|&x| ln_density(&mixture, x));
                let size: f64 = terms.clone().map(f64::abs).sum();
                prop_assert!(now >= before - 1e-12 * size, "{before} then {now}");
                prop_assert!((terms.sum::<f64>() - now).abs() <= 1e-12 * size);
                (before, mixture) = (now, next);
            }
        }
    }

    #[test]
    fn one_component_is_the_sample_in_one_step() {
        let data: Vec<Cell> = [1.0, 2.0, 6.0].map(|at| Cell { at, count: 2.0 }).into();
        let start = [Component { weight: 1.0, mean: -3.0, std: 10.0 }];
        let (_, next) = step(&start, &data, 1e-3);
        assert!((next[0].mean - 3.0).abs() < 1e-14);
        assert!((next[0].std * next[0].std - 14.0 / 3.0).abs() < 1e-13);
    }
}
