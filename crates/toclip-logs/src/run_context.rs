//! The settings of a run, from the user, the log or a default.

use serde::Serialize;

use crate::findings::clipped_norms;
use crate::{AdviceOptions, Finding, Format, Log, OptimizerKind};

/// How the current threshold is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThresholdOrigin {
    /// The user gave it.
    Given,
    /// It is in the log.
    Log,
    /// The norms pile up there.
    PileUp,
    /// It is the trainer's default, and the log has no other.
    Default,
}

/// The settings of a run, from the user, the log or a default.
#[derive(Clone, Debug)]
pub(crate) struct RunContext {
    /// The threshold, infinite without clipping, and how it is known.
    pub threshold: Option<(f64, ThresholdOrigin)>,
    /// The finding about norms that pile up at one value, if they do.
    pub pile: Option<Finding>,
    /// The threshold and the share of the norms at it, if they were logged after clipping.
    pub clipped_at: Option<(f64, f64)>,
    /// Samples times outputs per norm.
    pub components: Option<f64>,
    pub optimizer: Option<OptimizerKind>,
    pub confidence: f64,
}

impl RunContext {
    pub fn new(log: &Log, options: &AdviceOptions) -> Self {
        let given = options.clip;
        let pile = clipped_norms::find(log, given);
        let clipped_at = match pile {
            Some(Finding::NormsAfterClipping { threshold, share }) => Some((threshold, share)),
            _ => None,
        };
        // The Hugging Face trainer clips at 1.0 by default, and logs the norm before clipping.
        let trainer = matches!(log.summary.format, Format::TrainerState | Format::Printed);
        let threshold = given
            .map(|c| (c, ThresholdOrigin::Given))
            .or(clipped_at.map(|(c, _)| (c, ThresholdOrigin::PileUp)))
            .or(log.summary.clip.map(|c| (c, ThresholdOrigin::Log)))
            .or(trainer.then_some((1.0, ThresholdOrigin::Default)));
        let batch = options.batch_size.or(log.summary.batch_size);
        Self {
            threshold,
            pile,
            clipped_at,
            components: batch.map(|b| (b * options.outputs.unwrap_or(1.0)).max(1.0)),
            optimizer: options.optimizer.or(log.summary.optimizer),
            confidence: options.confidence,
        }
    }

    /// The current threshold; `None` without clipping, or if it is unknown.
    pub fn in_force(&self) -> Option<f64> {
        self.threshold.map(|(c, _)| c).filter(|c| c.is_finite())
    }
}
