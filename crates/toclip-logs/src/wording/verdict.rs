//! The verdict: a recommendation in one line, three reasons, one block of code.

use serde::Serialize;
use toclip_words::short;

use super::code::{self, CodeBlock};
use super::{Framework, about, grouped, roughly};
use crate::{Action, Advice, Because, Finding, NormScaleCause, RateExperiment, Recommendation};

/// Whether to change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Tone {
    /// Change something.
    Act,
    /// Change nothing.
    Leave,
    /// The log does not say.
    Unknown,
}

/// The answer, shortest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Whether to change something.
    pub tone: Tone,
    /// What to do, in a sentence.
    pub headline: String,
    /// Why, at most three.
    pub reasons: Vec<String>,
    /// The lines to write, if anything should change.
    pub code: Option<CodeBlock>,
    /// An experiment worth doing, one paragraph and one line for each run.
    pub experiment: Vec<String>,
}

/// Reasons that are given.
const REASONS: usize = 3;

impl Advice {
    /// The verdict in words, with code for a framework.
    pub fn verdict(&self, framework: Framework) -> Verdict {
        let r = &self.recommendation;
        let reasons = r.because.iter().map(|reason| self.reason(reason)).take(REASONS);
        Verdict {
            tone: match r.action {
                Action::Keep => Tone::Leave,
                Action::CannotTell => Tone::Unknown,
                _ => Tone::Act,
            },
            headline: self.headline(),
            reasons: reasons.collect(),
            code: code::block(self, framework),
            experiment: experiment(&r.experiments),
        }
    }

    fn headline(&self) -> String {
        let r = &self.recommendation;
        let threshold = r.threshold.map_or_else(String::new, short);
        let next = if r.next_run { " in the next run" } else { "" };
        match r.action {
            Action::Keep => match (r.threshold, &self.analysis.current) {
                (Some(_), _) => format!("Leave the threshold at {threshold}{next}."),
                (None, Some(_)) => format!("Leave clipping off{next}."),
                (None, None) => format!("Nothing to change{next}."),
            },
            Action::Guard => {
                let back = r.roll_back_to.map_or_else(String::new, |step| {
                    format!(
                        " If there is a checkpoint just before step {}, go back to it, unless the data changed there.",
                        grouped(step + 1.0)
                    )
                });
                format!("Clip at {threshold}{next}, as a guard against spikes.{back}")
            }
            Action::Clip => format!("Clip at {threshold}{next}."),
            Action::Remove => format!("Stop clipping{next}."),
            Action::LowerRate => self.lower_rate(r),
            Action::RollBack => {
                let step = r.roll_back_to.map_or_else(String::new, grouped);
                let guard = match r.threshold {
                    Some(_) => format!(", and clip at {threshold} from there"),
                    None => String::new(),
                };
                format!("Go back to the last checkpoint at or before step {step}{guard}.")
            }
            Action::FixLoss => self.fix_loss(),
            Action::FixLogging => {
                let clipped = |f: &Finding| matches!(f, Finding::NormsAfterClipping { .. });
                match self.findings.iter().any(clipped) {
                    true => "Log the gradient norm before clipping, then ask again.",
                    false => "Log the gradient norm before the gradients are set to zero.",
                }
                .into()
            }
            Action::CannotTell => match r.because.first() {
                Some(Because::TooFewSteps { .. }) => {
                    "Train longer, or log more often, then ask again."
                }
                _ => "The norms in this log cannot be judged.",
            }
            .into(),
        }
    }

    fn lower_rate(&self, r: &Recommendation) -> String {
        let factor = r.rate_factor.unwrap_or(1.0);
        let rate = match self.analysis.largest_rate {
            Some(peak) => format!("{} ({} times its peak)", roughly(peak * factor), short(factor)),
            None => format!("{} times its value", short(factor)),
        };
        let from = match r.roll_back_to {
            Some(step) => format!(", from a checkpoint at or before step {}", grouped(step)),
            None => ", and start again".into(),
        };
        let guard = match r.threshold {
            Some(c) => format!(" and clip at {}", short(c)),
            None => String::new(),
        };
        format!("Lower the learning rate to about {rate}{guard}{from}.")
    }

    fn fix_loss(&self) -> String {
        let cause = self.findings.iter().find_map(|f| match f {
            Finding::NormScale { cause, .. } => Some(*cause),
            _ => None,
        });
        match cause {
            Some(NormScaleCause::SummedLoss) => {
                "Average the loss over tokens and samples instead of summing it, then ask again."
            }
            Some(NormScaleCause::LossScale { .. } | NormScaleCause::ConstantLossScale { .. }) => {
                "Remove the loss scale before clipping and logging (scaler.unscale_), then ask again."
            }
            Some(NormScaleCause::Unknown) => {
                "Check the scale of the loss: it seems to be multiplied or summed. Then ask again."
            }
            None => "Fix the loss first: it is not finite from the first logged step.",
        }
        .into()
    }
}

/// A paragraph, and one line for each run.
fn experiment(runs: &[RateExperiment]) -> Vec<String> {
    let Some(first) = runs.first() else { return Vec::new() };
    // A threshold is varied for SGD only.
    let pairs = runs.iter().any(|run| run.threshold != first.threshold);
    let (why, last) = match pairs {
        true => (
            "with SGD on a transformer a small fixed threshold with a larger learning rate beat every \
             run without clipping, and norms alone cannot show it",
            " The last pair is there because a threshold that is always active acts as a lower \
             learning rate.",
        ),
        false => ("spikes that keep coming can mean that the learning rate is too large", ""),
    };
    let mut lines = vec![format!(
        "Worth an experiment: {why}. Train {} steps from the same start with each of these and compare \
         the smoothed loss at the end.{last}",
        grouped(first.steps as f64)
    )];
    lines.extend(runs.iter().map(|run| {
        let threshold =
            run.threshold.map_or("no clipping".into(), |c| format!("threshold {}", short(c)));
        let rate = match run.learning_rate {
            Some(rate) => format!("learning rate {} (× {})", about(rate), short(run.rate_times)),
            None => format!("learning rate × {}", short(run.rate_times)),
        };
        format!("{threshold}, {rate}")
    }));
    lines
}
