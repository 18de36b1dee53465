//! The effect of the current threshold.

use serde::Serialize;
use toclip::monitor::{Interval, Monitor, MonitorSettings};

use super::analysis::monitor;
use crate::{Log, Result, ThresholdOrigin};

/// The effect of a threshold in practice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThresholdEffect {
    /// It never clips.
    Idle,
    /// It clips rarely: a guard against spikes.
    Guard,
    /// It clips a substantial share of the steps.
    Both,
    /// It clips most steps: a hidden learning rate.
    HiddenRate,
}

/// The current threshold and its effect.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurrentThreshold {
    /// The threshold; infinite (`"none"` in JSON) without clipping.
    #[serde(serialize_with = "super::analysis::or_none")]
    pub threshold: f64,
    /// How it is known.
    pub origin: ThresholdOrigin,
    /// Its effect.
    pub effect: ThresholdEffect,
    /// $P(G > c)$: the share of steps that it clips.
    pub fires: Interval,
    /// The same in the last quarter of the log.
    pub fires_lately: Option<Interval>,
    /// $E\min(1, c/G)$: the length of the mean step over that without clipping; unknown for norms after clipping.
    pub step_factor: Option<Interval>,
    /// $\mu$: the share of the descent that remains.
    pub mu: Option<Interval>,
    /// CSC.
    pub csc: Option<Interval>,
    /// CCC.
    pub ccc: Option<Interval>,
}

impl CurrentThreshold {
    pub(super) fn new(
        threshold: f64,
        origin: ThresholdOrigin,
        whole: &Monitor,
        log: &Log,
        settings: MonitorSettings,
    ) -> Result<Self> {
        let Some(at) = whole.watched() else {
            let fires = Interval { value: 0.0, low: 0.0, high: 0.0 };
            return Ok(Self::only(threshold, origin, fires));
        };
        let quarter = log.points.len() / 4;
        let lately = match quarter >= 64 {
            true => monitor(&log.points[log.points.len() - quarter..], settings)?.watched(),
            false => None,
        };
        Ok(Self {
            fires_lately: lately.map(|at| at.clip_fraction),
            step_factor: Some(at.step_factor),
            mu: Some(at.mu),
            csc: Some(at.csc),
            ccc: Some(at.ccc),
            ..Self::only(threshold, origin, at.clip_fraction)
        })
    }

    /// Only the share of clipped steps is known.
    fn only(threshold: f64, origin: ThresholdOrigin, fires: Interval) -> Self {
        let effect = ThresholdEffect::of(fires.value);
        let (fires_lately, step_factor, mu, csc, ccc) = (None, None, None, None, None);
        Self { threshold, origin, effect, fires, fires_lately, step_factor, mu, csc, ccc }
    }

    /// For norms that were logged after clipping: Wilson's interval for the share at the threshold,
    /// with neighbouring steps taken as independent.
    pub(super) fn after_clipping(threshold: f64, share: f64, log: &Log, confidence: f64) -> Self {
        let n = log.points.len() as f64;
        let z = toclip::student_critical(confidence, usize::MAX);
        let centre = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
        let spread = share * (1.0 - share) / n + z * z / (4.0 * n * n);
        let reach = z * spread.sqrt() / (1.0 + z * z / n);
        let (low, high) = ((centre - reach).max(0.0), (centre + reach).min(1.0));
        Self::only(threshold, ThresholdOrigin::PileUp, Interval { value: share, low, high })
    }
}

impl ThresholdEffect {
    /// The effect of a threshold that clips this share of the steps.
    pub fn of(fires: f64) -> Self {
        match fires {
            0.0 => ThresholdEffect::Idle,
            f if f < 0.02 => ThresholdEffect::Guard,
            f if f < 0.5 => ThresholdEffect::Both,
            _ => ThresholdEffect::HiddenRate,
        }
    }
}
