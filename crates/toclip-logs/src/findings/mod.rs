//! Findings about the training, its norms, and the log itself.

mod analysis;
mod change_point;
pub(crate) mod clipped_norms;
mod current_threshold;
mod divergence;
mod finding;
mod layer_summary;
mod learning_rate;
mod norm_distribution;
mod norm_scale;
mod rule_comparison;
mod running_scale;
mod spikes;
mod spread;
mod training_course;

pub use analysis::Analysis;
pub use current_threshold::{CurrentThreshold, ThresholdEffect};
pub use finding::Finding;
pub use layer_summary::LayerSummary;
pub use norm_distribution::NormDistribution;
pub use norm_scale::NormScaleCause;
pub use rule_comparison::RuleOutcome;
pub use running_scale::running_scales;
pub use spikes::Spike;
pub(crate) use training_course::TrainingCourse;

use crate::{Log, RunContext};

/// Fewer points after the warm-up are too few to call a run healthy, or to recommend a threshold.
pub(crate) const FEWEST_POINTS: usize = 30;
/// A threshold that clips this share of the steps clips nearly every one.
const ALWAYS: f64 = 0.9;
/// The scale of the norms moved if it changed by this factor.
const MOVED: f64 = 1.5;
/// A tail with an index below this has no fourth moment.
const HEAVY: f64 = 4.0;

fn about_norms(
    log: &Log,
    course: &TrainingCourse,
    analysis: &Analysis,
    now: &RunContext,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(threshold_in_force(log, course, now));
    findings.extend(layers(&analysis.layers));
    let Some(norms) = &analysis.distribution else { return findings };
    if let Some(drift) = norms.drift {
        let moved = !(1.0 / MOVED..MOVED).contains(&drift.scale_change);
        let scale_change = drift.scale_change;
        findings.extend(moved.then_some(Finding::Drift { scale_change }));
    }
    if let Some(tail) = norms.tail.filter(|tail| tail.index.high < HEAVY) {
        findings.push(Finding::HeavyTail { index: tail.index });
    }
    findings
}

fn layers(layers: &[LayerSummary]) -> Option<Finding> {
    let driver = layers.first().filter(|_| layers.len() > 1)?;
    let mut alone: Vec<&LayerSummary> = layers.iter().filter(|l| l.fires_alone > 0).collect();
    alone.sort_by_key(|layer| std::cmp::Reverse(layer.fires_alone));
    let guards = layers.iter().map(|layer| layer.guard).filter(|guard| *guard > 0.0);
    let (low, high) = guards.fold((f64::INFINITY, 0.0), |(low, high), guard| {
        (f64::min(low, guard), f64::max(high, guard))
    });
    Some(Finding::Layers {
        count: layers.len(),
        driver: driver.name.clone(),
        share: driver.share,
        fire_alone: alone.iter().map(|layer| layer.name.clone()).collect(),
        spread: high / low,
    })
}

fn threshold_in_force(log: &Log, course: &TrainingCourse, now: &RunContext) -> Option<Finding> {
    if now.clipped_at.is_some() {
        return None;
    }
    let threshold = now.in_force()?;
    let largest = log.largest_norm();
    if log.points.len() > 1 && largest <= threshold {
        return Some(Finding::NeverClipped { threshold, largest });
    }
    let norms: Vec<f64> = course.ordinary(&log.points).map(|p| p.norm).collect();
    let fires = norms.iter().filter(|n| **n > threshold).count() as f64 / norms.len() as f64;
    let times = median(norms)? / threshold;
    (fires >= ALWAYS).then_some(Finding::AlwaysClipped { threshold, fires, times })
}

/// All findings, the most important first.
pub(crate) fn all(
    log: &Log,
    course: &TrainingCourse,
    analysis: &Analysis,
    now: &RunContext,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = course.findings.clone();
    findings.extend(norm_scale::find(log, course));
    findings.extend(now.pile.clone());
    findings.extend(about_norms(log, course, analysis, now));
    findings.extend(learning_rate::finished(&log.points));
    if training_course::is_healthy(log, course, &findings) {
        let (loss_from, loss_to) = course.losses();
        findings.insert(0, Finding::Healthy { loss_from, loss_to });
    }
    findings.extend(log.findings.iter().cloned());
    findings
}

/// A quantile of sorted values: the value of nearest rank; NaN without values.
pub(crate) fn quantile(sorted: &[f64], p: f64) -> f64 {
    let last = sorted.len().saturating_sub(1) as f64;
    sorted.get((p * last).round() as usize).copied().unwrap_or(f64::NAN)
}

/// The median: where two values are in the middle, the upper one. `None` without values.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}
