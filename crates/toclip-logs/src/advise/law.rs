//! What the law of the norms looks like.

use serde::Serialize;
use toclip::monitor::{Drift, Monitor, SecondMoment, Tail};

use crate::Log;

/// The law of the norms along the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Law {
    /// Quantiles at 0, 1, 10, 50, 90, 99 and 100 percent, of the norms as they stand.
    pub quantiles: [f64; 7],
    /// The tail of the norms relative to their scale; `None` if there are too few.
    pub tail: Option<Tail>,
    /// What the tail means for $E G^2$.
    pub second_moment: Option<SecondMoment>,
    /// Whether the law relative to the scale changed, and by what the scale did.
    pub drift: Option<Drift>,
    /// Norms far above the rest.
    pub bursts: Bursts,
}

/// Norms of more than four times the scale.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bursts {
    /// How many.
    pub count: usize,
    /// Their share.
    pub share: f64,
    /// The largest norm over the scale at its time.
    pub largest: f64,
    /// The step of the largest.
    pub largest_at: f64,
    /// How many of them directly follow another.
    pub in_a_row: usize,
    /// How many would by chance.
    pub by_chance: f64,
}

/// What counts as a burst, over the running scale.
const BURST: f64 = 4.0;
/// Norms that the running scale remembers, as that of the monitor.
const MEMORY: f64 = 200.0;
const FIRST: usize = 32;

impl Law {
    pub(super) fn new(log: &Log, whole: &Monitor) -> Self {
        let mut sorted = log.norms();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len() as f64 - 1.0;
        let at = |p: f64| sorted.get((p * last).round() as usize).copied().unwrap_or(f64::NAN);
        let tail = whole.tail();
        Law {
            quantiles: [0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0].map(at),
            tail,
            second_moment: tail.map(|tail| tail.second_moment()),
            drift: whole.drift(),
            bursts: Bursts::new(log),
        }
    }
}

impl Bursts {
    fn new(log: &Log) -> Self {
        let scales = scales(&log.norms());
        let over: Vec<f64> = log.points.iter().zip(&scales).map(|(p, s)| p.norm / s).collect();
        let burst: Vec<bool> = over.iter().map(|u| *u > BURST).collect();
        let count = burst.iter().filter(|b| **b).count();
        let n = over.len() as f64;
        let largest = (0..over.len()).max_by(|a, b| over[*a].total_cmp(&over[*b])).unwrap_or(0);
        Bursts {
            count,
            share: count as f64 / n,
            largest: over.get(largest).copied().unwrap_or(f64::NAN),
            largest_at: log.points.get(largest).map_or(f64::NAN, |p| p.step),
            in_a_row: burst.windows(2).filter(|w| w[0] && w[1]).count(),
            by_chance: count as f64 * (count as f64 - 1.0).max(0.0) / n,
        }
    }
}

/// The scale of each norm: the running geometric mean of those before it. The first norms have
/// that of their own.
///
/// ```
/// let scales = toclip_logs::advise::scales(&[3.0; 40]);
/// assert!((scales[39] - 3.0).abs() < 1e-12);
/// ```
pub fn scales(norms: &[f64]) -> Vec<f64> {
    let (mut log, mut weight) = (0.0, 0.0);
    let mut scales = Vec::with_capacity(norms.len());
    for (i, norm) in norms.iter().enumerate() {
        scales.push(f64::exp(log));
        if *norm > 0.0 {
            weight = f64::min(weight + 1.0, MEMORY);
            log += (norm.ln() - log) / weight;
        }
        if i + 1 == FIRST || i + 1 == norms.len() && i < FIRST {
            scales.fill(log.exp());
        }
    }
    scales
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_a_geometric_mean() {
        let flat = scales(&[2.0; 100]);
        assert!(flat.iter().all(|s| (s - 2.0).abs() < 1e-12));
        let two: Vec<f64> = (0..64).map(|i| [1.0, 4.0][i % 2]).collect();
        assert!((scales(&two)[63] - 2.0).abs() < 0.05);
        assert!(scales(&[0.0, 0.0]).iter().all(|s| s.is_finite()));
        assert!(scales(&[]).is_empty());
    }
}
