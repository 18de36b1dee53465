//! The answer, and its reasons in words.

use super::drift::Drift;
use super::estimates::{Interval, SecondMoment};
use crate::short;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What to do about the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// Clip there: the evidence is that it beats both no clipping and the threshold in force.
    Clip(Choice),
    /// The threshold in force costs more than it saves. Clip there, where only rare spikes are
    /// caught, or not at all.
    Loosen(Choice),
    /// Change nothing: there is not enough evidence.
    Stay(Reason),
}

/// A threshold, and what is expected of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// $\tau$, at the present scale.
    pub threshold: f64,
    /// $\tau$ over the scale.
    pub multiple: f64,
    /// Which of the 64 candidates it is.
    pub candidate: usize,
    /// $P(G > \tau)$.
    pub clip_fraction: f64,
    /// $\mu$, the share of the descent that is kept.
    pub mu: f64,
    /// $1/\mu$: by what the learning rate without clipping is to be multiplied.
    pub rate_factor: f64,
    /// By what the present learning rate is to be multiplied: $\mu$ in force, at the present scale,
    /// over $\mu$.
    pub rate_change: f64,
    /// CCC $= \mu^2/\nu$: what is gained over no clipping. The interval holds for all
    /// candidates at once, so that having chosen the best does not spoil it. Where a few stretches
    /// of steps carry more than half of $\ln$ CCC, it is that of the others.
    pub ccc: Interval,
    /// The same over the threshold in force, at the present scale. Without an upper end where no single
    /// sample passes the threshold in force: the estimate is then the least that it can be.
    pub gain: Interval,
    /// Where $\mu$ comes from.
    pub evidence: Evidence,
    /// What the tail means for CCC; `None` where it has too few norms to tell.
    pub second_moment: Option<SecondMoment>,
}

/// Where $\mu$ comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Evidence {
    /// From norms, which cannot see whether large gradients carry more signal.
    Norms,
    /// From inner products with an independent mean gradient.
    Direct,
}

/// Why nothing should be changed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Too few steps to have intervals.
    TooFew {
        /// Steps counted.
        seen: u64,
        /// Steps needed.
        needed: u64,
    },
    /// The law of the norms changed among the steps that are remembered: there is no one threshold
    /// for all of them.
    Drift(Drift),
    /// The best candidate's interval reaches down to no gain.
    NoGain(Choice),
    /// The best candidate gains something by the norms, but less than norms alone can show.
    NormsAlone {
        /// The best candidate.
        best: Choice,
        /// The gain that would be evidence.
        margin: f64,
    },
    /// The best candidate's interval reaches down to what is had with the threshold in force, or, from
    /// norms alone, to less than the margin over it.
    NoBetter(Choice),
    /// The gain rests on one stretch of the steps, or on very few, such as a single spike: without
    /// them it is not shown.
    OneStretch {
        /// The best candidate.
        best: Choice,
        /// A threshold against spikes, as a multiple of the scale: at most one step of a thousand is
        /// above it.
        guard: f64,
    },
    /// Neighbouring norms have more than half of their variance in common: the gain is that of slow
    /// swings, which are not the noise that clipping takes away. With a correlation $\rho$, noise is
    /// given $1 - \sqrt\rho$ of $\ln$ CCC, and that is not enough by itself.
    Swings {
        /// The best candidate.
        best: Choice,
        /// The [correlation](Drift::correlation) from one step to the next.
        correlation: f64,
    },
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Advice::Clip(choice) => {
                write!(
                    f,
                    "clip at {choice}; multiply the learning rate by {:.3}",
                    choice.rate_change
                )?;
                match choice.second_moment {
                    Some(SecondMoment::MayNotExist) => f.write_str(
                        "; the tail is so heavy that E G^2 may be infinite: the gain is that on the \
                         norms seen, the true one is larger",
                    ),
                    Some(SecondMoment::SlowIntervals) => f.write_str(
                        "; the tail is so heavy that the interval of the gain is rough",
                    ),
                    _ => Ok(()),
                }
            }
            Advice::Loosen(choice) => write!(
                f,
                "loosen clipping: the threshold in force costs more descent than it saves variance \
                 (gain without it {}). Clip at {}, where {:.2} % of steps are caught, or not at \
                 all, and multiply the learning rate by {:.3}",
                Shown(&choice.gain),
                short(choice.threshold),
                100.0 * choice.clip_fraction,
                choice.rate_change,
            ),
            Advice::Stay(reason) => write!(f, "change nothing: {reason}"),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({:.3} times the scale), which catches {:.1} % of steps, keeps {:.1} % of the \
             descent and has CCC {}",
            short(self.threshold),
            self.multiple,
            100.0 * self.clip_fraction,
            100.0 * self.mu,
            Shown(&self.ccc),
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::TooFew { seen, needed } => {
                write!(f, "{seen} steps are too few to tell, {needed} are needed")
            }
            Reason::Drift(drift) => write!(
                f,
                "the law of the norms changed on the way (p = {:.1e}), so that no one threshold \
                 suits all of these steps; a shorter window may be steady",
                drift.p_value
            ),
            Reason::NoGain(best) => {
                write!(f, "no threshold is shown to gain anything; the best is {best}")
            }
            Reason::NormsAlone { best, margin } => write!(
                f,
                "norms alone are no evidence for a gain below {:.0} %, because they cannot see that \
                 large gradients may carry more signal; the best is {best}",
                100.0 * margin
            ),
            Reason::NoBetter(best) => write!(
                f,
                "the threshold in force is as good as any as far as can be told; the best is {best}"
            ),
            Reason::OneStretch { best, guard } => write!(
                f,
                "a single stretch of steps, or very few, carry the gain: without them none is shown, \
                 and how often such spikes come is not known. A guard at {} ({guard:.3} times the \
                 scale), at the same learning rate, is reasonable; the best by all steps is {best}",
                short(guard * best.threshold / best.multiple),
            ),
            Reason::Swings { best, correlation } => write!(
                f,
                "neighbouring norms are alike (correlation {correlation:.2}), so that more than half \
                 of what varies is a slow swing and no noise that clipping takes away; a scale of \
                 shorter memory may follow it. The best is {best}",
            ),
        }
    }
}

/// A number with its interval.
struct Shown<'a>(&'a Interval);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Interval { value, low, high } = self.0;
        match high {
            // A spike of 1e300 would print as three hundred digits.
            high if *high < 1e5 => write!(f, "{value:.3} ({low:.3} to {high:.3})"),
            _ => write!(f, "{value:.2e} ({low:.2e} to {high:.2e})"),
        }
    }
}
