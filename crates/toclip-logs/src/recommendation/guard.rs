//! A threshold that clips rare large gradients only.

use super::Because;
use crate::findings::Course;
use crate::{Finding, Log};

/// A guard is at least this many times the median norm.
const TIMES: f64 = 2.0;
/// And this far above the 99.9th percentile of ordinary norms.
const ABOVE: f64 = 1.1;
/// And this far below the smallest spike.
const BELOW: f64 = 0.7;
/// It clips at most this share of the logged steps.
const OFTEN: f64 = 0.1;

/// A threshold above ordinary norms and below spikes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guard {
    pub threshold: f64,
    ordinary: f64,
    smallest_spike: Option<f64>,
}

impl Guard {
    pub fn because(self) -> Because {
        Because::GuardFits { ordinary: self.ordinary, smallest_spike: self.smallest_spike }
    }
}

/// The guard for the ordinary norms: all of them if the run is finished, since it is for the next one,
/// else those of the later half. Never above every norm seen.
pub(super) fn find(log: &Log, course: &Course, findings: &[Finding]) -> Option<Guard> {
    let mut norms: Vec<f64> = course.ordinary(&log.points).map(|p| p.norm).collect();
    norms.retain(|n| *n > 0.0);
    if norms.len() < super::FEWEST {
        return None;
    }
    let finished = findings.iter().any(|f| matches!(f, Finding::Finished { .. }));
    if !finished && norms.len() >= 4 * super::FEWEST {
        norms.drain(..norms.len() / 2);
    }
    norms.sort_by(f64::total_cmp);
    let at = |p: f64| norms[(p * (norms.len() - 1) as f64).round() as usize];
    let ordinary = at(0.999);
    let mut threshold = (TIMES * at(0.5)).max(ABOVE * ordinary);
    let peaks = course.spikes.iter().map(|spike| spike.norm);
    let smallest_spike = peaks.reduce(f64::min).filter(|peak| *peak > at(0.99));
    if let Some(peak) = smallest_spike {
        threshold = threshold.min((BELOW * peak).max(at(0.99)));
    }
    let mut all = log.norms();
    all.sort_by(f64::total_cmp);
    let often = all[((1.0 - OFTEN) * (all.len() - 1) as f64).round() as usize];
    let largest = all[all.len() - 1];
    let threshold = two_digits(threshold.max(often));
    Some(Guard { threshold: threshold.min(largest), ordinary, smallest_spike })
}

/// The share of the logged norms above a threshold.
pub(super) fn fires(log: &Log, threshold: f64) -> f64 {
    let above = log.points.iter().filter(|p| p.norm > threshold).count();
    above as f64 / log.points.len().max(1) as f64
}

/// A number with two significant digits: nobody can tell more from a log.
pub(super) fn two_digits(x: f64) -> f64 {
    format!("{x:.1e}").parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_two_digits() {
        assert_eq!([0.01234, 1.0, 98.7, 1234.0].map(two_digits), [0.012, 1.0, 99.0, 1200.0]);
    }
}
