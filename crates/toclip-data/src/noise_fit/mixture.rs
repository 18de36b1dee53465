//! Gaussian mixtures by maximum likelihood: expectation and maximisation (EM; Dempster, Laird and
//! Rubin 1977) from several starts.

use super::bins::{Bin, bins};
use super::closed_form::ln_normal;
use super::sample::{Random, Sample};
use super::{Components, Fitted};
use toclip::noise::{Component, Mixture};

/// EM steps of each start before only the best continues.
const TRIAL: usize = 50;
/// EM steps on rough bins, at most.
const ROUGH: usize = 1000;
/// EM steps on fine bins, at most.
const FINE: usize = 200;
/// Rough bins: the largest width in units of the spread, and how many there are at least.
const ROUGH_BINS: (f64, usize) = (0.02, 1024);
/// Widest fine bin in units of the narrowest component. A variance then is too small by less than
/// one part in 10⁵, a hundredth of its standard error with a million residuals.
const FINE_BIN: f64 = 0.01;
/// EM stops when less log-likelihood than this, in nats, remains to be gained. A parameter is then
/// within a fiftieth of its standard error of the maximum.
const LEFT_TO_GAIN: f64 = 1e-4;
/// Random starts; two more are not random.
const DRAWN: u64 = 4;

/// $\sum_j w_j N(m_j, s_j^2)$, sorted by mean, with the largest likelihood that EM finds for the given
/// number of components or for that of least BIC.
///
/// EM runs from six starts on the residuals merged into a few thousand bins; the best continues on
/// bins that are narrow compared with every component, so the cost hardly grows with the number of
/// residuals. No standard deviation may fall below a thousandth of the spread (or spread/$n$ for few
/// residuals), since the likelihood is unbounded there.
pub(super) fn fit(sample: &Sample, components: Components) -> Fitted {
    let Sample { median, spread, .. } = *sample;
    let standard = move |x: f64| (x - median) / spread;
    let values: Vec<f64> = sample.values.iter().map(|&x| standard(x)).collect();
    let floor = sample.floor / spread;
    let (width, count) = ROUGH_BINS;
    let rough = bins(&values, width, values.len().div_ceil(count));
    let mut found = match components {
        Components::Exactly(k) => with(k, &rough, &values, floor).1,
        Components::UpTo(most) => by_bic(most, values.len(), |k| with(k, &rough, &values, floor)),
    };
    found.sort_by(|a, b| a.mean.total_cmp(&b.mean));
    let in_units = |c: &Component| Component {
        weight: c.weight,
        mean: median + spread * c.mean,
        std: spread * c.std,
    };
    let family = Mixture::new(&found.iter().map(in_units).collect::<Vec<_>>());
    Fitted::new(3 * found.len() - 1, family, move |x| ln_density(&found, standard(x)) - spread.ln())
}

/// Tries 1, 2, … components until BIC has risen twice in a row.
fn by_bic(most: usize, n: usize, fit: impl Fn(usize) -> (f64, Vec<Component>)) -> Vec<Component> {
    let (mut least, mut best, mut worse) = (f64::INFINITY, Vec::new(), 0);
    for k in 1..=most {
        let (log_likelihood, components) = fit(k);
        let bic = (3 * k - 1) as f64 * (n as f64).ln() - 2.0 * log_likelihood;
        if bic < least {
            (least, best, worse) = (bic, components, 0);
        } else {
            worse += 1;
            if worse == 2 {
                break;
            }
        }
    }
    best
}

fn with(k: usize, rough: &[Bin], values: &[f64], floor: f64) -> (f64, Vec<Component>) {
    let trials = starts(rough, k, floor).into_iter().map(|start| climb(start, rough, floor, TRIAL));
    let best = trials.max_by(|a, b| a.0.total_cmp(&b.0)).map(|trial| trial.1).unwrap_or_default();
    let (_, best) = climb(best, rough, floor, ROUGH);
    let narrowest = best.iter().map(|c| c.std).fold(f64::INFINITY, f64::min);
    let fine = bins(values, FINE_BIN * narrowest, values.len());
    let (log_likelihood, mut best) = climb(best, &fine, floor, FINE);
    best.retain(|c| c.weight > 0.0);
    (log_likelihood, best)
}

/// $\ln\sum_j w_j \varphi((x - m_j)/s_j)/s_j$, with the largest term taken out of the sum.
fn ln_density(mixture: &[Component], x: f64) -> f64 {
    let term = |k: &Component| k.weight.ln() + ln_normal((x - k.mean) / k.std) - k.std.ln();
    let largest = mixture.iter().map(term).fold(f64::NEG_INFINITY, f64::max);
    largest + mixture.iter().map(|k| (term(k) - largest).exp()).sum::<f64>().ln()
}

/// One step: the log-likelihood of `mixture`, and a mixture that has no smaller one.
///
/// A variance that would fall below the square of `floor` is set there, where the likelihood under
/// that constraint is largest, so the likelihood still does not fall.
fn step(mixture: &[Component], data: &[Bin], floor: f64) -> (f64, Vec<Component>) {
    let ready: Vec<(f64, f64, f64)> = mixture
        .iter()
        .map(|k| (k.weight.ln() + ln_normal(0.0) - k.std.ln(), k.mean, 1.0 / k.std))
        .collect();
    // Of each component: the sum of shares, and of shares times (x − m) and (x − m)².
    let mut sums = vec![[0.0f64; 3]; mixture.len()];
    let mut shares = vec![0.0f64; mixture.len()];
    let mut log_likelihood = 0.0;
    for bin in data {
        let mut largest = f64::NEG_INFINITY;
        for (share, &(constant, mean, precision)) in shares.iter_mut().zip(&ready) {
            let z = (bin.at - mean) * precision;
            *share = constant - 0.5 * z * z;
            largest = largest.max(*share);
        }
        let mut total = 0.0;
        for share in &mut shares {
            *share = (*share - largest).exp();
            total += *share;
        }
        log_likelihood += bin.count * (largest + total.ln());
        for ((share, sum), &(_, mean, _)) in shares.iter().zip(&mut sums).zip(&ready) {
            let part = bin.count * share / total;
            let away = bin.at - mean;
            sum[0] += part;
            sum[1] += part * away;
            sum[2] += part * away * away;
        }
    }
    let n: f64 = sums.iter().map(|sum| sum[0]).sum();
    let update = |(k, sum): (&Component, &[f64; 3])| {
        let weight = sum[0] / n;
        // A component without residuals stays where it is, with no weight.
        if !(sum[0] > 1e-200) {
            return Component { weight, ..*k };
        }
        let (shift, square) = (sum[1] / sum[0], sum[2] / sum[0]);
        let mean = k.mean + shift;
        // After a large shift the difference is mostly rounding error. Moving only the mean raises
        // the likelihood too, and the next step computes the variance from there.
        if square - shift * shift < 1e-6 * shift * shift {
            return Component { weight, mean, ..*k };
        }
        let variance = (square - shift * shift).max(floor * floor);
        Component { weight, mean, std: variance.sqrt() }
    };
    (log_likelihood, mixture.iter().zip(&sums).map(update).collect())
}

/// EM steps until little is left to gain, at most `most`; with the log-likelihood.
fn climb(
    mut mixture: Vec<Component>,
    data: &[Bin],
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

/// Starts with `k` components for sorted data in units of their spread.
fn starts(data: &[Bin], k: usize, floor: f64) -> Vec<Vec<Component>> {
    if k == 1 {
        return vec![clusters(data, &[0.0], floor)];
    }
    // Side by side: the parts of the data by size.
    let mut starts = vec![components(&equal_parts(data, k), floor), in_scale(data, k, floor)];
    for seed in 0..DRAWN {
        // Half of them look for outliers, half prevent outliers from taking all centres.
        let power = if seed % 2 == 0 { 2 } else { 1 };
        let centres = centres(data, k, power, &mut Random::new(seed));
        starts.push(clusters(data, &centres, floor));
    }
    starts
}

/// The data in sorted order, cut into `k` parts of equal count.
fn equal_parts(data: &[Bin], k: usize) -> Vec<Vec<Bin>> {
    let n: f64 = data.iter().map(|c| c.count).sum();
    let mut parts = vec![Vec::new(); k];
    let mut seen = 0.0;
    for bin in data {
        let part = ((seen + 0.5 * bin.count) / n * k as f64) as usize;
        parts[part.min(k - 1)].push(*bin);
        seen += bin.count;
    }
    parts
}

/// Components at zero, with the root mean squares of the parts of the data by distance: a bell with
/// tails.
fn in_scale(data: &[Bin], k: usize, floor: f64) -> Vec<Component> {
    let mut by_distance: Vec<Bin> = data.to_vec();
    by_distance.sort_by(|a, b| a.at.abs().total_cmp(&b.at.abs()));
    let n: f64 = data.iter().map(|c| c.count).sum();
    let component = |part: &Vec<Bin>| {
        let (mut count, mut square) = (0.0, 0.0);
        for bin in part {
            count += bin.count;
            square += bin.count * bin.at * bin.at;
        }
        (count > 0.0).then(|| Component {
            weight: count / n,
            mean: 0.0,
            std: (square / count).sqrt().max(floor),
        })
    };
    equal_parts(&by_distance, k).iter().filter_map(component).collect()
}

/// Centres drawn one by one, with probability in proportion to the distance from those before, to
/// a power (Arthur and Vassilvitskii 2007 for the second).
fn centres(data: &[Bin], k: usize, power: i32, random: &mut Random) -> Vec<f64> {
    let mut centres: Vec<f64> = Vec::new();
    let mut weights: Vec<f64> = data.iter().map(|c| c.count).collect();
    while centres.len() < k {
        let mut left = random.unit() * weights.iter().sum::<f64>();
        let chosen = weights.iter().position(|w| {
            left -= w;
            left < 0.0
        });
        // With fewer different values than centres, no weight is left.
        let Some(chosen) = chosen else { break };
        centres.push(data[chosen].at);
        for (weight, bin) in weights.iter_mut().zip(data) {
            let far = centres.iter().map(|m| (bin.at - m).abs()).fold(f64::INFINITY, f64::min);
            *weight = bin.count * far.powi(power);
        }
    }
    centres
}

/// Each value to its nearest centre.
fn clusters(data: &[Bin], centres: &[f64], floor: f64) -> Vec<Component> {
    let mut parts = vec![Vec::new(); centres.len()];
    for bin in data {
        let distance = |j: &usize| (bin.at - centres[*j]).abs();
        let nearest = (0..centres.len()).min_by(|a, b| distance(a).total_cmp(&distance(b)));
        parts[nearest.unwrap_or(0)].push(*bin);
    }
    components(&parts, floor)
}

/// The components with the weights, means and variances of parts of the data.
fn components(parts: &[Vec<Bin>], floor: f64) -> Vec<Component> {
    let count = |part: &[Bin]| part.iter().map(|c| c.count).sum::<f64>();
    let n: f64 = parts.iter().map(|part| count(part)).sum();
    let component = |part: &Vec<Bin>| {
        let count = count(part);
        let mean = part.iter().map(|c| c.count * c.at).sum::<f64>() / count;
        let square = part.iter().map(|c| c.count * (c.at - mean).powi(2)).sum::<f64>() / count;
        Component { weight: count / n, mean, std: square.sqrt().max(floor) }
    };
    parts.iter().filter(|part| !part.is_empty()).map(component).collect()
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
            let data: Vec<Bin> = values.iter().map(|&at| Bin { at, count: 1.0 }).collect();
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
        let data: Vec<Bin> = [1.0, 2.0, 6.0].map(|at| Bin { at, count: 2.0 }).into();
        let start = [Component { weight: 1.0, mean: -3.0, std: 10.0 }];
        let (_, next) = step(&start, &data, 1e-3);
        assert!((next[0].mean - 3.0).abs() < 1e-14);
        assert!((next[0].std * next[0].std - 14.0 / 3.0).abs() < 1e-13);
    }

    #[test]
    fn every_start_is_a_mixture() {
        let mut data: Vec<Bin> =
            (-50..50).map(|i| Bin { at: f64::from(i) / 20.0, count: 3.0 }).collect();
        data.push(Bin { at: 1e6, count: 1.0 });
        for k in 1..=6 {
            for start in starts(&data, k, 1e-3) {
                let total: f64 = start.iter().map(|c| c.weight).sum();
                assert!((total - 1.0).abs() < 1e-12 && start.len() <= k, "{start:?}");
                assert!(start.iter().all(|c| c.std >= 1e-3 && c.mean.is_finite()));
            }
        }
        // Three centres drawn by squared distance find an outlier a million spreads away.
        let far = centres(&data, 3, 2, &mut Random::new(0));
        assert!(far.contains(&1e6));
        let two = [Bin { at: -1.0, count: 9.0 }, Bin { at: 1.0, count: 9.0 }];
        assert!(centres(&two, 5, 2, &mut Random::new(3)).len() == 2);
    }
}
