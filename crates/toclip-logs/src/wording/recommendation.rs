//! The recommendation in words.

use toclip::monitor::{Choice, Reason, SecondMoment};
use toclip::{percent, short};

use super::{Wording, code};
use crate::advice::LARGEST;
use crate::{Action, Advice, Basis, Optimizer, ThresholdOrigin};

const SIGNAL: &str = "A smaller gain from norms alone is not evidence, because norms do not show \
                      whether large gradients carry more signal";

/// Turns a recommendation into words.
pub(crate) fn recommendation(advice: &Advice) -> Wording {
    let r = &advice.recommendation;
    let (reason, effect) = match (r.basis, &r.choice) {
        (Basis::AfterClipping(c), _) => (
            format!(
                "The norms were logged after clipping at {}, so larger norms are unknown. This log \
                 does not show how much the steps shrink, the tail, or what another threshold would \
                 do.",
                short(c)
            ),
            "A few hundred steps of such a log are enough.".into(),
        ),
        (Basis::LossScaled, _) => (
            "The norms include a loss scale that changes during training, so their distribution is \
             that of the scale."
                .into(),
            "Divide the norms by the loss scale if the log has it, or log unscaled norms.".into(),
        ),
        (Basis::NoChange(reason), _) => no_change(advice, &reason),
        (Basis::BatchSizeUnknown, best) => batch_size_unknown(advice, best.as_ref()),
        // All others come with a best candidate.
        (_, None) => <(String, String)>::default(),
        (Basis::GainAbove(margin), Some(best)) => gain_above(advice, margin, best),
        (Basis::GainBelow(margin), Some(best)) => (
            format!(
                "Clipping helps according to the norms ({}), but the gain over the threshold in force \
                 is {}, which is not shown to exceed {}. {SIGNAL}.{}{}",
                advice.ccc(best),
                advice.interval(&best.gain),
                percent(margin),
                tail(best),
                assumed_threshold(advice)
            ),
            "Keeping it loses nothing that can be shown.".into(),
        ),
        (Basis::ThresholdCosts, Some(best)) => (
            format!(
                "The threshold in force, {}, costs more descent than it saves variance: without it \
                 CCC is higher by a factor of {}. Norms are too favourable to clipping, so evidence \
                 against it is reliable.{}",
                short(advice.threshold_in_force()),
                advice.interval(&best.gain),
                assumed_threshold(advice)
            ),
            format!(
                "{} of the steps would still be clipped, as a guard against spikes. SGD takes larger \
                 steps; a learning rate multiplied by {} keeps its descent.",
                percent(best.clip_fraction),
                short(best.rate_change)
            ),
        ),
        (Basis::ThresholdMayCost, Some(best)) => (
            format!("{} The best candidate has {}.{}", may_cost(advice), advice.ccc(best), tail(best)),
            "A longer log would tell, or a run without clipping at a smaller learning rate.".into(),
        ),
    };
    let code = match (r.basis, &r.choice) {
        (Basis::AfterClipping(c), _) => code::log_before_clipping(c),
        (Basis::GainAbove(_) | Basis::ThresholdCosts, Some(best)) => code::clip(advice, best),
        _ => Vec::new(),
    };
    Wording { headline: headline(advice), reason, effect, code }
}

fn headline(advice: &Advice) -> String {
    let r = &advice.recommendation;
    let now = advice.threshold_in_force();
    match (r.action, r.basis) {
        (Action::Clip, _) => format!("Clip at {}, and {}.", threshold(advice), rate(advice)),
        (Action::Loosen, _) => format!(
            "Clip less: raise the threshold from {} to {}, or do not clip, and {}.",
            short(now),
            threshold(advice),
            rate(advice)
        ),
        (Action::Keep, _) if now.is_finite() => {
            format!("Keep {}: no other threshold is shown to be better.", short(now))
        }
        (Action::Keep, _) => {
            "Leave clipping as it is: no threshold is shown to be better than none.".into()
        }
        (Action::LogBeforeClipping, _) => {
            "Log the norm before clipping, then ask for advice again.".into()
        }
        (Action::NotEnoughEvidence, Basis::LossScaled) => {
            "Not enough evidence: remove the loss scale from the norms first.".into()
        }
        (Action::NotEnoughEvidence, Basis::BatchSizeUnknown) => {
            "Not enough evidence: give the batch size.".into()
        }
        (Action::NotEnoughEvidence, _) => "Not enough evidence for a change.".into(),
    }
}

/// The recommended threshold.
fn threshold(advice: &Advice) -> String {
    let r = &advice.recommendation;
    let c = r.threshold.map_or_else(String::new, short);
    match (r.scale_memory, r.multiple) {
        (Some(_), Some(multiple)) => {
            format!("{} times the running scale of the norms (now {c})", short(multiple))
        }
        _ => format!("{c} from now on"),
    }
}

/// What to do with the learning rate.
fn rate(advice: &Advice) -> String {
    let change = advice.recommendation.choice.map_or_else(String::new, |c| short(c.rate_change));
    match advice.optimizer {
        Some(Optimizer::Sgd) => format!("multiply the learning rate by {change}"),
        Some(Optimizer::Adam) => "keep the learning rate".into(),
        None => format!("keep the learning rate (for SGD only: multiply it by {change})"),
    }
}

fn gain_above(advice: &Advice, margin: f64, best: &Choice) -> (String, String) {
    let mut reason = format!(
        "{}: clipping there removes more variance than descent. The interval accounts for the choice \
         among all thresholds, and the gain exceeds the {} that norms alone must show. This is the \
         largest threshold within the error bars of the best.{}{}",
        advice.ccc(best),
        percent(margin),
        tail(best),
        assumed_threshold(advice)
    );
    if advice.recommendation.holds_from.is_some() {
        reason += " The batch size is unknown: these numbers are for a single sample, and with more \
                   samples the gain is larger.";
    }
    let (noise, reference) = match advice.threshold_in_force().is_finite() {
        true => (&best.gain, "now"),
        false => (&best.ccc, "without clipping"),
    };
    let mut effect = format!(
        "{} of the steps are clipped, and {} of the descent is kept at the same learning rate. With \
         the learning rate multiplied by {}, SGD descends as fast as {reference}, with its gradient \
         noise divided by {}.",
        percent(best.clip_fraction),
        percent(best.mu),
        short(best.rate_change),
        advice.interval(noise)
    );
    if advice.optimizer != Some(Optimizer::Sgd) {
        effect += " Adam-like optimizers divide by their own running scale, so a constant factor \
                   cancels and the learning rate stays the same. What remains is that large gradients \
                   count less; how much that gains is unknown.";
    }
    (reason, effect)
}

fn batch_size_unknown(advice: &Advice, best: Option<&Choice>) -> (String, String) {
    let at = best.map_or_else(String::new, |best| format!(" ({})", advice.ccc(best)));
    let reason = match advice.recommendation.holds_from {
        Some(n) => format!(
            "With {} or more samples times outputs per norm, this log supports clipping{at}. With \
             fewer it does not, because norms of small batches vary by themselves.",
            short(n)
        ),
        None => format!(
            "Only with more than {LARGEST} samples times outputs per norm does this log support \
             clipping{at}."
        ),
    };
    let effect = "Count the samples over all workers and accumulation steps; if a sample has many \
                  outputs (tokens, classes), give their number too.";
    (reason, effect.into())
}

fn no_change(advice: &Advice, reason: &Reason) -> (String, String) {
    let unlikely = "Another threshold is unlikely to help.";
    match reason {
        Reason::TooFew { seen, needed } => (
            format!("There are too few norms: {seen}, and {needed} are needed."),
            "Log every step, or train longer.".into(),
        ),
        Reason::NormsAlone { best, margin } => (
            format!(
                "The best candidate has {}, and its gain is not shown to exceed {}. {SIGNAL} (in \
                 networks this made up 4 to 13%).{}",
                advice.ccc(best),
                percent(*margin),
                tail(best)
            ),
            "Little can be gained by a change. Inner products with an independent gradient would \
             settle it."
                .into(),
        ),
        Reason::NoGain(best) => (
            format!(
                "The best candidate has {}: the interval includes 1, which is no clipping.{}",
                advice.ccc(best),
                tail(best)
            ),
            unlikely.into(),
        ),
        Reason::OneStretch { best, guard } => (
            format!(
                "The gain at {} comes from a single part of the log, or very few. Without them none is \
                 shown, and how often such spikes come is unknown.",
                short(best.threshold)
            ),
            format!(
                "A guard against spikes at {} ({} times the running scale), with the same learning \
                 rate, is reasonable.",
                short(guard * best.threshold / best.multiple),
                short(*guard)
            ),
        ),
        Reason::Swings { correlation, .. } => (
            format!(
                "Neighbouring norms are similar (correlation {correlation:.2}): most of their variation \
                 is a slow swing, not noise that clipping removes, and so is the apparent gain."
            ),
            "Another threshold is unlikely to help until the norms are steadier.".into(),
        ),
        Reason::NoBetter(best) => {
            let (batches, caution) = match advice.components {
                Some(_) => ("", ""),
                None => (
                    " with large batches",
                    " With small batches it may cost more than it saves; the batch size is unknown.",
                ),
            };
            let reason = format!(
                "Clipping helps{batches} ({}), and the threshold in force is as good as any within the \
                 intervals.{caution}",
                advice.ccc(best)
            );
            (reason, unlikely.into())
        }
        Reason::Drift(drift) => (
            format!(
                "The gradient-norm distribution changed during the log (p = {:.1e}), so no single \
                 threshold fits all of it.",
                drift.p_value
            ),
            "A longer log of the later training, or a rule that follows the norms, may help."
                .into(),
        ),
    }
}

/// Why the threshold in force may cost more than it saves.
fn may_cost(advice: &Advice) -> String {
    let at = short(advice.threshold_in_force());
    match advice.current.as_ref().and_then(|now| now.ccc).filter(|ccc| ccc.value.is_finite()) {
        Some(ccc) => format!(
            "The threshold in force, {at}, has CCC {} over this log: it may cost more than it saves, \
             but at the current scale of the norms this is not shown.",
            advice.interval(&ccc)
        ),
        None => format!(
            "No norm is below the threshold in force, {at}, so how much it keeps of single samples is \
             unknown and may be nothing."
        ),
    }
}

impl Advice {
    /// Infinite without clipping, or if it is unknown.
    fn threshold_in_force(&self) -> f64 {
        self.current.as_ref().map_or(f64::INFINITY, |now| now.threshold)
    }

    fn ccc(&self, choice: &Choice) -> String {
        format!("CCC {} at {}", self.interval(&choice.ccc), short(choice.threshold))
    }
}

fn assumed_threshold(advice: &Advice) -> &'static str {
    match advice.current.as_ref().map(|now| now.origin) {
        None => " The threshold in force is unknown, so this is a comparison with no clipping.",
        Some(ThresholdOrigin::Default) => {
            " This assumes that the threshold in force is the trainer's default, 1.0."
        }
        Some(_) => "",
    }
}

fn tail(choice: &Choice) -> &'static str {
    match choice.second_moment {
        Some(SecondMoment::MayNotExist) => {
            " The tail is so heavy that the second moment may not exist: the numbers are for the norms \
             seen, and rare larger ones would favour clipping more."
        }
        Some(SecondMoment::SlowIntervals) => " The tail is heavy, so these intervals are rough.",
        _ => "",
    }
}
