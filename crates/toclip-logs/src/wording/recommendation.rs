//! The recommendation in words.

use toclip::monitor::{Choice, Reason, SecondMoment};
use toclip::{percent, short};

use super::{Wording, code};
use crate::advice::LARGEST;
use crate::{Action, Advice, Basis, Optimizer, ThresholdOrigin};

const NORMS_ALONE: &str = "Norms alone do not show whether large gradients carry more signal, so a \
                           smaller gain is not evidence";
const UNLIKELY: &str = "Another threshold is unlikely to help.";

/// Turns a recommendation into words.
pub(crate) fn recommendation(advice: &Advice) -> Wording {
    let r = &advice.recommendation;
    let (reason, effect) = match (r.basis, &r.choice) {
        (Basis::AfterClipping(c), _) => (
            format!("The norms were logged after clipping at {}: larger ones are lost.", short(c)),
            "A few hundred steps of such a log are enough.".into(),
        ),
        (Basis::LossScaled, _) => (
            "The norms include a loss scale that changes during training.".into(),
            "Divide the norms by the loss scale if the log has it, or log unscaled norms.".into(),
        ),
        (Basis::NoChange(reason), _) => no_change(advice, &reason),
        (Basis::BatchSizeUnknown, best) => batch_size_unknown(advice, best.as_ref()),
        (Basis::GainAbove(margin), Some(best)) => gain_above(advice, margin, best),
        (Basis::GainBelow(margin), Some(best)) => (
            format!(
                "{} according to the norms, but the gain over the threshold in force, {}, is not shown \
                 to exceed {}. {NORMS_ALONE}.{}",
                advice.ccc(best),
                advice.interval(&best.gain),
                percent(margin),
                caveats(advice, best)
            ),
            "There is no evidence that keeping it costs anything.".into(),
        ),
        (Basis::ThresholdCosts, Some(best)) => (
            format!(
                "The threshold in force costs more descent than it saves variance: without it CCC is \
                 higher by a factor of {}. Norms favour clipping, so evidence against it is reliable.{}",
                advice.interval(&best.gain),
                assumed_threshold(advice)
            ),
            format!(
                "It would still clip {} of the steps, as a guard against spikes. For SGD, multiplying \
                 the learning rate by {} keeps the descent.",
                percent(best.clip_fraction),
                short(best.rate_change)
            ),
        ),
        (Basis::ThresholdMayCost, Some(best)) => (
            format!(
                "{} The best candidate has {}.{}",
                may_cost(advice),
                advice.ccc(best),
                tail(best)
            ),
            "A longer log would tell, or a run without clipping at a smaller learning rate.".into(),
        ),
        // These have a best candidate.
        (_, None) => <(String, String)>::default(),
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
        (Action::Clip, _) => format!("Clip at {}.", threshold_and_rate(advice)),
        (Action::Loosen, _) => {
            format!("Clip less: not at {} but at {}.", short(now), threshold_and_rate(advice))
        }
        (Action::Keep, _) if now.is_finite() => {
            format!("Keep {}: no other threshold is shown to be better.", short(now))
        }
        (Action::Keep, _) => "Change nothing: no threshold is shown to be better than none.".into(),
        (Action::LogBeforeClipping, _) => "Log the norm before clipping, then ask again.".into(),
        (Action::NotEnoughEvidence, basis) => match basis {
            Basis::LossScaled => "Not enough evidence: remove the loss scale from the norms first.",
            Basis::BatchSizeUnknown => "Not enough evidence: give the batch size.",
            _ => "Not enough evidence for a change.",
        }
        .into(),
    }
}

fn threshold_and_rate(advice: &Advice) -> String {
    let r = &advice.recommendation;
    let Some(best) = r.choice else { return String::new() };
    let (c, k, rate) = (short(best.threshold), short(best.multiple), short(best.rate_change));
    let threshold = match (r.scale_memory, r.action) {
        (Some(_), Action::Loosen) => {
            format!("{k} times the running scale (now {c}), or not at all")
        }
        (Some(_), _) => format!("{k} times the running scale of the norms (now {c})"),
        (None, Action::Loosen) => format!("{c} from now on, or not at all"),
        (None, _) => format!("{c} from now on"),
    };
    match advice.optimizer {
        Some(Optimizer::Sgd) => format!("{threshold}, and multiply the learning rate by {rate}"),
        Some(Optimizer::Adam) => format!("{threshold}, and keep the learning rate"),
        None => format!("{threshold}, and keep the learning rate (for SGD: multiply it by {rate})"),
    }
}

fn gain_above(advice: &Advice, margin: f64, best: &Choice) -> (String, String) {
    let mut reason = format!(
        "{}: clipping removes more variance than descent, and the gain exceeds the {} that norms alone \
         must show. The interval accounts for the choice among all thresholds; this is the largest one \
         within the error bars of the best.{}",
        advice.ccc(best),
        percent(margin),
        caveats(advice, best)
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
        "It clips {} of the steps and keeps {} of the descent. With {} times the learning rate, SGD \
         descends as fast as {reference} with its gradient noise divided by {}.",
        percent(best.clip_fraction),
        percent(best.mu),
        short(best.rate_change),
        advice.interval(noise)
    );
    if advice.optimizer != Some(Optimizer::Sgd) {
        effect += " With Adam-like optimizers a constant factor cancels: large gradients count less, \
                   and how much that gains is unknown.";
    }
    (reason, effect)
}

fn batch_size_unknown(advice: &Advice, best: Option<&Choice>) -> (String, String) {
    let at = best.map_or_else(String::new, |best| format!(" ({})", advice.ccc(best)));
    let reason = match advice.recommendation.holds_from {
        Some(n) => format!(
            "With {} or more samples times outputs per norm, this log supports clipping{at}. With fewer \
             it does not, because the norms of small batches vary by chance.",
            short(n)
        ),
        None => format!(
            "This log supports clipping only with more than {LARGEST} samples times outputs per norm{at}."
        ),
    };
    let effect = "Count the samples over all workers and accumulation steps, and the outputs (tokens, \
                  classes) of a sample.";
    (reason, effect.into())
}

fn no_change(advice: &Advice, reason: &Reason) -> (String, String) {
    let (reason, effect): (String, &str) = match reason {
        Reason::TooFew { seen, needed } => (
            format!("The log has {seen} norms that are not zero; {needed} are needed."),
            "Log every step, or train longer.",
        ),
        Reason::NormsAlone { best, margin } => (
            format!(
                "The best candidate has {}, and its gain is not shown to exceed {}. {NORMS_ALONE} (in \
                 networks they overestimated it by 4 to 13%).{}",
                advice.ccc(best),
                percent(*margin),
                tail(best)
            ),
            "Little can be gained. Inner products with an independent gradient would settle it.",
        ),
        Reason::NoGain(best) => {
            let (ccc, tail) = (advice.ccc(best), tail(best));
            (format!("The best candidate has {ccc}, and 1 is no clipping.{tail}"), UNLIKELY)
        }
        Reason::OneStretch { best, guard } => {
            let (at, k) = (short(guard * best.threshold / best.multiple), short(*guard));
            let reason = format!(
                "The gain at {} comes from one part of the log, or very few. How often such spikes come \
                 is unknown.",
                short(best.threshold)
            );
            return (
                reason,
                format!("A guard at {at} ({k} times the running scale) is reasonable."),
            );
        }
        Reason::Swings { correlation, .. } => (
            format!(
                "Neighbouring norms are similar (correlation {correlation:.2}): their variation is mostly \
                 a slow swing, not noise that clipping removes."
            ),
            UNLIKELY,
        ),
        Reason::NoBetter(best) => {
            let batches = match advice.components {
                Some(_) => "",
                None => " for large batches; for small ones it may cost more than it saves",
            };
            let ccc = advice.ccc(best);
            (format!("The threshold in force is as good as the best, {ccc}{batches}."), UNLIKELY)
        }
        Reason::Drift(drift) => (
            format!(
                "The gradient-norm distribution changed during the log (p = {:.1e}), so no single \
                 threshold fits all of it.",
                drift.p_value
            ),
            "A longer log of the later training, or a rule that follows the norms, may help.",
        ),
    };
    (reason, effect.into())
}

/// Why the threshold in force may cost more than it saves.
fn may_cost(advice: &Advice) -> String {
    let at = short(advice.threshold_in_force());
    match advice.current.as_ref().and_then(|now| now.ccc).filter(|ccc| ccc.value.is_finite()) {
        Some(ccc) => format!(
            "The threshold in force, {at}, has CCC {}: it may cost more than it saves, but at the current \
             scale of the norms this is not shown.",
            advice.interval(&ccc)
        ),
        None => format!(
            "No norm is below the threshold in force, {at}: what it keeps of single samples is unknown."
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

fn caveats(advice: &Advice, best: &Choice) -> String {
    format!("{}{}", tail(best), assumed_threshold(advice))
}

fn assumed_threshold(advice: &Advice) -> &'static str {
    match advice.current.as_ref().map(|now| now.origin) {
        None => " The threshold in force is unknown, so this compares with no clipping.",
        Some(ThresholdOrigin::Default) => " This assumes the trainer's default threshold, 1.0.",
        Some(_) => "",
    }
}

fn tail(choice: &Choice) -> &'static str {
    match choice.second_moment {
        Some(SecondMoment::MayNotExist) => {
            " The tail is so heavy that the second moment may not exist: rare larger norms would favour \
             clipping more."
        }
        Some(SecondMoment::SlowIntervals) => " The tail is heavy, so these intervals are rough.",
        _ => "",
    }
}
