//! Findings in sentences.

use super::plural;
use crate::Finding;
use toclip::{percent, short};

impl Finding {
    /// The finding in a sentence or two, with what to do.
    pub fn sentence(&self) -> String {
        match self {
            Finding::AfterClipping { threshold, share } => format!(
                "{} of the norms are equal to {}: they were logged after clipping, so norms above \
                 the threshold are not known. Log what clip_grad_norm_ returns, which is the norm \
                 before clipping. If nothing was clipped there, give the threshold in force.",
                percent(*share),
                short(*threshold)
            ),
            Finding::NotClipped { threshold, share } => format!(
                "{} of the norms are equal to {}, which looks like clipping. Because another \
                 threshold was given, they are taken as norms before clipping.",
                percent(*share),
                short(*threshold)
            ),
            Finding::LossScaled { jumps, column: true } => format!(
                "The norms follow the {} of the loss scale, so they include it. Unscale the \
                 gradients before measuring them (scaler.unscale_), or divide the norms by the \
                 loss scale in the log.",
                plural(*jumps as u64, "jump", "jumps")
            ),
            Finding::LossScaled { jumps, column: false } => format!(
                "The norms jump by powers of two {jumps} times: they seem to include a loss scale. \
                 Unscale the gradients before measuring them (scaler.unscale_)."
            ),
            Finding::MaybeLossScaled { scale } => format!(
                "The loss scale is {} throughout and the norms are large: they may include it. If \
                 so, divide by it; thresholds given as multiples of the running scale of the norms \
                 are correct either way.",
                short(*scale)
            ),
            Finding::Unscaled => "The norms were divided by the loss scale.".into(),
            Finding::SubSampled { stride } => format!(
                "One row every {} steps: shorter spikes may be missing, and rare large norms are \
                 seen that much less often.",
                short(*stride)
            ),
            Finding::NotFinite { count, first } => {
                let at = first.map_or(String::new(), |s| format!(" (first at step {})", short(s)));
                format!(
                    "{} NaN or infinite{at} and left out of all estimates. No threshold repairs such \
                     a step (NaN times anything is NaN); skip it instead.",
                    plural(*count, "norm is", "norms are")
                )
            }
            Finding::Blank { count } => format!(
                "{} NaN for both norm and loss, and training went on: taken as empty cells.",
                plural(*count, "row has", "rows have")
            ),
            Finding::Negative { count } => {
                format!("{} negative and left out.", plural(*count, "norm is", "norms are"))
            }
            Finding::Zero { count } => format!(
                "{} zero and left out of the estimates: clipping cannot change such a step.",
                plural(*count, "norm is", "norms are")
            ),
            Finding::StepsByEpoch { epochs } => {
                format!("The step starts again with each epoch: {epochs} epochs were joined.")
            }
            Finding::DecimalComma => "Some numbers have a decimal comma.".into(),
            Finding::Restarts { count: 0, replaced } => format!(
                "{} the step of a later row, which is used instead.",
                plural(*replaced, "row has", "rows have")
            ),
            Finding::Restarts { count, replaced } => format!(
                "Training was resumed from an earlier step {}: where rows overlap the later ones \
                 are used ({} replaced).",
                plural(*count, "time", "times"),
                plural(*replaced, "row was", "rows were")
            ),
            Finding::SeveralRuns { runs } => format!(
                "The log has {runs} runs; the one with the most rows is analysed. To see the others, \
                 put each run in its own file."
            ),
            Finding::Reversed => "The rows were in reverse order and were reordered.".into(),
            Finding::Unordered => {
                "The rows were in no order: they were sorted by step, and of rows with the same step \
                 the last one was kept."
                    .into()
            }
            Finding::Truncated => "The last row of the log is incomplete and was left out.".into(),
            Finding::Concatenated { count } => {
                format!("{count} JSON objects follow another on the same line; each is one row.")
            }
            Finding::Unreadable { count, first } => format!(
                "{} not readable and left out (first at line {first}).",
                plural(*count, "row or cell is", "rows or cells are")
            ),
            Finding::WrongChecksum { count, first, stopped } => {
                let rest = match stopped {
                    true => "Reading stopped there because the length of the record is not known",
                    false => "Such records are left out",
                };
                format!(
                    "{} a wrong checksum (first at byte {first}). {rest}.",
                    plural(*count, "record has", "records have")
                )
            }
            Finding::StepsCounted => "The log has no step column: rows are counted instead.".into(),
            Finding::WithoutStep { count } => {
                format!("{} without a step and left out.", plural(*count, "row is", "rows are"))
            }
            Finding::Thinned { every } => {
                format!("The log is long: the estimates use one row in {every}.")
            }
        }
    }
}
