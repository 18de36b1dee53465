//! What the present setting does.

use serde::Serialize;
use toclip::monitor::{Interval, Monitor, Settings};

use super::{Ask, watch};
use crate::{Format, Log, Result};

/// Where the present threshold is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The user gave it.
    Given,
    /// The log names it.
    Log,
    /// The norms pile up there.
    PileUp,
    /// It is the trainer's default, and the log does not say otherwise.
    Default,
}

/// What a threshold is in practice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It never fired.
    Idle,
    /// It fires rarely: a guard against explosions.
    Guard,
    /// It fires at a good part of the steps.
    Both,
    /// It fires at most steps: a hidden learning rate.
    HiddenRate,
}

/// The present setting and what it does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Current {
    /// The threshold; infinite for none (`"inf"` in JSON, which has no such number).
    #[serde(serialize_with = "crate::words::or_inf")]
    pub threshold: f64,
    /// How it is known.
    pub origin: Origin,
    /// What it is.
    pub effect: Effect,
    /// $P(G > c)$: how often it fires.
    pub fires: Interval,
    /// The same in the last quarter of the log.
    pub fires_lately: Option<Interval>,
    /// $E\min(1, c/G)$: what is left of the mean step; not known for norms after clipping.
    pub step_factor: Option<Interval>,
    /// $\mu$: what is left of the descent.
    pub mu: Option<Interval>,
    /// CSC.
    pub csc: Option<Interval>,
    /// CCC.
    pub ccc: Option<Interval>,
}

/// The threshold in force, as far as anyone says.
pub(super) fn threshold(log: &Log, ask: &Ask) -> Option<(f64, Origin)> {
    let given = ask.clip.map(|c| (c, Origin::Given));
    let in_log = log.reading.clip.map(|c| (c, Origin::Log));
    // The Hugging Face trainer clips at 1.0 unless told otherwise, and logs the norm before.
    let trainer = matches!(log.reading.format, Format::TrainerState | Format::Printed)
        .then_some((1.0, Origin::Default));
    given.or(in_log).or(trainer)
}

impl Current {
    pub(super) fn new(
        threshold: f64,
        origin: Origin,
        whole: &Monitor,
        log: &Log,
        settings: Settings,
    ) -> Result<Self> {
        let Some(at) = whole.watched() else {
            let none = Interval { value: 0.0, low: 0.0, high: 0.0 };
            return Ok(Current {
                threshold,
                origin,
                effect: Effect::Idle,
                fires: none,
                fires_lately: None,
                step_factor: None,
                mu: None,
                csc: None,
                ccc: None,
            });
        };
        let quarter = log.points.len() / 4;
        let lately = match quarter >= 64 {
            true => watch(&log.points[log.points.len() - quarter..], settings)?.watched(),
            false => None,
        };
        Ok(Current {
            threshold,
            origin,
            effect: Effect::of(at.clip_fraction.value),
            fires: at.clip_fraction,
            fires_lately: lately.map(|at| at.clip_fraction),
            step_factor: Some(at.step_factor),
            mu: Some(at.mu),
            csc: Some(at.csc),
            ccc: Some(at.ccc),
        })
    }

    /// From norms that were logged after clipping only the share at the threshold is known.
    pub(super) fn after_clipping(threshold: f64, share: f64, log: &Log, confidence: f64) -> Self {
        // Wilson's interval; neighbouring steps are taken to be independent.
        let n = log.points.len() as f64;
        let z = toclip::student_critical(confidence, usize::MAX);
        let centre = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
        let spread = share * (1.0 - share) / n + z * z / (4.0 * n * n);
        let reach = z * spread.sqrt() / (1.0 + z * z / n);
        Current {
            threshold,
            origin: Origin::PileUp,
            effect: Effect::of(share),
            fires: Interval {
                value: share,
                low: (centre - reach).max(0.0),
                high: (centre + reach).min(1.0),
            },
            fires_lately: None,
            step_factor: None,
            mu: None,
            csc: None,
            ccc: None,
        }
    }
}

impl Effect {
    /// What a threshold is that fires at this share of the steps.
    pub(super) fn of(fires: f64) -> Self {
        match fires {
            0.0 => Effect::Idle,
            f if f < 0.02 => Effect::Guard,
            f if f < 0.5 => Effect::Both,
            _ => Effect::HiddenRate,
        }
    }
}
