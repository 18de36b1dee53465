//! Detects norms that are not on the scale of an averaged loss: a summed loss, a loss scale.

use serde::Serialize;

use super::{TrainingCourse, median};
use crate::{Finding, Log, LogPoint};

/// Norms examined on either side of a jump of the loss scale.
const SIDE: usize = 16;
/// Norms of an averaged loss are rarely this large.
const LARGE: f64 = 500.0;
/// Nor is such a loss.
const LARGE_LOSS: f64 = 100.0;

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
    let large = norm > LARGE && ordinary.len() >= 10;
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
    (jumps >= 3 && large).then_some(NormScaleCause::LossScale { jumps, column: false })
}

fn with_column(points: &[&LogPoint]) -> Option<NormScaleCause> {
    let logs: Vec<f64> = points.iter().map(|p| p.norm.log2()).collect();
    let steps = logs.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
    // For a normal distribution the median step is 0.954 standard deviations, and a median of n has
    // 1.57/n of the variance.
    let noise = (median(steps)? / 0.954).powi(2).max(1e-4);
    // The share of a jump of the scale that the norms make too: one if they include it, zero if not.
    let (mut jumps, mut by_norm, mut by_scale) = (0, 0.0, 0.0);
    for i in 1..points.len() {
        let by = (points[i].loss_scale / points[i - 1].loss_scale).log2();
        if by.abs() < 0.9 {
            continue;
        }
        // Points of one scale on either side of the jump.
        let same = |at: usize| move |p: &&&LogPoint| p.loss_scale == points[at].loss_scale;
        let before = points[..i].iter().rev().take(SIDE).take_while(same(i - 1)).count();
        let after = points[i..].iter().take(SIDE).take_while(same(i)).count();
        let rise = median(logs[i..i + after].to_vec())? - median(logs[i - before..i].to_vec())?;
        let weight = 1.0 / (1.57 * noise * (1.0 / before as f64 + 1.0 / after as f64));
        jumps += 1;
        by_norm += weight * by * rise;
        by_scale += weight * by * by;
    }
    // One half is between the two; four standard errors are not chance.
    let share = by_norm / by_scale;
    if jumps >= 2 && (share - 1.0).abs() < 0.5 && share * by_scale.sqrt() > 4.0 {
        return Some(NormScaleCause::LossScale { jumps, column: true });
    }
    let scale = median(points.iter().map(|p| p.loss_scale).collect())?;
    let typical = median(points.iter().map(|p| p.norm).collect())?;
    let constant = points.iter().all(|p| p.loss_scale == scale);
    (constant && scale >= 256.0 && typical > 100.0)
        .then_some(NormScaleCause::ConstantLossScale { scale })
}

/// How often the level changes suddenly and lastingly by a power of two; zero if there are as many other
/// changes, or if the norms are too noisy to tell.
fn power_of_two_jumps(logs: &[f64]) -> usize {
    const WIDTH: usize = 16;
    if logs.len() < 4 * WIDTH {
        return 0;
    }
    let level = |part: &[f64]| median(part.to_vec()).unwrap_or(0.0);
    let change = |i: usize| level(&logs[i..i + WIDTH]) - level(&logs[i - WIDTH..i]);
    let noise = median(logs.windows(2).map(|w| (w[1] - w[0]).abs()).collect()).unwrap_or(0.0);
    // With such noise the medians of sixteen are known to about a tenth.
    if noise > 0.3 {
        return 0;
    }
    // A jump happens in one step, a drift does not.
    let sudden = |i: usize| (logs[i] - logs[i - 1]).abs() > 0.5;
    let last = logs.len() - WIDTH;
    let (mut whole, mut other, mut i) = (0, 0, WIDTH);
    while i <= last {
        if sudden(i) && change(i).abs() > 0.7 {
            // Of the steps near here, the one with the largest change is the jump itself.
            let near = (i..=last.min(i + WIDTH)).filter(|&j| sudden(j));
            let best = near.map(|j| (j, change(j))).max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
            let (at, by) = best.unwrap_or((i, 0.0));
            let is_whole = (by - by.round()).abs() < 0.2;
            whole += usize::from(is_whole);
            other += usize::from(!is_whole);
            i = at + WIDTH;
        } else {
            i += 1;
        }
    }
    if whole > 3 * other { whole } else { 0 }
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
