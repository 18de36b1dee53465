//! The warm-up and the end of the schedule, from the learning rate.

use crate::{Finding, LogPoint};

/// Norms are large in the first steps of every run.
const FIRST_STEPS: f64 = 100.0;
/// A rate that begins below this share of its largest value is warmed up.
const BEGINS: f64 = 0.5;
/// A schedule has ended when the rate is this share of its largest value. Ten percent is a common end.
const ENDED: f64 = 0.11;

/// A rate that falls below this share of itself at once does so by steps.
const STEP: f64 = 0.6;

/// How many of the points are the warm-up: the first hundred steps, or while the rate still rises; at
/// most a third of them.
pub(super) fn warm_up(points: &[LogPoint]) -> usize {
    let Some(first) = points.first() else { return 0 };
    let early = points.partition_point(|p| p.step < first.step + FIRST_STEPS);
    let most = largest(points);
    let peak = points.iter().position(|p| p.learning_rate >= 0.999 * most).unwrap_or(0);
    let begins = points.iter().map(|p| p.learning_rate).find(|r| r.is_finite());
    // A rate that rises to the end, as in a range test, is no warm-up.
    let warmed = begins.is_some_and(|r| r < BEGINS * most) && 10 * peak < 9 * points.len();
    early.max(if warmed { peak } else { 0 }).min(points.len() / 3)
}

/// Whether the schedule of the learning rate has come to its end.
pub(super) fn finished(points: &[LogPoint]) -> Option<Finding> {
    let most = largest(points);
    let last = points.iter().rev().map(|p| p.learning_rate).find(|r| r.is_finite())?;
    let rate = last / most;
    // A schedule of steps goes on after each of them.
    let steps = points.windows(2).any(|w| w[1].learning_rate < STEP * w[0].learning_rate);
    (points.len() >= 20 && rate <= ENDED && (!steps || rate == 0.0))
        .then_some(Finding::Finished { rate })
}

fn largest(points: &[LogPoint]) -> f64 {
    points.iter().map(|p| p.learning_rate).filter(|r| r.is_finite()).fold(0.0, f64::max)
}
