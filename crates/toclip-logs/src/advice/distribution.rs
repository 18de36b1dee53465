//! What the distribution of the norms looks like.

use serde::Serialize;
use toclip::monitor::{Drift, Monitor, SecondMoment, Tail};

use super::running_scales;
use crate::Log;

/// The distribution of the norms over the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NormDistribution {
    /// Quantiles at 0, 1, 10, 50, 90, 99 and 100 percent of the norms as logged.
    pub quantiles: [f64; 7],
    /// The tail of the norms relative to their scale; `None` if there are too few.
    pub tail: Option<Tail>,
    /// What the tail implies for $E G^2$.
    pub second_moment: Option<SecondMoment>,
    /// Whether the distribution relative to the scale changed, and by how much the scale did.
    pub drift: Option<Drift>,
    /// Norms far above the rest.
    pub spikes: Spikes,
}

/// Norms of more than four times the running scale.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spikes {
    /// How many.
    pub count: usize,
    /// Their share.
    pub share: f64,
    /// The largest norm relative to the running scale at its step.
    pub largest: f64,
    /// The step of the largest.
    pub largest_at: f64,
    /// How many of them directly follow another.
    pub in_a_row: usize,
    /// How many would by chance.
    pub by_chance: f64,
}

/// A spike is larger than this, relative to the running scale.
const SPIKE: f64 = 4.0;

impl NormDistribution {
    pub(super) fn new(log: &Log, whole: &Monitor) -> Self {
        let mut sorted = log.norms();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len() as f64 - 1.0;
        let at = |p: f64| sorted.get((p * last).round() as usize).copied().unwrap_or(f64::NAN);
        let tail = whole.tail();
        Self {
            quantiles: [0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0].map(at),
            tail,
            second_moment: tail.map(|tail| tail.second_moment()),
            drift: whole.drift(),
            spikes: Spikes::new(log),
        }
    }
}

impl Spikes {
    fn new(log: &Log) -> Self {
        let scales = running_scales(&log.norms());
        let over: Vec<f64> = log.points.iter().zip(&scales).map(|(p, s)| p.norm / s).collect();
        let spike: Vec<bool> = over.iter().map(|u| *u > SPIKE).collect();
        let count = spike.iter().filter(|s| **s).count();
        let n = over.len() as f64;
        let largest = (0..over.len()).max_by(|a, b| over[*a].total_cmp(&over[*b])).unwrap_or(0);
        Self {
            count,
            share: count as f64 / n,
            largest: over.get(largest).copied().unwrap_or(f64::NAN),
            largest_at: log.points.get(largest).map_or(f64::NAN, |p| p.step),
            in_a_row: spike.windows(2).filter(|w| w[0] && w[1]).count(),
            by_chance: count as f64 * (count as f64 - 1.0).max(0.0) / n,
        }
    }
}
