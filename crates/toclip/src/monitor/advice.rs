//! The advice, its reasons, and both as text.

use super::drift::Drift;
use super::estimates::{Interval, SecondMoment};
use crate::numbers::short;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Advice on the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MonitorAdvice {
    /// Clip there: it measurably beats both no clipping and the present threshold.
    Clip(ThresholdChoice),
    /// The present threshold costs more than it saves. Clip there, where only rare spikes are
    /// clipped, or not at all.
    Loosen(ThresholdChoice),
    /// Change nothing: there is not enough evidence.
    Stay(Reason),
}

impl MonitorAdvice {
    /// The advised threshold, or the best candidate; `None` if there is too little to compare them.
    pub fn choice(&self) -> Option<&ThresholdChoice> {
        match self {
            MonitorAdvice::Clip(choice) | MonitorAdvice::Loosen(choice) => Some(choice),
            MonitorAdvice::Stay(
                Reason::NoGain(best)
                | Reason::NoBetter(best)
                | Reason::NormsAlone { best, .. }
                | Reason::OneStretch { best, .. }
                | Reason::Swings { best, .. },
            ) => Some(best),
            MonitorAdvice::Stay(Reason::TooFew { .. } | Reason::Drift(_)) => None,
        }
    }
}

/// A threshold and its expected effect.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ThresholdChoice {
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
    /// $1/\mu$: the factor for the learning rate that was tuned without clipping.
    pub rate_factor: f64,
    /// The factor for the present learning rate: $\mu$ of the present threshold, at the present
    /// scale, over $\mu$.
    pub rate_change: f64,
    /// CCC $= \mu^2/\nu$: the gain over no clipping. The interval holds for all candidates at
    /// once, so it stays valid after choosing the best of them. Where a few stretches of steps
    /// contribute more than half of $\ln$ CCC, it is computed without them.
    pub ccc: Interval,
    /// The same over the present threshold, at the present scale. The upper end is infinite where
    /// the present threshold clips every single sample: the estimate is then a lower bound.
    pub gain: Interval,
    /// Where $\mu$ comes from.
    pub evidence: Evidence,
    /// Whether the tail allows CCC to be estimated; `None` where it has too few norms to tell.
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

/// Why to change nothing.
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
    /// The distribution of the norms changed among the steps that are remembered: there is no one
    /// threshold for all of them.
    Drift(Drift),
    /// The best candidate's interval includes no gain.
    NoGain(ThresholdChoice),
    /// The norms show a gain of the best candidate, but less than norms alone can prove.
    NormsAlone {
        /// The best candidate.
        best: ThresholdChoice,
        /// The smallest gain that norms alone can prove.
        margin: f64,
    },
    /// The best candidate's interval includes no gain over the present threshold or, from norms
    /// alone, less than the margin over it.
    NoBetter(ThresholdChoice),
    /// The gain comes from one stretch of steps, or very few, such as a single spike: without them
    /// there is no measurable gain.
    OneStretch {
        /// The best candidate.
        best: ThresholdChoice,
        /// A threshold against spikes, as a multiple of the scale: at most one step of a thousand
        /// is above it.
        guard: f64,
    },
    /// Neighbouring norms are correlated by more than one half: the gain comes from slow swings,
    /// not from noise that clipping removes. With a correlation $\rho$, the noise is credited with
    /// $1 - \sqrt\rho$ of $\ln$ CCC, which is not enough by itself.
    Swings {
        /// The best candidate.
        best: ThresholdChoice,
        /// The [correlation](Drift::correlation) from one step to the next.
        correlation: f64,
    },
}

impl fmt::Display for MonitorAdvice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MonitorAdvice::Clip(choice) => {
                write!(
                    f,
                    "clip at {choice}; multiply the learning rate by {:.3}",
                    choice.rate_change
                )?;
                match choice.second_moment {
                    Some(SecondMoment::MayNotExist) => f.write_str(
                        "; the tail is so heavy that E G^2 may be infinite: the gain was measured on \
                         these norms, and the true one is larger",
                    ),
                    Some(SecondMoment::SlowIntervals) => f.write_str(
                        "; the tail is so heavy that the interval of the gain is only approximate",
                    ),
                    _ => Ok(()),
                }
            }
            MonitorAdvice::Loosen(choice) => write!(
                f,
                "loosen clipping: the present threshold costs more descent than it saves variance \
                 (gain without it {}). Clip at {}, which clips {:.2}% of steps, or not at all, and \
                 multiply the learning rate by {:.3}",
                Shown(&choice.gain),
                short(choice.threshold),
                100.0 * choice.clip_fraction,
                choice.rate_change,
            ),
            MonitorAdvice::Stay(reason) => write!(f, "change nothing: {reason}"),
        }
    }
}

impl fmt::Display for ThresholdChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({:.3} times the scale), which clips {:.1}% of steps, keeps {:.1}% of the descent \
             and has CCC {}",
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
                write!(f, "{seen} steps are too few; at least {needed} are needed")
            }
            Reason::Drift(drift) => write!(
                f,
                "the gradient-norm distribution changed during these steps (p = {:.1e}), so no \
                 single threshold suits all of them; try a shorter window",
                drift.p_value
            ),
            Reason::NoGain(best) => {
                write!(f, "no threshold shows a gain; the best is {best}")
            }
            Reason::NormsAlone { best, margin } => write!(
                f,
                "norms alone cannot show a gain below {:.0}%, because large gradients may carry more \
                 signal; the best is {best}",
                100.0 * margin
            ),
            Reason::NoBetter(best) => write!(
                f,
                "no threshold is measurably better than the present one; the best is {best}"
            ),
            Reason::OneStretch { best, guard } => write!(
                f,
                "the gain comes from one stretch of steps, or very few: without them there is none, \
                 and nobody knows how often such spikes come. A guard at {} ({guard:.3} times the \
                 scale), at the same learning rate, is reasonable; the best over all steps is {best}",
                short(guard * best.threshold / best.multiple),
            ),
            Reason::Swings { best, correlation } => write!(
                f,
                "neighbouring norms are correlated ({correlation:.2}): more than half of their \
                 variation is a slow swing, not noise that clipping removes. A scale with a shorter \
                 memory may follow it. The best is {best}",
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
