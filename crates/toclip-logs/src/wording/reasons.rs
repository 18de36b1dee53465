//! Reasons in sentences.

use toclip_words::{percent, short};

use super::about;
use crate::{Advice, Because, OptimizerKind};

impl Advice {
    /// A reason in a sentence or two.
    pub(super) fn reason(&self, because: &Because) -> String {
        let r = &self.recommendation;
        let optimizer = self.analysis.optimizer;
        let threshold = r.threshold.map_or_else(String::new, short);
        match *because {
            Because::Finding(index) => {
                self.findings.get(index).map_or_else(String::new, |finding| finding.sentence())
            }
            Because::GuardFits { ordinary, spikes, below } => {
                let spikes = match spikes {
                    0 => String::new(),
                    _ if below == 0 => ", but would not have caught these spikes".into(),
                    _ if below == spikes => " and below the peak of every spike".into(),
                    _ => format!(" and below the peaks of {below} of the {spikes} spikes"),
                };
                let fires = percent(r.fires.unwrap_or(0.0));
                let place = match r.threshold.is_some_and(|c| c < ordinary) {
                    true => format!("{threshold} is at the upper end of the norms seen"),
                    false => format!(
                        "{threshold} is above ordinary norms (outside spikes, 99.9% are below {})",
                        about(ordinary)
                    ),
                };
                format!("{place}{spikes}. It would have clipped {fires} of all logged steps.")
            }
            Because::GuardWorks => format!(
                "The current threshold, {threshold}, is near the best place for a guard: it already \
                 clips these spikes."
            ),
            Because::ClipsMany { fires } => format!(
                "The current threshold, {threshold}, clips these spikes, but also {} of the steps.",
                percent(fires)
            ),
            Because::GuardTooHigh => {
                "The current threshold is too high to shorten these spikes much.".into()
            }
            Because::CheapInsurance => match optimizer {
                Some(OptimizerKind::Sgd) => {
                    "SGD on a transformer diverged without clipping when 2% of the batches were bad; \
                     with a fixed threshold it did not."
                }
                _ => {
                    "A guard is cheap insurance: with AdamW it cost nothing at a good learning rate, \
                     and recovered most of the lost loss when 2% of the batches were bad."
                }
            }
            .into(),
            Because::ScaleCancels => {
                "Adam divides by a running scale of the gradient, so a constant factor cancels: a \
                 threshold that is always active does nearly the same as one that never is."
                    .into()
            }
            Because::ActsAsRate => {
                "With SGD a threshold that is always active acts as a lower learning rate: compare it \
                 with a run at a lower rate."
                    .into()
            }
            Because::RateFirst => {
                "Fix the learning rate first: a threshold rarely rescues one that is too large, and \
                 thresholds that follow the norms grow with them."
                    .into()
            }
            Because::SkipNonFinite => {
                "Clipping does not repair a gradient that is NaN or infinite: skip such steps, as \
                 torch.amp.GradScaler does."
                    .into()
            }
            Because::Gain(ccc) => format!(
                "At equal progress, clipping there divides the gradient noise of SGD by {}.",
                self.interval(&ccc)
            ),
            Because::ThresholdCosts => {
                "The current threshold removes more of the descent than of the gradient noise.".into()
            }
            Because::NoGainExpected => match optimizer {
                Some(OptimizerKind::Sgd) => {
                    "Nothing in these norms shows that another threshold would help by itself."
                }
                _ => {
                    "Another threshold is unlikely to help: with AdamW at a good learning rate, \
                     the final loss differed no more between thresholds (0.25 to none) than between \
                     seeds."
                }
            }
            .into(),
            Because::ThresholdUnknown { guard } => {
                let guard = guard.map_or_else(String::new, |c| {
                    format!(" If the run does not clip, a guard at {} is cheap insurance.", short(c))
                });
                format!("The current threshold is neither given nor in the log.{guard}")
            }
            Because::TooFewSteps { points } => format!(
                "Only {points} logged steps are usable after the warm-up; {} are needed.",
                crate::findings::FEWEST_POINTS
            ),
            Because::NoLoss => {
                "The log has no loss, so spikes and divergence are judged by the norms alone.".into()
            }
            Because::OptimizerUnknown => {
                "What a threshold does depends on the optimizer: with Adam a constant factor cancels, \
                 with SGD a threshold that is always active acts as a lower learning rate."
                    .into()
            }
        }
    }
}
