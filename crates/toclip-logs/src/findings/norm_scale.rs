//! Detects norms that are not on the scale of an averaged loss: a summed loss, a loss scale.

use serde::Serialize;

use super::{TrainingCourse, median};
use crate::{Finding, Log, LogPoint};

/// Norms examined on either side of a jump of the loss scale: their median is known to a third of their
/// spread, and scales last longer than this.
const SIDE: usize = 16;
/// Norms of an averaged loss are rarely this large.
const LARGE: f64 = 500.0;
/// Nor is such a loss.
const LARGE_LOSS: f64 = 100.0;
/// Fewer ordinary norms give no reliable median.
const FEWEST_NORMS: usize = 10;

// With the column of the loss scale. Jumps are in powers of two.

/// A change of the scale that is a jump: trainers double or halve it, and it is written with rounding.
const SCALE_JUMP: f64 = 0.9;
/// One jump that the norms follow may be chance.
const FEWEST_FOLLOWED: usize = 2;
/// The median absolute difference of two independent normal numbers, in their standard deviations.
const MEDIAN_DIFFERENCE: f64 = 0.954;
/// The variance of the median of many normal numbers, over that of their mean: π/2.
const MEDIAN_VARIANCE: f64 = 1.57;
/// The least variance of log₂ norm that is assumed, so that norms that hardly vary have a finite weight.
const LEAST_VARIANCE: f64 = 1e-4;
/// The norms follow all of a jump (1) or none of it (0): a share further than this from 1 is neither.
const SHARE_ERROR: f64 = 0.5;
/// A share that is so many standard errors above zero is not chance.
const SHARE_ERRORS: f64 = 4.0;
/// A constant loss scale of at least this is one of mixed precision ...
const LEAST_CONSTANT: f64 = 256.0;
/// ... and norms above this then include it.
const LARGE_SCALED: f64 = 100.0;

// Without it. Numbers are of log₂ norm.

/// Fewer jumps by powers of two are restarts, or batches of another size.
const FEWEST_JUMPS: usize = 3;
/// With a larger median step from norm to norm, the medians on either side are not known to a tenth.
const NOISIEST: f64 = 0.3;
/// A jump happens in a single step of more than this; a drift does not.
const SUDDEN: f64 = 0.5;
/// The level changes by more than this where the scale doubles or is halved.
const LEVEL_JUMP: f64 = 0.7;
/// How far a change by a power of two is from an integer, at most.
const FROM_INTEGER: f64 = 0.2;
/// Changes by powers of two must be more than this many times as frequent as others.
const OVER_OTHERS: usize = 3;

/// Why norms are not on the scale of an averaged loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NormScaleCause {
    /// They include the loss scale of mixed precision, which changes.
    LossScale {
        /// Jumps of the scale, or by powers of two, that the norms follow.
        jumps: usize,
        /// Whether the log has a column of the scale, by which the norms can be divided.
        column: bool,
    },
    /// They seem to include a loss scale that does not change.
    ConstantLossScale {
        /// The loss scale.
        scale: f64,
    },
    /// The loss is large too: it is summed over tokens or samples.
    SummedLoss,
    /// The loss is not large or not known: a loss scale, or gradients that are summed.
    Unknown,
}

/// Whether the norms are not on the scale of an averaged loss, and why.
pub(super) fn find(log: &Log, course: &TrainingCourse) -> Option<Finding> {
    let ordinary: Vec<&LogPoint> = course.ordinary(&log.points).collect();
    let norm = median(ordinary.iter().map(|p| p.norm).collect())?;
    let loss = median(ordinary.iter().filter_map(|p| p.finite_loss()).collect());
    let unscaled = log.findings.contains(&Finding::Unscaled);
    let large = norm > LARGE && ordinary.len() >= FEWEST_NORMS;
    let cause = match detect_loss_scale(&log.points).filter(|_| !unscaled) {
        Some(cause) => cause,
        None if large && loss.is_some_and(|l| l.abs() > LARGE_LOSS) => NormScaleCause::SummedLoss,
        None if large => NormScaleCause::Unknown,
        None => return None,
    };
    Some(Finding::NormScale { median: norm, loss, cause })
}

/// Whether the norms move with the loss scale, or jump by powers of two without one.
fn detect_loss_scale(points: &[LogPoint]) -> Option<NormScaleCause> {
    let scaled: Vec<&LogPoint> =
        points.iter().filter(|p| p.loss_scale > 0.0 && p.norm > 0.0).collect();
    if scaled.len() * 2 > points.len() {
        return with_column(&scaled);
    }
    let logs: Vec<f64> = points.iter().filter(|p| p.norm > 0.0).map(|p| p.norm.log2()).collect();
    let jumps = power_of_two_jumps(&logs);
    // Restarts and batches of another size double norms too; those of a loss scale are large.
    let large = median(logs).is_some_and(|log| log > LARGE.log2());
    (jumps >= FEWEST_JUMPS && large).then_some(NormScaleCause::LossScale { jumps, column: false })
}

fn with_column(points: &[&LogPoint]) -> Option<NormScaleCause> {
    let logs: Vec<f64> = points.iter().map(|p| p.norm.log2()).collect();
    let steps = logs.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
    let noise = (median(steps)? / MEDIAN_DIFFERENCE).powi(2).max(LEAST_VARIANCE);
    // The share of a jump of the scale that the norms make too: one if they include it, zero if not.
    let (mut jumps, mut by_norm, mut by_scale) = (0, 0.0, 0.0);
    for i in 1..points.len() {
        let by = (points[i].loss_scale / points[i - 1].loss_scale).log2();
        if by.abs() < SCALE_JUMP {
            continue;
        }
        // Points of one scale on either side of the jump.
        let same = |at: usize| move |p: &&&LogPoint| p.loss_scale == points[at].loss_scale;
        let before = points[..i].iter().rev().take(SIDE).take_while(same(i - 1)).count();
        let after = points[i..].iter().take(SIDE).take_while(same(i)).count();
        let rise = median(logs[i..i + after].to_vec())? - median(logs[i - before..i].to_vec())?;
        let variance = MEDIAN_VARIANCE * noise * (1.0 / before as f64 + 1.0 / after as f64);
        let weight = 1.0 / variance;
        jumps += 1;
        by_norm += weight * by * rise;
        by_scale += weight * by * by;
    }
    let share = by_norm / by_scale;
    let follows = (share - 1.0).abs() < SHARE_ERROR && share * by_scale.sqrt() > SHARE_ERRORS;
    if jumps >= FEWEST_FOLLOWED && follows {
        return Some(NormScaleCause::LossScale { jumps, column: true });
    }
    let scale = median(points.iter().map(|p| p.loss_scale).collect())?;
    let typical = median(points.iter().map(|p| p.norm).collect())?;
    let constant = points.iter().all(|p| p.loss_scale == scale);
    (constant && scale >= LEAST_CONSTANT && typical > LARGE_SCALED)
        .then_some(NormScaleCause::ConstantLossScale { scale })
}

/// How often the level changes suddenly and lastingly by a power of two; zero if there are as many other
/// changes, or if the norms are too noisy to tell.
fn power_of_two_jumps(logs: &[f64]) -> usize {
    if logs.len() < 4 * SIDE {
        return 0;
    }
    let level = |part: &[f64]| median(part.to_vec()).unwrap_or(0.0);
    let change = |i: usize| level(&logs[i..i + SIDE]) - level(&logs[i - SIDE..i]);
    let noise = median(logs.windows(2).map(|w| (w[1] - w[0]).abs()).collect()).unwrap_or(0.0);
    if noise > NOISIEST {
        return 0;
    }
    let sudden = |i: usize| (logs[i] - logs[i - 1]).abs() > SUDDEN;
    let last = logs.len() - SIDE;
    let (mut whole, mut other, mut i) = (0, 0, SIDE);
    while i <= last {
        if sudden(i) && change(i).abs() > LEVEL_JUMP {
            // The step with the largest change near here is the jump itself.
            let near = (i..=last.min(i + SIDE)).filter(|&j| sudden(j));
            let best = near.map(|j| (j, change(j))).max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
            let (at, by) = best.unwrap_or((i, 0.0));
            let is_whole = (by - by.round()).abs() < FROM_INTEGER;
            whole += usize::from(is_whole);
            other += usize::from(!is_whole);
            i = at + SIDE;
        } else {
            i += 1;
        }
    }
    if whole > OVER_OTHERS * other { whole } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, LogNormal};

    fn points(norms: &[f64], scales: Option<&[f64]>) -> Vec<LogPoint> {
        let scale = |i: usize| scales.map_or(f64::NAN, |s| s[i]);
        let nan = f64::NAN;
        let point = |(i, &norm): (usize, &f64)| LogPoint {
            step: i as f64,
            norm,
            loss: None,
            learning_rate: nan,
            loss_scale: scale(i),
            epoch: nan,
        };
        norms.iter().enumerate().map(point).collect()
    }

    fn log_normal(seed: u64, n: usize, width: f64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let distribution = LogNormal::new(0.0, width).unwrap();
        (0..n).map(|_| distribution.sample(&mut rng)).collect()
    }

    #[test]
    fn a_loss_scale_is_seen_with_and_without_its_column() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut seen = 0;
        for seed in 0..50 {
            let clean = log_normal(seed, 600, 0.15);
            let mut scale = 65536.0;
            let scales: Vec<f64> = (0..600)
                .map(|i| {
                    if i % 80 == 79 {
                        scale *= if rng.random_bool(0.5) { 2.0 } else { 0.5 };
                    }
                    scale
                })
                .collect();
            let carried: Vec<f64> = clean.iter().zip(&scales).map(|(n, s)| n * s).collect();
            let with = detect_loss_scale(&points(&carried, Some(&scales)));
            assert!(
                matches!(with, Some(NormScaleCause::LossScale { column: true, .. })),
                "{with:?}"
            );
            let without = detect_loss_scale(&points(&carried, None));
            seen += usize::from(matches!(
                without,
                Some(NormScaleCause::LossScale { column: false, .. })
            ));
            assert_eq!(detect_loss_scale(&points(&clean, Some(&scales))), None, "{seed}");
            assert_eq!(detect_loss_scale(&points(&clean, None)), None, "{seed}");
        }
        // With the column, also under noise as large as the jumps, where one in 16 000 would be by chance.
        let (mut carry, mut clean) = (0, 0);
        for seed in 0..200 {
            let norms = log_normal(seed, 2000, 0.7);
            let scales: Vec<f64> = (0..2000).map(|i| [65536.0, 32768.0][i / 150 % 2]).collect();
            let carried: Vec<f64> = norms.iter().zip(&scales).map(|(n, s)| n * s).collect();
            carry += usize::from(detect_loss_scale(&points(&carried, Some(&scales))).is_some());
            clean += usize::from(detect_loss_scale(&points(&norms, Some(&scales))).is_some());
        }
        // The share is known to 0.12: nearly all are within the half.
        assert!(carry >= 195 && clean == 0, "{carry} {clean}");
        // Seven jumps under noise of 15%: without the column nearly all such logs are seen.
        assert!(seen >= 45, "{seen} of 50");
    }
}
