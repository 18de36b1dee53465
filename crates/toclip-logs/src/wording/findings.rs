//! Findings in sentences.

use toclip::{percent, short};

use super::plural;
use crate::Finding;

impl Finding {
    /// The finding in a sentence or two, with what to do.
    pub fn sentence(&self) -> String {
        let norms = |count: u64| plural(count, "norm is", "norms are");
        let rows = |count: u64| plural(count, "row has", "rows have");
        match *self {
            Finding::AfterClipping { threshold, share } => format!(
                "{} of the norms are equal to {}: they were logged after clipping, so larger norms are \
                 unknown. Log what clip_grad_norm_ returns, which is the norm before clipping. If \
                 nothing was clipped there, give the threshold in force.",
                percent(share),
                short(threshold)
            ),
            Finding::NotClipped { threshold, share } => format!(
                "{} of the norms are equal to {}, which looks like clipping. Because another threshold \
                 was given, they are taken as norms before clipping.",
                percent(share),
                short(threshold)
            ),
            Finding::LossScaled { jumps, column: true } => format!(
                "The norms follow {} of the loss scale, so they include it. Divide them by the loss \
                 scale in the log, or log unscaled gradients (scaler.unscale_).",
                plural(jumps as u64, "jump", "jumps")
            ),
            Finding::LossScaled { jumps, column: false } => format!(
                "The norms jump by powers of two {jumps} times: they seem to include a loss scale. Log \
                 unscaled gradients (scaler.unscale_)."
            ),
            Finding::MaybeLossScaled { scale } => format!(
                "The loss scale is always {} and the norms are large: they may include it. Thresholds \
                 as multiples of the running scale of the norms are correct either way.",
                short(scale)
            ),
            Finding::Unscaled => "The norms were divided by the loss scale.".into(),
            Finding::SubSampled { stride } => format!(
                "One row every {} steps: spikes between the logged steps are not seen.",
                short(stride)
            ),
            Finding::NotFinite { count, first } => {
                let at = first.map_or(String::new(), |s| format!(" (first at step {})", short(s)));
                format!(
                    "{} NaN or infinite{at} and left out. Clipping does not repair such a step (NaN \
                     times anything is NaN); skip it instead.",
                    norms(count)
                )
            }
            Finding::Blank { count } => {
                format!("{} NaN for both norm and loss: taken as empty cells.", rows(count))
            }
            Finding::Negative { count } => format!("{} negative and left out.", norms(count)),
            Finding::Zero { count } => {
                format!("{} zero and left out: clipping cannot change such a step.", norms(count))
            }
            Finding::StepsByEpoch { epochs } => {
                format!("The step starts again with each epoch: {epochs} epochs were joined.")
            }
            Finding::DecimalComma => "Some numbers have a decimal comma.".into(),
            Finding::Restarts { count: 0, replaced } => {
                format!("{} the step of a later row, which is used instead.", rows(replaced))
            }
            Finding::Restarts { count, replaced } => format!(
                "Training was resumed from an earlier step {}: where rows overlap the later ones are \
                 used ({} replaced).",
                plural(count, "time", "times"),
                plural(replaced, "row was", "rows were")
            ),
            Finding::SeveralRuns { runs } => format!(
                "The log has {runs} runs, and the longest is analysed. Give each run its own file to \
                 see the others."
            ),
            Finding::Reversed => "The rows were in reverse order.".into(),
            Finding::Unordered => {
                "The rows were in no order and were sorted; of equal steps the last row is used."
                    .into()
            }
            Finding::Truncated => "The last row of the log is incomplete and was left out.".into(),
            Finding::Concatenated { count } => {
                format!("{count} JSON objects follow another on the same line; each is one row.")
            }
            Finding::Unreadable { count, first } => format!(
                "{} unreadable and left out (first at line {first}).",
                plural(count, "row or cell is", "rows or cells are")
            ),
            Finding::UnreadableRecords { count, first } => format!(
                "{} unreadable and left out (first at byte {first}).",
                plural(count, "record is", "records are")
            ),
            Finding::WrongChecksum { count, first, stopped } => format!(
                "{} a wrong checksum (first at byte {first}){}.",
                plural(count, "record has", "records have"),
                if stopped { ": nothing after it can be read" } else { ": left out" }
            ),
            Finding::StepsCounted => "The log has no step column: rows are counted instead.".into(),
            Finding::WithoutStep { count } => format!("{} no step; left out.", rows(count)),
            Finding::Thinned { every } => {
                format!("The log is long: the estimates use one row in {every}.")
            }
        }
    }
}
