//! The recommendation, as data: it follows from the findings; words come later.
//!
//! A run that is broken is diagnosed first: nothing is optimised in a log that diverged, or whose norms
//! mislead. Other recommendations follow measurements in networks: a guard
//! is cheap insurance for every optimizer, another threshold by itself gains little, and with SGD the
//! gain is in the pair of threshold and learning rate, which only an experiment can show.

mod decide;
mod experiment;
mod guard;

use serde::Serialize;
use toclip::monitor::Interval;

pub(crate) use decide::decide;
pub use experiment::RateExperiment;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// Leave the threshold as it is.
    Keep,
    /// Clip rare large gradients only.
    Guard,
    /// Clip a substantial share of the steps: the evidence supports it.
    Clip,
    /// Stop clipping: it costs more than it saves.
    Remove,
    /// Lower the learning rate.
    LowerRate,
    /// Go back to an earlier checkpoint.
    RollBack,
    /// Change how the loss is computed or scaled.
    FixLoss,
    /// Change the logging.
    FixLogging,
    /// The log does not say.
    CannotTell,
}

/// How sure the recommendation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Confidence {
    /// The log shows it directly.
    High,
    /// The log agrees with measurements in other runs.
    Medium,
    /// A default.
    Low,
}

/// A reason for the recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Because {
    /// The finding with this index.
    Finding(usize),
    /// The threshold lies above ordinary norms and below the spikes.
    GuardFits {
        /// The 99.9th percentile of ordinary norms.
        ordinary: f64,
        /// How many spikes there are.
        spikes: usize,
        /// How many of them have a peak above the threshold.
        below: usize,
    },
    /// The current threshold already clips the spikes.
    GuardWorks,
    /// The current threshold clips the spikes, and many other steps.
    ClipsMany {
        /// The share of the steps that it clips.
        fires: f64,
    },
    /// The spikes passed below the current threshold, or nearly so.
    GuardTooHigh,
    /// A guard costs nothing at a good learning rate and saves runs with bad batches.
    CheapInsurance,
    /// Adam-like optimizers divide by a running scale of the gradient, so a constant factor cancels.
    ScaleCancels,
    /// A threshold that is always active acts as a lower learning rate.
    ActsAsRate,
    /// No threshold repairs a learning rate that is too large.
    RateFirst,
    /// Clipping does not repair a gradient that is NaN: the step must be skipped.
    SkipNonFinite,
    /// CCC at the threshold, with its interval, over no clipping.
    Gain(Interval),
    /// The current threshold costs more descent than it saves variance.
    ThresholdCosts,
    /// Another threshold is unlikely to help.
    NoGainExpected,
    /// The current threshold is unknown.
    ThresholdUnknown {
        /// A guard for a run that does not clip.
        guard: Option<f64>,
    },
    /// There are too few steps after the warm-up.
    TooFewSteps {
        /// How many there are.
        points: usize,
    },
    /// The log has no loss.
    NoLoss,
    /// The optimizer is unknown.
    OptimizerUnknown,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    /// What to do.
    pub action: Action,
    /// The threshold: to set, or for [`Action::Keep`] the one in force.
    pub threshold: Option<f64>,
    /// The share of the logged steps that it would clip, or clips.
    pub fires: Option<f64>,
    /// The factor for the learning rate; never above one.
    pub rate_factor: Option<f64>,
    /// The step to go back to.
    pub roll_back_to: Option<f64>,
    /// Whether the run is finished and this is for the next one.
    pub next_run: bool,
    /// How sure it is.
    pub confidence: Confidence,
    /// Why, the most important reason first.
    pub because: Vec<Because>,
    /// A short experiment for a question that the log cannot answer.
    pub experiments: Vec<RateExperiment>,
}

/// A threshold that clips a larger share of the steps is not recommended.
const MOST_CLIPPED: f64 = 0.2;
