//! Findings in sentences.

use toclip_words::{percent, short};

use super::{about, grouped, plural};
use crate::{Finding, NormScaleCause, Spike};

impl Finding {
    /// The finding in a sentence or two, with what to do.
    pub fn sentence(&self) -> String {
        let norms = |count: u64| plural(count, "norm is", "norms are");
        let rows = |count: u64| plural(count, "row has", "rows have");
        match *self {
            Finding::Healthy { loss_from: Some(from), loss_to: Some(to) } => {
                let (start, end) = (about(from), about(to));
                match from - to > 0.01 * from.abs() {
                    true => format!(
                        "Nothing is wrong: the loss fell from {start} to {end}, without spikes."
                    ),
                    false => format!(
                        "No spikes, and every number is finite, but the loss has not fallen: {start} \
                         after the warm-up, {end} at the end."
                    ),
                }
            }
            Finding::Healthy { .. } => {
                "Nothing is wrong with the norms: no spikes, and all are finite.".into()
            }
            Finding::Diverged { ref steps, loss_finite: true, .. } => format!(
                "The gradient is NaN or infinite from step {} to the end, while the loss stays finite: \
                 look for its source, such as a square root or a logarithm at zero.",
                steps.first().map_or_else(String::new, |s| grouped(*s))
            ),
            Finding::Diverged { ref steps, last_good, learning_rate, grew, .. } => {
                diverged(steps, last_good, learning_rate, grew)
            }
            Finding::Diverging { best_step, best, last } => format!(
                "The run is diverging: the loss rises and is at {}, after a best of {} near step {}.",
                about(last),
                about(best),
                grouped(best_step)
            ),
            Finding::NotRecovered { best_step, best, last } => format!(
                "The loss is stuck at {}, far above its best of {} near step {}.",
                about(last),
                about(best),
                grouped(best_step)
            ),
            Finding::Spikes { ref steps, ref events } => spikes(steps, events),
            Finding::NonFiniteSteps { ref steps } => format!(
                "Loss or norm was NaN or infinite at {}, and training went on.",
                first_few(steps)
            ),
            Finding::AlwaysClipped { threshold, fires, times } => format!(
                "The threshold {} clips {} of the steps: the median norm is {} times as large.",
                short(threshold),
                percent(fires),
                about(times)
            ),
            Finding::NeverClipped { threshold, largest } => format!(
                "The threshold {} never clipped a step: the largest norm is {}.",
                short(threshold),
                about(largest)
            ),
            Finding::NormsAfterClipping { threshold, share } => format!(
                "{} of the norms are equal to {}: they were logged after clipping, so larger norms are \
                 unknown. If the run did not clip there, give the real threshold.",
                percent(share),
                short(threshold)
            ),
            Finding::NotClipped { threshold, share } => format!(
                "{} of the norms are equal to {}, which looks like clipping. Because another threshold \
                 was given, they are taken as norms before clipping.",
                percent(share),
                short(threshold)
            ),
            Finding::NormScale { median, loss, cause } => norm_scale(median, loss, cause),
            Finding::Unscaled => "The norms were divided by the loss scale.".into(),
            Finding::Subsampled { stride } => format!(
                "One row every {} steps: spikes between the logged steps are not seen.",
                short(stride)
            ),
            Finding::Drift { scale_change } => match scale_change > 1.0 {
                true => format!("The norms grew by a factor of {} over the log.", about(scale_change)),
                false => {
                    format!(
                        "The norms fell to {} of their size over the log.",
                        percent(scale_change)
                    )
                }
            },
            Finding::HeavyTail { index } => format!(
                "The tail of the norms is heavy: tail index {} ({}–{}).",
                about(index.value),
                about(index.low),
                about(index.high)
            ),
            Finding::Layers { count, ref driver, share, ref fire_alone, spread } => {
                layers(count, driver, share, fire_alone, spread)
            }
            Finding::Finished { rate } => format!(
                "The learning rate has decayed to {} of its peak: the run is finished.",
                percent(rate)
            ),
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
                "The rows were out of order and were sorted; where a step repeats, the last row is used."
                    .into()
            }
            Finding::Truncated => "The last row of the log is incomplete and was left out.".into(),
            Finding::Concatenated { count } => {
                format!("{count} JSON objects share a line with another; each is read as one row.")
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

fn diverged(steps: &[f64], last_good: Option<f64>, rate: Option<f64>, grew: bool) -> String {
    let since = steps.first().map_or_else(String::new, |s| grouped(*s));
    let Some(good) = last_good else {
        return format!("Loss or norm is NaN or infinite from step {since}, the first in the log.");
    };
    let how = match (grew, rate) {
        (true, Some(rate)) => format!(
            " They grew from step {} on, at a learning rate of {}.",
            grouped(good + 1.0),
            about(rate)
        ),
        (true, None) => format!(" They grew from step {} on.", grouped(good + 1.0)),
        (false, _) => format!(" Both were normal up to step {}.", grouped(good)),
    };
    format!("The run diverged: loss or norm is NaN or infinite from step {since} to the end.{how}")
}

fn spikes(steps: &[f64], events: &[Spike]) -> String {
    let largest = events.iter().max_by(|a, b| a.times_median.total_cmp(&b.times_median));
    let Some(largest) = largest else { return String::new() };
    let starts: Vec<f64> = events.iter().map(|event| event.first).collect();
    let loss = match (largest.loss_before, largest.loss_peak) {
        (Some(before), Some(peak)) if peak > 1.1 * before => {
            format!(", and the loss rose from {} to {}", about(before), about(peak))
        }
        _ => String::new(),
    };
    let back = match largest.recovered_after {
        Some(_) if loss.is_empty() => String::new(),
        Some(after) => format!("; it recovered in {}", plural(after as u64, "step", "steps")),
        None if largest.loss_before.is_some() => {
            "; it had not recovered by the end of the log".into()
        }
        None => String::new(),
    };
    let noun = if events.len() == 1 { "spike" } else { "spikes" };
    let largest_at = match events.len() {
        1 => String::new(),
        _ => format!("in the largest, at step {}, ", grouped(largest.first)),
    };
    let affected = match steps.len() > events.len() {
        true => format!(" ({} steps affected)", steps.len()),
        false => String::new(),
    };
    format!(
        "{} {noun}, at {}{affected}: {largest_at}the norm was {} times its running median{loss}{back}.",
        events.len(),
        first_few(&starts),
        about(largest.times_median)
    )
}

fn layers(count: usize, driver: &str, share: f64, alone: &[String], spread: f64) -> String {
    let drives = format!(
        "The log has {count} layers; `{driver}` has {} of the squared norm.",
        percent(share)
    );
    let alone = match alone {
        [] => " Layers spike only together with the total.".into(),
        [one] => format!(" `{one}` spikes while the total does not."),
        [one, two] => format!(" `{one}` and `{two}` spike while the total does not."),
        [one, rest @ ..] => {
            format!(" `{one}` and {} other layers spike while the total does not.", rest.len())
        }
    };
    let thresholds = match spread > 5.0 {
        true => format!(
            " Thresholds by layer would differ by a factor of up to {}: a single threshold protects \
             only the layers with the largest norms.",
            about(spread)
        ),
        false => " Thresholds by layer would be similar: one for all is enough.".into(),
    };
    drives + &alone + &thresholds
}

/// "step 5" or "steps 5, 7, 9 and 12 more".
fn first_few(steps: &[f64]) -> String {
    let shown: Vec<String> = steps.iter().take(4).map(|s| grouped(*s)).collect();
    let noun = if steps.len() == 1 { "step" } else { "steps" };
    match steps.len().saturating_sub(4) {
        0 => format!("{noun} {}", shown.join(", ")),
        more => format!("{noun} {} and {more} more", shown.join(", ")),
    }
}

fn norm_scale(median: f64, loss: Option<f64>, cause: NormScaleCause) -> String {
    let norm = about(median);
    match cause {
        NormScaleCause::LossScale { jumps, column: true } => format!(
            "The norms (median {norm}) follow {} of the loss scale, so they include it.",
            plural(jumps as u64, "jump", "jumps")
        ),
        NormScaleCause::LossScale { jumps, column: false } => format!(
            "The norms (median {norm}) jump by powers of two {jumps} times: they seem to include a \
             loss scale."
        ),
        NormScaleCause::ConstantLossScale { scale } => format!(
            "The median norm is {norm} and the loss scale is always {}: the norms seem to include it.",
            about(scale)
        ),
        NormScaleCause::SummedLoss => format!(
            "The median norm is {norm} and the loss {}: the loss seems to be summed over tokens or \
             samples, which makes norms, thresholds and learning rates depend on the batch size.",
            loss.map_or_else(String::new, about)
        ),
        NormScaleCause::Unknown => format!(
            "The median norm is {norm}, far above that of an averaged loss. Likely causes: a loss scale \
             that was not removed, gradients summed over accumulation steps, or a summed loss."
        ),
    }
}
