//! The answers in words, for terminals and pages.

use serde::Serialize;
use toclip::monitor::{Estimates, Interval, SecondMoment};

use super::{Advised, Current, Effect, Law, Origin};
use crate::words::short;

/// One answer: a heading and sentences.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The question.
    pub title: &'static str,
    /// Paragraphs.
    pub text: Vec<String>,
}

impl Advised {
    /// The four answers, in the order in which they are asked.
    pub fn answers(&self) -> Vec<Answer> {
        vec![
            Answer { title: "What the present setting does", text: self.say_current() },
            Answer { title: "What the norms look like", text: self.say_law() },
            Answer { title: "Where the criteria stand", text: self.say_criteria() },
            Answer { title: "What to do", text: self.say_recommendation() },
        ]
    }

    fn say_current(&self) -> Vec<String> {
        let Some(now) = &self.current else {
            let below = match self.comparison.is_empty() {
                true => "",
                false => " The comparison below shows what fixed 1.0 would have done.",
            };
            return vec![format!(
                "Neither you nor the log says at which threshold gradients were clipped (--clip).{below}"
            )];
        };
        if now.threshold.is_infinite() {
            return vec!["Nothing is clipped.".into()];
        }
        let from = match now.origin {
            Origin::Given => "as given",
            Origin::Log => "from the log",
            Origin::PileUp => "where the norms pile up",
            Origin::Default => "the trainer's default; the log does not say",
        };
        let mut text = vec![format!(
            "Threshold {} ({from}): it fires at {} of steps{}.",
            short(now.threshold),
            percent(&now.fires),
            now.fires_lately
                .map_or(String::new(), |f| format!(", {} in the last quarter", percent(&f)))
        )];
        if let (Some(step), Some(mu)) = (&now.step_factor, &now.mu) {
            let kept = match step == mu {
                true if self.components.is_none() => {
                    "and keeps as much of the descent if batches are large".into()
                }
                true => "and keeps as much of the descent".into(),
                false => format!("and keeps {} of the descent", percent(mu)),
            };
            text.push(format!("On average it shrinks a step to {}, {kept}.", percent(step)));
        } else if now.origin == Origin::PileUp {
            text.push(
                "By how much it shrinks the step cannot be seen: the norms were logged after \
                 clipping."
                    .into(),
            );
        }
        text.push(effect(now));
        text
    }

    fn say_law(&self) -> Vec<String> {
        let Some(law) = &self.law else {
            return vec![
                "Beyond the threshold nothing can be seen, so there is no law to speak of.".into(),
            ];
        };
        let [min, _, p10, median, p90, p99, max] = law.quantiles.map(short);
        let mut text = vec![format!(
            "{} norms, median {median}, from {min} to {max}; 80% between {p10} and {p90}, 1% above \
             {p99}.",
            self.points
        )];
        text.push(tail(law));
        text.extend(law.drift.map(|drift| {
            let moved = match drift.scale_change {
                c if (0.8..1.25).contains(&c) => "Their scale hardly moved".into(),
                c if c < 1.0 => format!("Their scale fell by a factor {}", short(1.0 / c)),
                c => format!("Their scale grew by a factor {}", short(c)),
            };
            let law = match drift.found() {
                true => format!(
                    "and relative to it the law changed too (p = {:.1e}): the criteria are \
                     estimated from step {} on, over {} norms",
                    drift.p_value,
                    short(self.steady_from),
                    self.steady_points
                ),
                false => "and relative to it no change of the law was found".into(),
            };
            format!("{moved} from the first quarter to the last, {law}.")
        }));
        let bursts = &law.bursts;
        text.push(match bursts.count {
            0 => format!(
                "No bursts: no norm is above four times the running scale (the largest is {} \
                 times).",
                short(bursts.largest)
            ),
            count => format!(
                "{count} {} ({:.2}%) above four times the running scale, the largest {} times \
                 at step {}; {} directly after another, where chance would give {}.",
                if count == 1 { "burst" } else { "bursts" },
                100.0 * bursts.share,
                short(bursts.largest),
                short(bursts.largest_at),
                bursts.in_a_row,
                short((10.0 * bursts.by_chance).round() / 10.0)
            ),
        });
        text
    }

    fn say_criteria(&self) -> Vec<String> {
        let seen: Vec<&Estimates> = self.curve.iter().filter(|e| e.exceedances >= 10).collect();
        // Where nearly all is clipped the criterion is flat: the loosest of equals is named.
        let most = seen.iter().map(|e| e.ccc.value).fold(f64::NEG_INFINITY, f64::max);
        let best = seen.iter().rev().find(|e| e.ccc.value >= 0.99 * most);
        let (Some(ccc), Some(csc)) = (best, seen.first()) else {
            return vec!["There are too few norms on both sides of any threshold.".into()];
        };
        let batch = match self.components {
            Some(n) => format!("for {} samples times outputs behind each norm", short(n)),
            None => "for very large batches, which flatters it: the batch size is not known \
                 (--batch-size)"
                .into(),
        };
        vec![
            format!(
                "CCC = μ²/ν, above 1 where clipping beats every rate without it: at best {} at {}; \
                 {batch}.",
                range(&ccc.ccc),
                short(ccc.threshold)
            ),
            format!(
                "CSC = μ/ν, by which larger rates stay stable: {} there; it grows as the threshold \
                 falls, to {} at {}.",
                range(&ccc.csc),
                range(&csc.csc),
                short(csc.threshold)
            ),
            format!(
                "Thresholds hold at the present scale of the norms, {}; intervals are {:.0}%.",
                self.scale.map_or("unknown".into(), short),
                100.0 * self.confidence
            ),
        ]
    }

    fn say_recommendation(&self) -> Vec<String> {
        let r = &self.recommendation;
        let mut why = r.reason.clone();
        if let Some(first) = why.get(..1) {
            let upper = first.to_uppercase();
            why.replace_range(..1, &upper);
        }
        vec![r.headline.clone(), why, r.effect.clone()]
    }
}

fn effect(now: &Current) -> String {
    let whole: String = match now.effect {
        Effect::Idle => "It never fired: it has done nothing so far.".into(),
        Effect::Guard => {
            "It is a guard against explosions: nearly all steps pass unchanged.".into()
        }
        Effect::Both => "It is between a guard and a learning rate: a good part of the steps is \
                         shortened."
            .into(),
        Effect::HiddenRate => {
            "It is a hidden learning rate: most steps have the length it allows, \
                               whatever their gradient. (With Adam-like optimizers a constant \
                               factor cancels; what remains is that large gradients count less.)"
                .into()
        }
    };
    let lately = now.fires_lately.map(|share| Effect::of(share.value));
    match lately.filter(|lately| *lately != now.effect) {
        None => whole,
        Some(Effect::Idle) => format!("{whole} In the last quarter it did nothing."),
        Some(Effect::Guard) => format!("{whole} In the last quarter it was only a guard."),
        Some(Effect::Both) => {
            format!("{whole} In the last quarter it shortened a good part of the steps.")
        }
        Some(Effect::HiddenRate) => {
            format!("{whole} In the last quarter it set most steps' length.")
        }
    }
}

fn tail(law: &Law) -> String {
    let Some(tail) = &law.tail else {
        return "Too few norms for a tail index (thirty in the upper twentieth are needed).".into();
    };
    let means = match law.second_moment {
        Some(SecondMoment::MayNotExist) => {
            "so heavy that the second moment may not exist: averages of squares are ruled by the \
             largest norms"
        }
        Some(SecondMoment::SlowIntervals) => "heavy: intervals below are rough",
        _ => "light",
    };
    format!("Tail index {} from the {} largest: {means}.", range(&tail.index), tail.exceedances)
}

fn range(i: &Interval) -> String {
    format!("{} ({} to {})", short(i.value), short(i.low), short(i.high))
}

fn percent(i: &Interval) -> String {
    let p = |x: f64| short((1000.0 * x).round() / 10.0);
    format!("{}% ({} to {})", p(i.value), p(i.low), p(i.high))
}
