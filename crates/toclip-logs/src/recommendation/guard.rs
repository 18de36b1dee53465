//! A threshold that clips rare large gradients only.

use super::{Because, MOST_CLIPPED};
use crate::findings::{FEWEST_POINTS, TrainingCourse, quantile};
use crate::{Finding, Log, LogPoint};

/// A guard is at least this many times the median norm.
const TIMES: f64 = 2.0;
/// And this far above the 99.9th percentile of ordinary norms.
const ABOVE: f64 = 1.1;
/// And this far below the smallest spike.
const BELOW: f64 = 0.7;
/// And above all but this share of the logged norms.
const LARGEST_NORMS: f64 = 0.1;
/// If the norms fell by more than this, a guard for all of them would protect nothing later on.
const FELL: f64 = 4.0;

/// A threshold above ordinary norms and below spikes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guard {
    pub threshold: f64,
    /// The 99.9th percentile of ordinary norms.
    ordinary: f64,
    spikes: usize,
    below: usize,
}

impl Guard {
    pub fn because(self) -> Because {
        Because::GuardFits { ordinary: self.ordinary, spikes: self.spikes, below: self.below }
    }
}

/// The guard for the ordinary norms: those of the later half if the run goes on and they fell much.
/// Never above every norm seen.
pub(super) fn find(log: &Log, course: &TrainingCourse, findings: &[Finding]) -> Option<Guard> {
    let mut norms: Vec<f64> = course.ordinary(&log.points).map(|p| p.norm).collect();
    norms.retain(|n| *n > 0.0);
    if norms.len() < FEWEST_POINTS {
        return None;
    }
    let finished = findings.iter().any(|f| matches!(f, Finding::Finished { .. }));
    let whole = fit(log, course, norms.clone());
    let long = norms.len() >= 4 * FEWEST_POINTS;
    let later = fit(log, course, norms[norms.len() / 2..].to_vec());
    let last = fit(log, course, norms[3 * norms.len() / 4..].to_vec());
    // Norms that fell leave a guard for all of them above the spikes of today.
    let misses = |guard: &Guard| guard.spikes > 0 && guard.below == 0;
    let chosen = match misses(&whole) {
        _ if finished || !long => whole,
        true if misses(&later) => last,
        true => later,
        false if whole.ordinary > FELL * later.ordinary => later,
        false => whole,
    };
    // A threshold that clips many of the steps so far is no guard, and neither is one that clips none.
    let clips = |guard: &Guard| fires(&log.points[..course.end], guard.threshold);
    let chosen = if clips(&chosen) <= MOST_CLIPPED { chosen } else { whole };
    (clips(&chosen) > 0.0 && clips(&chosen) <= MOST_CLIPPED).then_some(chosen)
}

/// The guard for some norms.
fn fit(log: &Log, course: &TrainingCourse, mut norms: Vec<f64>) -> Guard {
    norms.sort_by(f64::total_cmp);
    let ordinary = quantile(&norms, 0.999);
    // Without what came after training broke.
    let mut all: Vec<f64> = log.points[..course.end].iter().map(|p| p.norm).collect();
    all.sort_by(f64::total_cmp);
    let least = (TIMES * quantile(&norms, 0.5))
        .max(ABOVE * ordinary)
        .max(quantile(&all, 1.0 - LARGEST_NORMS));
    // Peaks below are of the aftermath of larger ones.
    let peaks = course.spikes.iter().map(|spike| spike.norm).filter(|peak| *peak > least);
    let smallest = peaks.fold(f64::INFINITY, f64::min);
    let threshold = least.min(BELOW * smallest).max(ordinary);
    let threshold = match two_digits(threshold) {
        rounded if rounded <= quantile(&all, 1.0) => rounded,
        _ => two_digits_down(quantile(&all, 1.0)),
    };
    let below = course.spikes.iter().filter(|spike| spike.norm > threshold).count();
    Guard { threshold, ordinary, spikes: course.spikes.len(), below }
}

/// The share of the logged norms above a threshold.
pub(super) fn fires(points: &[LogPoint], threshold: f64) -> f64 {
    let above = points.iter().filter(|p| p.norm > threshold).count();
    above as f64 / points.len().max(1) as f64
}

/// A number with two significant digits: nobody can tell more from a log.
pub(super) fn two_digits(x: f64) -> f64 {
    toclip_words::rounded(x, 2)
}

/// The largest number with two significant digits that is not above.
fn two_digits_down(x: f64) -> f64 {
    match two_digits(x) {
        rounded if rounded <= x => rounded,
        _ => two_digits(x - 0.05 * 10_f64.powf(x.log10().floor())).min(x),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_two_digits() {
        assert_eq!([0.01234, 1.0, 98.7, 1234.0].map(two_digits), [0.012, 1.0, 99.0, 1200.0]);
        let down = [0.0127, 1.0, 98.7, 7.688, 10.99, 0.099_99].map(two_digits_down);
        assert_eq!(down, [0.012, 1.0, 98.0, 7.6, 10.0, 0.099]);
    }
}
