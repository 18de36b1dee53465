//! Traps of logs, each with a sentence.

use serde::Serialize;

/// Something about a log that a reader of its numbers must know.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finding {
    /// The norms pile up at one value: they were logged after clipping.
    AfterClipping {
        /// The value, which is the threshold.
        threshold: f64,
        /// The share of the norms that stand there.
        share: f64,
    },
    /// The norms pile up at one value, but the user says that they were not clipped there.
    NotClipped {
        /// The value.
        threshold: f64,
        /// The share of the norms that stand there.
        share: f64,
    },
    /// The norms follow the loss scale of mixed precision.
    LossScaled {
        /// Jumps of the scale, or by powers of two, that the norms made too.
        jumps: usize,
        /// Whether the log has a column with the scale, so that it can be divided out.
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
        /// The first step at which one stands.
        first: Option<f64>,
    },
    /// Rows of a table in which both the norm and the loss are NaN: empty cells.
    Blank {
        /// How many.
        count: u64,
    },
    /// Negative norms, which no gradient has; they are left out.
    Negative {
        /// How many.
        count: u64,
    },
    /// Norms of zero: steps that clipping cannot change.
    Zero {
        /// How many.
        count: u64,
    },
    /// The step starts again with each epoch: they were joined.
    StepsByEpoch {
        /// How many epochs.
        epochs: u64,
    },
    /// Numbers have a decimal comma.
    DecimalComma,
    /// The step went back: a run was taken up again from a checkpoint.
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
    /// The rows stand from the last step to the first.
    Reversed,
    /// The rows stand in no order.
    Unordered,
    /// The end of the log is cut off.
    Truncated,
    /// Several JSON objects stand one after another without a line between them.
    Concatenated {
        /// How many.
        count: u64,
    },
    /// Rows or cells that could not be read were left out.
    Unreadable {
        /// How many.
        count: u64,
        /// The first line (text) or byte (event files) where one stands.
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
    /// There is no step; rows were counted.
    StepsCounted,
    /// Rows without a step, left out.
    WithoutStep {
        /// How many.
        count: u64,
    },
    /// More rows than are kept: every k-th was.
    Thinned {
        /// One row of this many was kept.
        every: u64,
    },
}

impl Finding {
    /// The finding in a sentence or two, with what to do.
    pub fn sentence(&self) -> String {
        let several = |n: u64, one: &str, many: &str| match n {
            1 => format!("1 {one}"),
            n => format!("{n} {many}"),
        };
        match self {
            Finding::AfterClipping { threshold, share } => format!(
                "{}% of the norms stand at {}: they were logged after clipping, so nothing beyond \
                 the threshold can be seen. Log what clip_grad_norm_ returns, which is the norm \
                 before clipping; if nothing was clipped there, say so with --clip.",
                crate::words::short((1000.0 * share).round() / 10.0),
                crate::words::short(*threshold)
            ),
            Finding::NotClipped { threshold, share } => format!(
                "{}% of the norms stand at {}, which looks like clipping; as another threshold was \
                 given, they are taken for norms before clipping.",
                crate::words::short((1000.0 * share).round() / 10.0),
                crate::words::short(*threshold)
            ),
            Finding::LossScaled { jumps, column: true } => format!(
                "The norms follow the loss scale in its {}: they carry it. Unscale the gradients \
                 before measuring them (scaler.unscale_), or divide by the column here (--unscale).",
                several(*jumps as u64, "jump", "jumps")
            ),
            Finding::LossScaled { jumps, column: false } => format!(
                "The norms jump by powers of two {jumps} times: they seem to carry a loss scale. \
                 Unscale the gradients before measuring them (scaler.unscale_)."
            ),
            Finding::MaybeLossScaled { scale } => format!(
                "The loss scale is {} throughout and the norms are large: they may carry it. If \
                 so, divide it out; thresholds in multiples of the scale of the norms hold \
                 either way.",
                crate::words::short(*scale)
            ),
            Finding::Unscaled => "The norms were divided by the loss scale.".into(),
            Finding::SubSampled { stride } => format!(
                "One row every {} steps: bursts shorter than that cannot be seen, and rare large \
                 norms are seen that much less often.",
                crate::words::short(*stride)
            ),
            Finding::NotFinite { count, first } => {
                let at = first.map_or(String::new(), |s| {
                    format!(", the first at step {}", crate::words::short(s))
                });
                format!(
                    "{} NaN or infinite{at}: left out of all estimates. No threshold repairs such \
                     a step (NaN times anything is NaN); skip it instead.",
                    several(*count, "norm is", "norms are")
                )
            }
            Finding::Blank { count } => format!(
                "{} NaN for the norm and for the loss, and training went on: taken for empty cells.",
                several(*count, "row has", "rows have")
            ),
            Finding::Negative { count } => {
                format!(
                    "{} negative, which no norm can be: left out.",
                    several(*count, "norm is", "norms are")
                )
            }
            Finding::Zero { count } => format!(
                "{} zero: clipping cannot change such a step, so the estimates leave it out.",
                several(*count, "norm is", "norms are")
            ),
            Finding::StepsByEpoch { epochs } => format!(
                "The step starts again with each epoch: {epochs} epochs were joined, and the steps \
                 counted on."
            ),
            Finding::DecimalComma => "Numbers have a decimal comma: it was read as such.".into(),
            Finding::Restarts { count: 0, replaced } => format!(
                "{} the step of a later one, which counts.",
                several(*replaced, "row has", "rows have")
            ),
            Finding::Restarts { count, replaced } => format!(
                "Training was taken up again from an earlier step {}: where rows overlap the later \
                 ones count ({} replaced).",
                several(*count, "time", "times"),
                several(*replaced, "row was", "rows were")
            ),
            Finding::SeveralRuns { runs } => format!(
                "{runs} runs, one after another: the one with the most rows is analysed. Give each \
                 run its own file to see the others."
            ),
            Finding::Reversed => {
                "The rows stand from last to first: they were turned round.".into()
            }
            Finding::Unordered => {
                "The rows are in no order: they were sorted by step, and of two with the same step \
                 the later one was kept."
                    .into()
            }
            Finding::Truncated => {
                "The end of the log is cut off: its last, incomplete row was left out.".into()
            }
            Finding::Concatenated { count } => format!(
                "{count} JSON objects follow others on the same line: each was read as a row."
            ),
            Finding::Unreadable { count, first } => format!(
                "{} not be read, the first at line {first}: left out.",
                several(*count, "row or cell could", "rows or cells could")
            ),
            Finding::WrongChecksum { count, first, stopped } => {
                let rest = if *stopped {
                    "the length itself is wrong, so reading ended there"
                } else {
                    "left out"
                };
                format!(
                    "{} a wrong checksum, the first at byte {first}: {rest}. What came before was \
                     kept.",
                    several(*count, "record has", "records have")
                )
            }
            Finding::StepsCounted => "The log has no step column: rows are counted instead.".into(),
            Finding::WithoutStep { count } => {
                format!("{} no step: left out.", several(*count, "row has", "rows have"))
            }
            Finding::Thinned { every } => {
                format!("The log is long: one row of {every} was kept for the estimates.")
            }
        }
    }
}
