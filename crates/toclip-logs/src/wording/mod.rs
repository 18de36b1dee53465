//! Findings and advice in words. No sentence about them is written elsewhere.

mod code;
mod findings;
mod recommendation;

use serde::Serialize;
use toclip::monitor::{Estimates, Interval, SecondMoment};
use toclip::{interval_at, percent, percent_interval_at, short};

use crate::{Advice, CurrentThreshold, NormDistribution, Spikes, ThresholdEffect, ThresholdOrigin};
pub use code::CodeLine;
pub(crate) use recommendation::recommendation;

/// An answer: a heading and paragraphs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The question.
    pub title: &'static str,
    /// Paragraphs.
    pub text: Vec<String>,
}

/// A recommendation in words.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Wording {
    /// What to do, in a sentence.
    pub headline: String,
    /// Why.
    pub reason: String,
    /// What to expect.
    pub effect: String,
    /// The lines of code to change.
    pub code: Vec<CodeLine>,
}

impl Advice {
    /// The four answers, in the order in which they are asked.
    pub fn answers(&self) -> Vec<Answer> {
        let Wording { headline, reason, effect, .. } = self.recommendation.wording.clone();
        vec![
            Answer { title: "What the threshold in force does", text: self.current_in_words() },
            Answer { title: "What the norms look like", text: self.norms_in_words() },
            Answer { title: "What the criteria are", text: self.criteria_in_words() },
            Answer { title: "What to do", text: vec![headline, reason, effect] },
        ]
    }

    /// An estimate with its interval at the confidence of this advice.
    pub fn interval(&self, i: &Interval) -> String {
        interval_at(i.value, i.low, i.high, self.confidence)
    }

    fn current_in_words(&self) -> Vec<String> {
        let Some(now) = &self.current else {
            let mut text = String::from("The threshold in force is neither given nor in the log.");
            if !self.comparison.is_empty() {
                text +=
                    " The comparison below shows what a fixed threshold of 1.0 would have done.";
            }
            return vec![text];
        };
        if now.threshold.is_infinite() {
            return vec!["Nothing is clipped.".into()];
        }
        let origin = match now.origin {
            ThresholdOrigin::Given => "as given",
            ThresholdOrigin::Log => "from the log",
            ThresholdOrigin::PileUp => "where the norms pile up",
            ThresholdOrigin::Default => "the trainer's default; the log has no other",
        };
        let percent = |i: &Interval| percent_interval_at(i.value, i.low, i.high, self.confidence);
        let (c, fires) = (short(now.threshold), percent(&now.fires));
        let lately = now.fires_lately.map_or(String::new(), |fires| {
            format!(", and {} in the last quarter", percent(&fires))
        });
        let mut text =
            vec![format!("Threshold {c} ({origin}): it clips {fires} of the steps{lately}.")];
        if let (Some(step), Some(mu)) = (&now.step_factor, &now.mu) {
            let descent = match (step == mu, self.components) {
                (true, None) => "to the same share if batches are large".into(),
                (true, Some(_)) => "to the same share".into(),
                (false, _) => format!("to {}", percent(mu)),
            };
            let step = percent(step);
            text.push(format!("It shrinks the mean step to {step} and the descent {descent}."));
        }
        text.push(effect(now));
        text
    }

    fn norms_in_words(&self) -> Vec<String> {
        let Some(norms) = &self.distribution else {
            return vec![
                "Norms above the threshold were not recorded, so the distribution is unknown."
                    .into(),
            ];
        };
        let [min, _, p10, median, p90, p99, max] = norms.quantiles.map(short);
        let mut text = vec![format!(
            "{} norms from {min} to {max}, median {median}; 80% are between {p10} and {p90}, 1% are \
             above {p99}.",
            self.points
        )];
        text.push(self.tail(norms));
        text.extend(norms.drift.map(|drift| {
            let scale = match drift.scale_change {
                c if (0.8..1.25).contains(&c) => "Their scale hardly changed".into(),
                c if c < 1.0 => format!("Their scale fell by a factor of {}", short(1.0 / c)),
                c => format!("Their scale grew by a factor of {}", short(c)),
            };
            let distribution = match drift.found() {
                true => format!(
                    "Relative to it the distribution changed (p = {:.1e}), so the criteria are \
                     estimated from step {} on, from {} norms",
                    drift.p_value,
                    short(self.steady_from),
                    self.steady_points
                ),
                false => "Relative to it no change of the distribution was found".into(),
            };
            format!("{scale} from the first quarter to the last. {distribution}.")
        }));
        text.push(spikes(&norms.spikes));
        text
    }

    fn criteria_in_words(&self) -> Vec<String> {
        let seen: Vec<&Estimates> = self.curve.iter().filter(|e| e.exceedances >= 10).collect();
        // Where nearly all steps are clipped CCC is flat: of equals the largest threshold is named.
        let most = seen.iter().map(|e| e.ccc.value).fold(f64::NEG_INFINITY, f64::max);
        let best = seen.iter().rev().find(|e| e.ccc.value >= 0.99 * most);
        let (Some(best), Some(smallest)) = (best, seen.first()) else {
            let why = match self.distribution {
                Some(_) => "There are too few norms on both sides of any threshold.",
                None => "The criteria need the norms above the threshold.",
            };
            return vec![why.into()];
        };
        let batch = match self.components {
            Some(n) => format!("for {} samples times outputs per norm", short(n)),
            None => "for very large batches, because the batch size is unknown".into(),
        };
        let (c, smallest_c) = (short(best.threshold), short(smallest.threshold));
        let (csc, largest) = (self.interval(&best.csc), self.interval(&smallest.csc));
        vec![
            format!(
                "CCC = μ²/ν is above 1 where clipping beats every learning rate without it. Its best \
                 value is {} at {c}, {batch}.",
                self.interval(&best.ccc)
            ),
            format!(
                "CSC = μ/ν is the factor by which stable learning rates grow: {csc} there, and up to \
                 {largest} at {smallest_c}."
            ),
            format!(
                "Thresholds are for the current scale of the norms, {}.",
                self.scale.map_or("which is unknown".into(), short)
            ),
        ]
    }

    fn tail(&self, norms: &NormDistribution) -> String {
        let Some(tail) = &norms.tail else {
            return "Too few norms for a tail index: 30 of the largest 5% are needed.".into();
        };
        let meaning = match norms.second_moment {
            Some(SecondMoment::MayNotExist) => "so heavy that the second moment may not exist",
            Some(SecondMoment::SlowIntervals) => "heavy, so the intervals below are rough",
            _ => "light",
        };
        let index = self.interval(&tail.index);
        format!("Tail index {index} from the {} largest norms: {meaning}.", tail.exceedances)
    }
}

fn spikes(spikes: &Spikes) -> String {
    let largest = short(spikes.largest);
    if spikes.count == 0 {
        return format!("No spikes: the largest norm is {largest} times the running scale.");
    }
    format!(
        "{} ({} of the steps) above four times the running scale, the largest {largest} times at step \
         {}; {} directly after another, {} expected by chance.",
        plural(spikes.count as u64, "spike", "spikes"),
        percent(spikes.share),
        short(spikes.largest_at),
        spikes.in_a_row,
        short((10.0 * spikes.by_chance).round() / 10.0)
    )
}

fn effect(now: &CurrentThreshold) -> String {
    use ThresholdEffect::{Both, Guard, HiddenRate, Idle};
    let whole = match now.effect {
        Idle => "It never clipped a step.",
        Guard => "It is a guard against spikes: nearly all steps pass unchanged.",
        Both => "It is more than a guard: it shortens a substantial share of the steps.",
        HiddenRate => {
            "It acts as a hidden learning rate: most steps have the length that it allows. (With \
             Adam-like optimizers a constant factor cancels; large gradients count less.)"
        }
    };
    let lately = now.fires_lately.map(|share| ThresholdEffect::of(share.value));
    let lately = match lately.filter(|lately| *lately != now.effect) {
        None => "",
        Some(Idle) => " In the last quarter it did nothing.",
        Some(Guard) => " In the last quarter it was only a guard.",
        Some(Both) => " In the last quarter it shortened a substantial share of the steps.",
        Some(HiddenRate) => " In the last quarter it set the length of most steps.",
    };
    format!("{whole}{lately}")
}

/// A count with its noun.
fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
