//! Findings about the distribution of the norms and the threshold in force.

use super::{Course, Finding, median};
use crate::analysis::Analysis;
use crate::{LayerSummary, Log, Situation};

/// A threshold that clips this share of the steps clips nearly every one.
const ALWAYS: f64 = 0.9;
/// The scale of the norms moved if it changed by this factor.
const MOVED: f64 = 1.5;
/// A tail with an index below this has no fourth moment.
const HEAVY: f64 = 4.0;

pub(super) fn find(
    log: &Log,
    course: &Course,
    analysis: &Analysis,
    now: &Situation,
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

fn threshold_in_force(log: &Log, course: &Course, now: &Situation) -> Option<Finding> {
    if now.clipped_at().is_some() {
        return None;
    }
    let threshold = now.in_force()?;
    let largest = log.points.iter().map(|p| p.norm).fold(0.0, f64::max);
    if log.points.len() > 1 && largest <= threshold {
        return Some(Finding::NeverClipped { threshold, largest });
    }
    let norms: Vec<f64> = course.ordinary(&log.points).map(|p| p.norm).collect();
    let fires = norms.iter().filter(|n| **n > threshold).count() as f64 / norms.len() as f64;
    let times = median(norms)? / threshold;
    (fires >= ALWAYS).then_some(Finding::AlwaysClipped { threshold, fires, times })
}
