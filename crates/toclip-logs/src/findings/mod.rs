//! What the numbers of a log show about the log itself.

pub(crate) mod clipped_norms;
pub(crate) mod loss_scale;

use serde::Serialize;

/// A property of a log that a reader of its numbers must know.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finding {
    /// The norms pile up at one value: they were logged after clipping.
    AfterClipping {
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
    /// The norms include the loss scale of mixed precision.
    LossScaled {
        /// Jumps of the scale, or by powers of two, that the norms follow.
        jumps: usize,
        /// Whether the log has the scale in a column, so that it can be divided out.
        column: bool,
    },
    /// The loss scale is constant and large, and so are the norms.
    MaybeLossScaled {
        /// The loss scale.
        scale: f64,
    },
    /// The norms were divided by the loss scale.
    Unscaled,
    /// Only some steps were logged.
    SubSampled {
        /// Steps from one row to the next.
        stride: f64,
    },
    /// Norms that are NaN or infinite.
    NotFinite {
        /// How many.
        count: u64,
        /// The step of the first.
        first: Option<f64>,
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
    /// There is no step; rows are counted instead.
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

/// The upper median.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}
