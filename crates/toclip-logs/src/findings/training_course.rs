//! The course of the training: warm-up, spikes, and how it ended.

use super::divergence::{self, above_best, diverged, split_non_finite};
use super::{FEWEST_POINTS, Finding, Spike, learning_rate, median, spikes};
use crate::{Log, LogPoint};

/// Points after a spike that are not ordinary yet.
const AFTER: usize = 10;

/// The course of the training.
#[derive(Clone, Debug)]
pub(crate) struct TrainingCourse {
    /// How many points are the warm-up.
    pub warm_up: usize,
    /// The spikes after it.
    pub spikes: Vec<Spike>,
    /// The points from which training did not return; the number of points if it did.
    pub end: usize,
    /// Which points are ordinary: after the warm-up, not in a spike or just after one, before the end.
    ordinary: Vec<bool>,
    /// The smoothed loss after the warm-up.
    losses: Vec<(f64, f64)>,
    /// Problems of the training.
    pub findings: Vec<Finding>,
}

impl TrainingCourse {
    pub fn new(log: &Log) -> Self {
        let points = &log.points;
        let warm_up = learning_rate::warm_up(points);
        let (mut spikes, mut affected) = spikes::find(points, warm_up);
        let (survived, ended) = split_non_finite(log);
        let breakdown = diverged(log, ended, &affected)
            .or_else(|| above_best(points))
            .or_else(|| rising_at_the_end(points, &spikes));
        let after = |step: f64| points.partition_point(|p| p.step <= step);
        let end = match breakdown {
            Some(Finding::Diverged { last_good, .. }) => last_good.map_or(0, after),
            Some(Finding::Diverging { best_step, .. }) => after(best_step),
            Some(_) => {
                let unrecovered = spikes.iter().find(|spike| spike.not_recovered());
                unrecovered.map_or(points.len(), |spike| spike.range.0)
            }
            None => points.len(),
        };
        if !matches!(breakdown, Some(Finding::NotRecovered { .. })) {
            // What led to the end is part of it.
            spikes.retain(|spike| spike.range.0 < end);
            affected[end..].fill(false);
        }
        let mut findings: Vec<Finding> = breakdown.into_iter().collect();
        if !spikes.is_empty() {
            let steps = points.iter().zip(&affected).filter(|(_, a)| **a).map(|(p, _)| p.step);
            findings.push(Finding::Spikes { steps: steps.collect(), events: spikes.clone() });
        }
        if !survived.is_empty() {
            let steps = survived.iter().map(|p| p.step).collect();
            findings.push(Finding::NonFiniteSteps { steps });
        }
        let losses = divergence::smooth(&points[warm_up..]);
        let mut ordinary = vec![true; points.len()];
        ordinary[..warm_up].fill(false);
        ordinary[end..].fill(false);
        for spike in &spikes {
            let (first, last) = spike.range;
            ordinary[first..points.len().min(last + 1 + AFTER)].fill(false);
        }
        Self { warm_up, spikes, end, ordinary, losses, findings }
    }

    /// The points of ordinary training: after the warm-up, outside of spikes, before the end.
    pub fn ordinary<'a>(&'a self, points: &'a [LogPoint]) -> impl Iterator<Item = &'a LogPoint> {
        points.iter().zip(&self.ordinary).filter(|(_, ordinary)| **ordinary).map(|(p, _)| p)
    }

    /// The smoothed loss after the warm-up and at the end.
    pub fn losses(&self) -> (Option<f64>, Option<f64>) {
        (self.losses.first().map(|b| b.1), self.losses.last().map(|b| b.1))
    }
}

/// The finding for a spike at the very end that has lasted long and from which the loss has not come
/// back.
fn rising_at_the_end(points: &[LogPoint], spikes: &[Spike]) -> Option<Finding> {
    let spike = spikes.last().filter(|s| s.range.1 + 3 >= points.len() && s.count >= AFTER)?;
    let best = spike.loss_before?;
    let best_step = points[..spike.range.0].last()?.step;
    let last = points.iter().rev().filter_map(LogPoint::finite_loss).take(5).collect();
    let last = median(last)?;
    let far = last > best + 0.5 * best.abs();
    far.then_some(Finding::Diverging { best_step, best, last })
}

/// Whether nothing is wrong, and there is enough of the log to say so.
pub(super) fn is_healthy(log: &Log, course: &TrainingCourse, findings: &[Finding]) -> bool {
    let wrong = |f: &Finding| {
        matches!(
            f,
            Finding::Diverged { .. }
                | Finding::Diverging { .. }
                | Finding::NotRecovered { .. }
                | Finding::Spikes { .. }
                | Finding::NonFiniteSteps { .. }
                | Finding::NormScale { .. }
                | Finding::NormsAfterClipping { .. }
        )
    };
    let zero = log.points.iter().filter(|p| p.norm == 0.0).count();
    log.points.len() - course.warm_up >= FEWEST_POINTS
        && 2 * zero < log.points.len()
        && !findings.iter().any(wrong)
}
