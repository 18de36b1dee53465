//! Whether training diverged, is diverging, or never came back from a spike.

use super::spread::noise;
use super::{Finding, median};
use crate::{Log, LogPoint};

/// Fewer non-finite norms at the end may be steps that were skipped.
const ENDED: usize = 3;
/// As many non-finite steps as finite ones are an end too, from this many on.
const MOSTLY: usize = 10;
/// Ordinary points in a row that end the search for where the trouble began.
const QUIET: usize = 10;
/// The loss is smoothed by the medians of this many blocks ...
const BLOCKS: usize = 40;
/// ... of at least this many points.
const SMALLEST: usize = 4;
/// The excess over the best loss is real if it is this many times its standard error, ...
const ERRORS: f64 = 8.0;
/// ... and large if it is this share of the progress since the start, ...
const OF_GAIN: f64 = 0.15;
/// ... or this share of the best loss and not negligible against that gain.
const OF_BEST: f64 = 0.25;
const NEGLIGIBLE: f64 = 0.03;

/// Splits the non-finite steps into those at which training ended and those that it survived.
pub(super) fn split_non_finite(log: &Log) -> (&[LogPoint], &[LogPoint]) {
    let all = &log.non_finite[..];
    let last_finite = log.points.iter().rfind(|p| !p.loss_broke()).map(|p| p.step);
    let ended = match last_finite {
        Some(last) => all.len() - all.iter().rev().take_while(|p| p.step > last).count(),
        None => 0,
    };
    // Or most of the steps from somewhere on: the few finite ones between them change nothing.
    let mostly = (0..ended).find(|&i| {
        let finite = log.points.len() - log.points.partition_point(|p| p.step < all[i].step);
        all.len() - i >= MOSTLY && all.len() - i >= finite
    });
    let (survived, end) = all.split_at(mostly.unwrap_or(ended));
    let loss = end.iter().any(LogPoint::loss_broke);
    let enough = end.len() >= ENDED || loss && !end.is_empty();
    if enough { (survived, end) } else { (all, &[]) }
}

/// The finding for a run that ended in NaN. `affected` marks points far above their running median.
pub(super) fn diverged(log: &Log, end: &[LogPoint], affected: &[bool]) -> Option<Finding> {
    let since = end.first()?.step;
    let finite = log.points.partition_point(|p| p.step < since);
    // Points that grew before the end; a few ordinary ones in between do not count.
    let mut good = finite;
    while good > 0 && affected[good.saturating_sub(QUIET)..good].iter().any(|a| *a) {
        good -= 1;
    }
    let last = good.checked_sub(1).map(|i| &log.points[i]);
    let known = |x: f64| x.is_finite().then_some(x);
    Some(Finding::Diverged {
        steps: end.iter().map(|p| p.step).collect(),
        last_good: last.map(|p| p.step),
        learning_rate: last.or(end.first()).and_then(|p| known(p.learning_rate)),
        grew: finite - good >= 3,
        // Trainers in half precision log a loss of exactly zero for NaN.
        loss_finite: end.iter().all(|p| p.finite_loss().is_some_and(|loss| loss != 0.0)),
    })
}

/// Medians of the loss over blocks, with the step at which each begins.
pub(super) fn smooth(points: &[LogPoint]) -> Vec<(f64, f64)> {
    let with_loss: Vec<(f64, f64)> =
        points.iter().filter_map(|p| Some((p.step, p.finite_loss()?))).collect();
    let size = with_loss.len().div_ceil(BLOCKS).max(SMALLEST);
    let block = |part: &[(f64, f64)]| {
        let losses = part.iter().map(|(_, loss)| *loss).collect();
        Some((part.first()?.0, median(losses)?))
    };
    // A short last block would be a noisy end.
    with_loss.rchunks(size).filter(|part| part.len() >= SMALLEST).rev().filter_map(block).collect()
}

/// Whether the loss at the end is far above its best, rising or not.
pub(super) fn above_best(points: &[LogPoint]) -> Option<Finding> {
    let blocks = smooth(points);
    let losses: Vec<f64> = blocks.iter().map(|b| b.1).collect();
    let (&first, &last) = (losses.first()?, losses.last()?);
    let at = (0..losses.len()).min_by(|a, b| losses[*a].total_cmp(&losses[*b]))?;
    let best = losses[at];
    let raw: Vec<f64> = points.iter().filter_map(LogPoint::finite_loss).collect();
    // The noise of blocks is measured, since neighbouring losses may be alike; it has a floor from
    // single losses.
    let size = raw.len() as f64 / losses.len() as f64;
    let error = noise(&losses).max(1.25 * noise(&raw) / size.sqrt());
    let (excess, gained) = (last - best, first - best);
    let large =
        excess > OF_GAIN * gained || excess > OF_BEST * best.abs() && excess > NEGLIGIBLE * gained;
    if losses.len() < 6 || at + 2 >= losses.len() || !large || !(excess > ERRORS * error) {
        return None;
    }
    // A rise as large that the loss came back from is the course of this training: restarts of the
    // learning rate, easy and hard parts of an epoch.
    let mut low = f64::INFINITY;
    let rises = losses[..=at].iter().map(|loss| {
        low = low.min(*loss);
        loss - low
    });
    if rises.fold(0.0, f64::max) > 0.7 * excess {
        return None;
    }
    let highest = losses[at..].iter().fold(best, |a, b| a.max(*b));
    let before = losses[losses.len() - 4.min(losses.len() - at)];
    let rises = last > before + 3.0 * error && excess > 0.7 * (highest - best);
    // A loss that falls is on its way back.
    let falls = last < before - 3.0 * error;
    let best_step = blocks[at].0;
    match rises {
        true => Some(Finding::Diverging { best_step, best, last }),
        false => (!falls).then_some(Finding::NotRecovered { best_step, best, last }),
    }
}
