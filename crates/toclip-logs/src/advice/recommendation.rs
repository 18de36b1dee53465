//! What to do, as data.

use serde::Serialize;
use toclip::monitor::{Advice as MonitorAdvice, Choice, Monitor, Reason};

use super::current::CurrentThreshold;
use super::options::Optimizer;
use crate::wording::Wording;

/// The largest number of samples times outputs that is tried if it is unknown.
pub(crate) const LARGEST: f64 = 1024.0;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// Clip at the threshold.
    Clip,
    /// Clip less, or not at all.
    Loosen,
    /// Change nothing: the current setting is as good as any.
    Keep,
    /// Change nothing: there is not enough evidence.
    NotEnoughEvidence,
    /// The norms were logged after clipping: log them before.
    LogBeforeClipping,
}

/// Why an action is recommended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Basis {
    /// The norms were logged after clipping at this threshold.
    AfterClipping(f64),
    /// The norms include a loss scale that changes.
    LossScaled,
    /// Clipping gains more than this margin.
    GainAbove(f64),
    /// Clipping gains something, but not more than this margin over the threshold in force.
    GainBelow(f64),
    /// The threshold in force costs more descent than it saves variance.
    ThresholdCosts,
    /// Whether clipping gains depends on the batch size, which is unknown.
    BatchSizeUnknown,
    /// No gain is shown, and the threshold in force may cost more than it saves.
    ThresholdMayCost,
    /// The estimates support no change.
    NoChange(Reason),
}

/// A recommendation: data for programs, and its wording for people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    /// What to do.
    pub action: Action,
    /// Why.
    pub basis: Basis,
    /// The threshold.
    pub threshold: Option<f64>,
    /// The threshold over the running scale of the norms.
    pub multiple: Option<f64>,
    /// If the threshold must follow the running scale of the norms: the steps that it remembers.
    pub scale_memory: Option<f64>,
    /// The factor for the current learning rate; for SGD only.
    pub rate_change: Option<f64>,
    /// The smallest number of samples times outputs per norm for which clipping is supported; only if
    /// that number is unknown.
    pub holds_from: Option<f64>,
    /// The estimates at the best candidate.
    pub choice: Option<Choice>,
    /// The recommendation in words.
    #[serde(flatten)]
    pub wording: Wording,
}

/// What the recommendation depends on besides the norms.
#[derive(Clone, Copy)]
pub(super) struct Setup<'a> {
    pub current: Option<&'a CurrentThreshold>,
    pub optimizer: Option<Optimizer>,
    pub scale_memory: Option<f64>,
    pub loss_scaled: bool,
}

impl Recommendation {
    /// A recommendation without a threshold.
    pub(super) fn without_threshold(action: Action, basis: Basis, choice: Option<Choice>) -> Self {
        Self {
            action,
            basis,
            threshold: None,
            multiple: None,
            scale_memory: None,
            rate_change: None,
            holds_from: None,
            choice,
            wording: Wording::default(),
        }
    }

    fn with_threshold(action: Action, basis: Basis, choice: &Choice, setup: Setup) -> Self {
        Self {
            threshold: Some(choice.threshold),
            multiple: Some(choice.multiple),
            scale_memory: setup.scale_memory,
            rate_change: (setup.optimizer == Some(Optimizer::Sgd)).then_some(choice.rate_change),
            ..Self::without_threshold(action, basis, Some(*choice))
        }
    }

    pub(super) fn new(steady: &Monitor, setup: Setup) -> Self {
        use Action::{Clip, Keep, Loosen, NotEnoughEvidence};
        if setup.loss_scaled {
            return Self::without_threshold(NotEnoughEvidence, Basis::LossScaled, None);
        }
        let margin = steady.settings().margin;
        let in_force = setup.current.filter(|now| now.threshold.is_finite());
        match steady.advice() {
            // A gain over the threshold in force must be larger than norms alone can be wrong by.
            MonitorAdvice::Clip(choice) if in_force.is_some() && choice.gain.low < 1.0 + margin => {
                Self::without_threshold(Keep, Basis::GainBelow(margin), Some(choice))
            }
            MonitorAdvice::Clip(choice) => {
                Self::with_threshold(Clip, Basis::GainAbove(margin), &choice, setup)
            }
            MonitorAdvice::Loosen(choice) => {
                Self::with_threshold(Loosen, Basis::ThresholdCosts, &choice, setup)
            }
            MonitorAdvice::Stay(reason) => {
                let (action, best) = match &reason {
                    Reason::NoGain(best) | Reason::NoBetter(best) => (Keep, Some(*best)),
                    Reason::NormsAlone { best, .. }
                    | Reason::OneStretch { best, .. }
                    | Reason::Swings { best, .. } => (NotEnoughEvidence, Some(*best)),
                    _ => (NotEnoughEvidence, None),
                };
                let may_cost = in_force
                    .and_then(|now| now.ccc)
                    .is_some_and(|ccc| !ccc.value.is_finite() || ccc.value * (1.0 + margin) < 1.0);
                if may_cost && matches!(reason, Reason::NoGain(_)) {
                    let basis = Basis::ThresholdMayCost;
                    return Self::without_threshold(NotEnoughEvidence, basis, best);
                }
                Self::without_threshold(action, Basis::NoChange(reason), best)
            }
        }
    }

    /// Revises a recommendation to clip for an unknown batch size, given the smallest one for which
    /// clipping is supported and the recommendation for it. Clipping is recommended only if it is for
    /// a single sample.
    pub(super) fn for_unknown_batch(self, smallest: Option<(f64, Recommendation)>) -> Self {
        let (holds_from, mut then) = match smallest {
            Some((n, then)) => (Some(n), then),
            None => (None, self),
        };
        if holds_from.is_none_or(|n| n > 1.0) {
            let (action, basis) = (Action::NotEnoughEvidence, Basis::BatchSizeUnknown);
            then = Self::without_threshold(action, basis, then.choice);
        }
        Self { holds_from, ..then }
    }
}
