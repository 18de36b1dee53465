//! Something that a log shows, as data.

use serde::{Serialize, Serializer};
use toclip::monitor::Interval;

use super::{NormScaleCause, Spike};

/// Something that a log shows. Serialized with its name as `code`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finding {
    /// Nothing is wrong: the loss went down or stayed, without spikes, and every number is finite.
    Healthy {
        /// The loss after the warm-up.
        loss_from: Option<f64>,
        /// The loss at the end.
        loss_to: Option<f64>,
    },
    /// The loss or the norm is NaN or infinite to the end of the log.
    Diverged {
        /// The steps at which it is.
        #[serde(serialize_with = "as_integers")]
        steps: Vec<f64>,
        /// The last step at which loss and norm were as before.
        last_good: Option<f64>,
        /// The learning rate at that step.
        learning_rate: Option<f64>,
        /// Whether the numbers grew over several steps first; if not, they broke at once.
        grew: bool,
        /// Whether the loss stayed finite and only the gradient broke.
        loss_finite: bool,
    },
    /// The loss rises at the end and is far above its best.
    Diverging {
        /// The step of the best loss.
        #[serde(serialize_with = "as_integer")]
        best_step: f64,
        /// The best loss, smoothed.
        best: f64,
        /// The loss at the end, smoothed.
        last: f64,
    },
    /// The loss does not rise at the end, but is far above its best.
    NotRecovered {
        /// The step of the best loss.
        #[serde(serialize_with = "as_integer")]
        best_step: f64,
        /// The best loss, smoothed.
        best: f64,
        /// The loss at the end, smoothed.
        last: f64,
    },
    /// Norms far above their running median, or losses far above theirs.
    Spikes {
        /// Every affected step.
        #[serde(serialize_with = "as_integers")]
        steps: Vec<f64>,
        /// Affected steps that follow each other closely are one spike.
        events: Vec<Spike>,
    },
    /// Norms or losses that are NaN or infinite, after which training went on.
    NonFiniteSteps {
        /// The steps.
        #[serde(serialize_with = "as_integers")]
        steps: Vec<f64>,
    },
    /// The current threshold clips nearly every step.
    AlwaysClipped {
        /// The threshold.
        threshold: f64,
        /// The share of the steps that it clips after the warm-up.
        fires: f64,
        /// The median norm over the threshold.
        times: f64,
    },
    /// The current threshold is above every norm.
    NeverClipped {
        /// The threshold.
        threshold: f64,
        /// The largest norm.
        largest: f64,
    },
    /// The norms pile up at one value: they were logged after clipping.
    NormsAfterClipping {
        /// The value, which is the threshold.
        threshold: f64,
        /// The share of the norms at this value.
        share: f64,
    },
    /// The norms pile up at one value, but according to the user they were not clipped there.
    NotClipped {
        /// The value.
        threshold: f64,
        /// The share of the norms at this value.
        share: f64,
    },
    /// The norms are not on the scale of an averaged loss.
    NormScale {
        /// The median norm.
        median: f64,
        /// The median loss.
        loss: Option<f64>,
        /// The cause.
        cause: NormScaleCause,
    },
    /// The norms were divided by the loss scale.
    Unscaled,
    /// Only some steps were logged.
    Subsampled {
        /// Steps from one row to the next.
        stride: f64,
    },
    /// The norms grew or fell by a factor of more than 1.5.
    Drift {
        /// The scale of the norms in the last quarter of the log over that in the first.
        scale_change: f64,
    },
    /// The tail of the norms is heavy: even the upper end of the interval of its index is below 4.
    HeavyTail {
        /// The tail index.
        index: Interval,
    },
    /// The log has the norms of single layers.
    Layers {
        /// How many.
        count: usize,
        /// The layer with the largest share of the squared norm.
        driver: String,
        /// That share.
        share: f64,
        /// Layers that spike while the total does not, the most frequent first.
        fire_alone: Vec<String>,
        /// The largest guard of a layer over the smallest.
        spread: f64,
    },
    /// The schedule of the learning rate has come to its end.
    Finished {
        /// The last learning rate over the largest.
        rate: f64,
    },
    /// Rows of a table in which both the norm and the loss are NaN: empty cells.
    Blank {
        /// How many.
        count: u64,
    },
    /// Negative norms, which are left out.
    Negative {
        /// How many.
        count: u64,
    },
    /// Norms of zero: steps that clipping cannot change.
    Zero {
        /// How many.
        count: u64,
    },
    /// The step starts again with each epoch; the epochs were joined.
    StepsByEpoch {
        /// How many epochs.
        epochs: u64,
    },
    /// Numbers have a decimal comma.
    DecimalComma,
    /// The step went back: a run was resumed from a checkpoint.
    Restarts {
        /// How often.
        count: u64,
        /// Rows that a later row replaced.
        replaced: u64,
    },
    /// The step went back to the start: more than one run.
    SeveralRuns {
        /// How many runs.
        runs: u64,
    },
    /// The rows are in the order from the last step to the first.
    Reversed,
    /// The rows are in no order.
    Unordered,
    /// The end of the log is cut off.
    Truncated,
    /// JSON objects follow each other without a line break.
    Concatenated {
        /// How many.
        count: u64,
    },
    /// Rows or cells that could not be read were left out.
    Unreadable {
        /// How many.
        count: u64,
        /// The line of the first.
        first: u64,
    },
    /// Records of an event file that could not be read were left out.
    UnreadableRecords {
        /// How many.
        count: u64,
        /// The byte where the first one begins.
        first: u64,
    },
    /// A checksum is wrong; what could be read was kept.
    WrongChecksum {
        /// How many records.
        count: u64,
        /// The byte where the first one begins.
        first: u64,
        /// Whether reading had to end there.
        stopped: bool,
    },
    /// The log has no step column; rows are counted instead.
    StepsCounted,
    /// Rows without a step, left out.
    WithoutStep {
        /// How many.
        count: u64,
    },
    /// The log is long: only every k-th row was kept.
    Thinned {
        /// One row of this many was kept.
        every: u64,
    },
}

pub(super) fn as_integer<S: Serializer>(step: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    Step(*step).serialize(serializer)
}

fn as_integers<S: Serializer>(steps: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(steps.iter().map(|step| Step(*step)))
}

/// A step, which is an integer in nearly every log.
struct Step(f64);

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.fract() == 0.0 && self.0.abs() < 1e15 {
            true => serializer.serialize_i64(self.0 as i64),
            false => serializer.serialize_f64(self.0),
        }
    }
}
