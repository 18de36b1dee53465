//! What to do, why, and the line to change.

use serde::Serialize;
use toclip::monitor::{Advice, Choice, Interval, Monitor, SecondMoment};

use super::code::{CodeLine, Setup};
use super::current::{Current, Origin};
use super::optimizer::Optimizer;
use crate::words::{decimals, short};
use crate::{Finding, Log};

/// The largest number of samples times outputs that is tried where it is not known.
pub(super) const LARGEST: f64 = 1024.0;

/// The kind of advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Clip there.
    Clip,
    /// Clip less, or not at all.
    Loosen,
    /// Change nothing: the present setting is as good as any.
    Keep,
    /// There is not enough evidence for any change.
    NotEnoughEvidence,
    /// The norms were logged after clipping: log them before.
    LogBeforeClipping,
}

/// The recommendation with its reason and expected effect.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    /// What to do.
    pub action: Action,
    /// In a sentence.
    pub headline: String,
    /// Why.
    pub reason: String,
    /// What to expect of it.
    pub effect: String,
    /// The threshold.
    pub threshold: Option<f64>,
    /// The threshold over the running scale of the norms.
    pub multiple: Option<f64>,
    /// By what the present learning rate is to be multiplied; only where the optimizer is SGD.
    pub rate_change: Option<f64>,
    /// The least samples times outputs behind a norm for which clipping is supported; only where
    /// their number is not known.
    pub holds_from: Option<f64>,
    /// The best candidate's numbers.
    pub choice: Option<Choice>,
    /// The lines to change.
    pub code: Vec<CodeLine>,
}

impl Recommendation {
    pub(super) fn plain(action: Action, headline: &str, reason: String, effect: &str) -> Self {
        Recommendation {
            action,
            headline: headline.into(),
            reason,
            effect: effect.into(),
            threshold: None,
            multiple: None,
            rate_change: None,
            holds_from: None,
            choice: None,
            code: Vec::new(),
        }
    }

    /// For norms after clipping.
    pub(super) fn unseen(threshold: f64) -> Self {
        let reason = format!(
            "the norms were logged after clipping at {}, so everything beyond it is cut off: how \
             much the steps are shrunk, the tail, and what another threshold would do cannot be \
             seen from this log.",
            short(threshold)
        );
        let mut unseen = Self::plain(
            Action::LogBeforeClipping,
            "Log the norm before clipping, and ask again.",
            reason,
            "A few hundred steps of such a log are enough for an answer.",
        );
        let c = short(threshold);
        let line = |framework, line: String| CodeLine { framework, line };
        unseen.code = vec![
            line(
                "PyTorch",
                format!(
                    "norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm={c}); \
                     log({{\"grad_norm\": norm.item()}})  # it returns the norm before clipping"
                ),
            ),
            line(
                "Hugging Face",
                "TrainingArguments(logging_steps=1, …)  # its grad_norm is the one before clipping"
                    .into(),
            ),
            line(
                "Lightning",
                "def on_before_optimizer_step(self, optimizer): \
                 self.log_dict(grad_norm(self, norm_type=2))"
                    .into(),
            ),
            line(
                "Optax",
                "log({\"grad_norm\": optax.global_norm(grads)})  # before optimizer.update".into(),
            ),
        ];
        unseen
    }

    pub(super) fn new(
        steady: &Monitor,
        current: Option<&Current>,
        setup: &Setup,
        log: &Log,
    ) -> Self {
        let scaled = log.findings.iter().any(|f| matches!(f, Finding::LossScaled { .. }));
        if scaled {
            return Self::plain(
                Action::NotEnoughEvidence,
                "Not enough evidence: take the loss scale out of the norms first.",
                "the norms carry a loss scale that changes along the way, so their law is that of \
                 the scale."
                    .into(),
                "With --unscale (where the log has the scale), or a log of unscaled norms, there \
                 will be an answer.",
            );
        }
        match steady.advice() {
            Advice::Clip(choice) => Self::clip(&choice, steady, current, setup),
            Advice::Loosen(choice) => Self::loosen(&choice, current, setup),
            Advice::Stay(reason) => Self::stay(&reason, current, steady.settings(), log),
        }
    }

    /// What becomes of advice to clip when nobody says how many samples are behind a norm: it
    /// stands if it holds even for a single one.
    pub(super) fn for_any_batch(self, least: Option<(f64, Recommendation)>) -> Self {
        match least {
            Some((n, mut single)) if n <= 1.0 => {
                single.holds_from = Some(n);
                single.reason.push_str(
                    " The batch size is not known; these numbers are for a single sample, and \
                     with more the gain is larger (--batch-size).",
                );
                single
            }
            other => {
                let from = other.as_ref().map(|(n, _)| *n);
                let then = other.as_ref().map_or(&self, |(_, then)| then);
                let choice = then.choice;
                let at = choice.map_or(String::new(), |choice| {
                    format!(" at {} (CCC {})", short(choice.threshold), shown(&choice.ccc))
                });
                let reason = match from {
                    Some(n) => format!(
                        "how many samples are behind each norm is not known. With {} or more, \
                         times outputs, this log would speak for clipping{at}; with fewer it does not, as norms of \
                         small batches vary by themselves.",
                        short(n)
                    ),
                    None => format!(
                        "how many samples are behind each norm is not known, and only with more \
                         than {LARGEST} of them, times outputs, would this log speak for \
                         clipping{at}."
                    ),
                };
                let mut asks = Self::plain(
                    Action::NotEnoughEvidence,
                    "Not enough evidence: give --batch-size.",
                    reason,
                    "Count the samples over all workers and accumulated steps; where a sample has \
                     many outputs (tokens, classes), give --outputs too.",
                );
                asks.holds_from = from;
                asks.choice = choice;
                asks
            }
        }
    }

    fn with(mut self, choice: &Choice, setup: &Setup) -> Self {
        self.choice = Some(*choice);
        self.threshold = Some(choice.threshold);
        self.multiple = Some(choice.multiple);
        self.rate_change = (setup.optimizer == Some(Optimizer::Sgd)).then_some(choice.rate_change);
        self.code = setup.lines(choice);
        self
    }

    /// Clipping is shown to help; it is advised unless the present threshold does as well, as far
    /// as norms can tell.
    fn clip(choice: &Choice, steady: &Monitor, current: Option<&Current>, setup: &Setup) -> Self {
        let margin = steady.settings().margin;
        let in_force = current.filter(|now| now.threshold.is_finite());
        if let Some(now) = in_force
            && choice.gain.low < 1.0 + margin
        {
            let mut keep = Self::plain(
                Action::Keep,
                &format!(
                    "Keep {}: no other threshold is shown to be better.",
                    short(now.threshold)
                ),
                format!(
                    "clipping helps here by the norms (CCC {} at {}), but over the present \
                     threshold the gain is {}, which is not shown to exceed {:.0}%, and less than that from \
                     norms alone is not evidence: they cannot see that large gradients may carry more signal.{}",
                    shown(&choice.ccc),
                    short(choice.threshold),
                    shown(&choice.gain),
                    100.0 * margin,
                    tail(choice)
                ),
                "Nothing that can be shown is lost by keeping it.",
            );
            keep.choice = Some(*choice);
            note_origin(&mut keep, current);
            return keep;
        }
        let reason = format!(
            "at {} the criterion CCC is {}: clipping there takes away more variance than descent. \
             The interval allows for having chosen among all thresholds, and the gain is above the \
             {:.0}% that norms alone must show. Of thresholds as good it is \
             the loosest.{}",
            short(choice.threshold),
            shown(&choice.ccc),
            100.0 * margin,
            tail(choice)
        );
        let (noise, than) = match in_force {
            Some(_) => (&choice.gain, "as now"),
            None => (&choice.ccc, "as without clipping"),
        };
        let mut effect = format!(
            "{:.1}% of steps are clipped, and {:.1}% of the descent is kept at the same rate; with \
             the learning rate multiplied by {}, SGD descends {than}, with its gradient noise \
             divided by {} ({} to {}).",
            100.0 * choice.clip_fraction,
            100.0 * choice.mu,
            short(choice.rate_change),
            short(noise.value),
            short(noise.low),
            short(noise.high)
        );
        if setup.optimizer != Some(Optimizer::Sgd) {
            effect.push_str(
                " Adam and its like divide by their own running scale, so that a constant factor \
                 cancels: there the rate stays, what is left is that large gradients count less, \
                 and how much that gains is not known.",
            );
        }
        let headline =
            format!("Clip at {}, and {}.", setup.threshold(choice), setup.rate(choice.rate_change));
        let mut clip = Self::plain(Action::Clip, &headline, reason, &effect).with(choice, setup);
        note_origin(&mut clip, current);
        clip
    }

    fn loosen(choice: &Choice, current: Option<&Current>, setup: &Setup) -> Self {
        let now = current.map_or(f64::NAN, |c| c.threshold);
        let reason = format!(
            "the present threshold {} costs more descent than it saves variance: without it the \
             criterion is better by a factor {}. Norms flatter clipping, so what they say against \
             it can be believed.",
            short(now),
            shown(&choice.gain)
        );
        let effect = format!(
            "{:.2}% of steps would still be clipped, as a guard against explosions. Steps of SGD \
             grow: its learning rate times {} keeps its descent.",
            100.0 * choice.clip_fraction,
            short(choice.rate_change)
        );
        let headline = format!(
            "Clip less: not at {} but at {}, or not at all, and {}.",
            short(now),
            setup.threshold(choice),
            setup.rate(choice.rate_change)
        );
        let mut loosen =
            Self::plain(Action::Loosen, &headline, reason, &effect).with(choice, setup);
        note_origin(&mut loosen, current);
        loosen
    }
}

fn note_origin(recommendation: &mut Recommendation, current: Option<&Current>) {
    match current {
        None => recommendation.reason.push_str(
            " The threshold in force is not known, so this is compared with no clipping; give it \
             with --clip.",
        ),
        Some(Current { origin: Origin::Default, .. }) => recommendation.reason.push_str(
            " This takes the threshold in force to be the trainer's default 1.0; if it was another \
             one, give it with --clip.",
        ),
        Some(_) => {}
    }
}

pub(super) fn shown(interval: &Interval) -> String {
    let [value, low, high] = [interval.value, interval.low, interval.high].map(decimals);
    format!("{value} ({low} to {high})")
}

pub(super) fn tail(choice: &Choice) -> &'static str {
    match choice.second_moment {
        Some(SecondMoment::MayNotExist) => {
            " The tail is so heavy that the second moment may not exist: the numbers are those of \
             the norms seen, and rare larger ones would speak more for clipping."
        }
        Some(SecondMoment::SlowIntervals) => {
            " The tail is heavy enough to make these intervals rough."
        }
        _ => "",
    }
}
