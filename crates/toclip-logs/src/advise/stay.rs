//! Why nothing is to be changed.

use toclip::monitor::{Reason, Settings};

use super::current::Current;
use super::recommend::{Action, Recommendation, shown, tail};
use crate::Log;
use crate::words::short;

impl Recommendation {
    pub(super) fn stay(
        reason: &Reason,
        current: Option<&Current>,
        settings: &Settings,
        log: &Log,
    ) -> Self {
        let not = |reason: String, effect: &str| {
            let headline = "Not enough evidence for a change.";
            Self::plain(Action::NotEnoughEvidence, headline, reason, effect)
        };
        let keep = match current {
            Some(current) if current.threshold.is_finite() => format!(
                "Keep {}: as far as the norms can tell, no other threshold is better.",
                short(current.threshold)
            ),
            _ => "Leave clipping as it is: no threshold is shown to be better than none.".into(),
        };
        match reason {
            Reason::TooFew { needed, .. } => not(
                format!(
                    "there are too few norms to tell: {}, and {needed} are needed.",
                    log.points.iter().filter(|p| p.norm > 0.0).count()
                ),
                "Log every step, or train longer, and ask again.",
            ),
            Reason::NormsAlone { best, margin } => {
                let mut stay = not(
                    format!(
                        "the best threshold, {}, gains {} by the norms, which is not shown to \
                         exceed {:.0}%, and less than that from norms alone is not evidence: they \
                         cannot see that large gradients may carry more signal (in networks this \
                         made up 4 to 13%).{}",
                        short(best.threshold),
                        shown(&best.ccc),
                        100.0 * margin,
                        tail(best)
                    ),
                    "Nothing is lost by leaving it: the most that can be gained is small. Inner \
                     products with an independent gradient would settle it.",
                );
                stay.choice = Some(*best);
                stay
            }
            Reason::NoGain(best) => {
                let (at, ccc, tail) = (short(best.threshold), shown(&best.ccc), tail(best));
                let mut stay = match may_cost(current, settings.margin) {
                    Some(says) => not(
                        format!("{says} The best candidate, {at}, has CCC {ccc}.{tail}"),
                        "A longer log would tell, or a run without clipping at a smaller learning \
                         rate.",
                    ),
                    None => Self::plain(
                        Action::Keep,
                        &keep,
                        format!(
                            "the best candidate, {at}, has CCC {ccc}: its interval reaches down to \
                             one, which is no clipping.{tail}"
                        ),
                        "Nothing to expect from another threshold, as far as norms can tell.",
                    ),
                };
                stay.choice = Some(*best);
                stay
            }
            Reason::OneStretch { best, guard } => {
                let mut stay = not(
                    format!(
                        "the gain at {} rests on a single stretch of the log, or on very few: without \
                         them none is shown, and how often such spikes come is not known.",
                        short(best.threshold)
                    ),
                    &format!(
                        "A guard against spikes at {} ({} times the scale), with the learning rate \
                         as it is, is reasonable.",
                        short(guard * best.threshold / best.multiple),
                        short(*guard)
                    ),
                );
                stay.choice = Some(*best);
                stay
            }
            Reason::Swings { best, correlation } => {
                let mut stay = not(
                    format!(
                        "neighbouring norms are alike (correlation {correlation:.2}): most of what \
                         varies is a slow swing, not noise that clipping takes away, and the gain \
                         by the norms is that of the swing."
                    ),
                    "Nothing to expect from another threshold until the norms are steadier.",
                );
                stay.choice = Some(*best);
                stay
            }
            Reason::NoBetter(best) => {
                let (batch, caution) = match settings.components {
                    Some(_) => ("", ""),
                    None => (
                        "in large batches ",
                        " In small ones it may cost more than it saves: the batch size is not known \
                         (--batch-size).",
                    ),
                };
                let mut stay = Self::plain(
                    Action::Keep,
                    &keep,
                    format!(
                        "{batch}clipping helps here (CCC {} at {}), and the present threshold does as \
                         well as any within the intervals.{caution}",
                        shown(&best.ccc),
                        short(best.threshold)
                    ),
                    "Nothing to expect from another threshold, as far as norms can tell.",
                );
                stay.choice = Some(*best);
                stay
            }
            // The norms changed or swung along the way, or all rests on one stretch of them.
            other => not(
                format!("{other}."),
                "A longer log of the later training, or a rule that follows the norms, may do.",
            ),
        }
    }
}

/// What is to be said of a threshold in force that looks costly and is not shown to be.
fn may_cost(current: Option<&Current>, margin: f64) -> Option<String> {
    let now = current.filter(|now| now.threshold.is_finite())?;
    let (at, ccc) = (short(now.threshold), now.ccc?);
    if !ccc.value.is_finite() {
        return Some(format!(
            "no norm is below the present threshold {at}, so that what it keeps of single samples is \
             not known, and may be nothing."
        ));
    }
    (ccc.value * (1.0 + margin) < 1.0).then(|| {
        format!(
            "the present threshold {at} had CCC {} over this log: it may cost more than it saves, but at the \
             present scale of the norms that is not shown.",
            shown(&ccc)
        )
    })
}
