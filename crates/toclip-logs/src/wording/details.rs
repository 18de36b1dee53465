//! The estimates in words, for those who want to know more.

use serde::Serialize;
use toclip::monitor::Interval;
use toclip_words::{interval_at, percent, percent_interval_at, short};

use super::{about, grouped, plural};
use crate::{Advice, CurrentThreshold, LayerSummary, Spike, ThresholdEffect, ThresholdOrigin};

/// A heading and paragraphs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdviceSection {
    /// The heading.
    pub title: &'static str,
    /// Paragraphs.
    pub text: Vec<String>,
}

impl Advice {
    /// The estimates in words.
    pub fn details(&self) -> Vec<AdviceSection> {
        let sections = [
            ("The current threshold", self.current_in_words()),
            ("The spikes", self.spikes_in_words()),
            ("The norms", self.norms_in_words()),
            ("The layers", self.layers_in_words()),
            ("The criteria of the theory, for SGD", self.criteria_in_words()),
        ];
        sections
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(title, text)| AdviceSection { title, text })
            .collect()
    }

    /// An estimate with its interval at the confidence of this advice.
    pub fn interval(&self, i: &Interval) -> String {
        interval_at(i.value, i.low, i.high, self.analysis.confidence)
    }

    fn current_in_words(&self) -> Vec<String> {
        let Some(now) = &self.analysis.current else {
            return vec!["The threshold is neither given nor in the log.".into()];
        };
        if now.threshold.is_infinite() {
            return vec!["The run does not clip.".into()];
        }
        let origin = match now.origin {
            ThresholdOrigin::Given => "as given",
            ThresholdOrigin::Log => "from the log",
            ThresholdOrigin::PileUp => "where the norms pile up",
            ThresholdOrigin::Default => "the trainer's default; the log has no other",
        };
        let confidence = self.analysis.confidence;
        let percent = |i: &Interval| percent_interval_at(i.value, i.low, i.high, confidence);
        let (c, fires) = (short(now.threshold), percent(&now.fires));
        let lately = now.fires_lately.map_or(String::new(), |fires| {
            format!(", and {} in the last quarter", percent(&fires))
        });
        let mut text =
            vec![format!("Threshold {c} ({origin}): it clips {fires} of the steps{lately}.")];
        if let Some(step) = &now.step_factor {
            text.push(format!("It shortens the mean step to {}.", percent(step)));
        }
        text.push(effect(now).into());
        text
    }

    fn spikes_in_words(&self) -> Vec<String> {
        let threshold = self.recommendation.threshold;
        self.spikes().iter().take(20).map(|event| spike(event, threshold)).collect()
    }

    fn norms_in_words(&self) -> Vec<String> {
        let Some(norms) = &self.analysis.distribution else {
            return vec![
                "Norms above the threshold were not recorded, so their distribution is unknown."
                    .into(),
            ];
        };
        let [min, _, p10, median, p90, p99, max] = norms.quantiles.map(about);
        let mut text = vec![format!(
            "{} from {min} to {max}, median {median}; 80% are between {p10} and {p90}, 1% are above \
             {p99}. The first {} are the warm-up, which the estimates leave out.",
            plural(self.analysis.points as u64, "norm", "norms"),
            grouped(self.analysis.warm_up as f64)
        )];
        text.push(match &norms.tail {
            None => "No tail index: it needs at least 30 norms among the largest 5%.".into(),
            Some(tail) => {
                let Interval { low, high, .. } = tail.index;
                let meaning = match (low, high) {
                    (low, _) if low > 4.0 => "light",
                    (_, high) if high < 2.0 => "so heavy that the second moment does not exist",
                    (_, high) if high < 4.0 => "heavy",
                    _ => "the interval is too wide to call it heavy or light",
                };
                let index = self.interval(&tail.index);
                format!(
                    "Tail index {index} from the {} largest norms: {meaning}.",
                    tail.exceedances
                )
            }
        });
        if let Some(drift) = norms.drift.filter(|drift| drift.found()) {
            text.push(format!(
                "Relative to its running scale the gradient-norm distribution changed at step {} (p = \
                 {:.1e}); the criteria below use the {} after it.",
                grouped(self.analysis.steady_from),
                drift.p_value,
                plural(self.analysis.steady_points as u64, "norm", "norms")
            ));
        }
        text
    }

    fn layers_in_words(&self) -> Vec<String> {
        let layer = |layer: &LayerSummary| {
            let alone = match layer.fires_alone {
                0 => String::new(),
                times => {
                    format!("; {} that the total lacks", plural(times as u64, "spike", "spikes"))
                }
            };
            format!(
                "{}: {} of the squared norm, median {}, guard {}{alone}",
                layer.name,
                percent(layer.share),
                about(layer.median),
                about(layer.guard)
            )
        };
        let mut text: Vec<String> = self.analysis.layers.iter().take(12).map(layer).collect();
        let more = self.analysis.layers.len().saturating_sub(12);
        text.extend((more > 0).then(|| format!("and {more} more")));
        text
    }

    fn criteria_in_words(&self) -> Vec<String> {
        if self.analysis.distribution.is_none() {
            return Vec::new();
        }
        let sample = "A sample is what the loss is averaged over: for a language model every predicted \
                      token, so the batch is sequences times tokens per sequence.";
        let Some(n) = self.analysis.components else {
            return vec![format!("CSC and CCC need the batch size. {sample}")];
        };
        let Some(best) = self.analysis.best else {
            return vec!["There are too few norms, or their distribution changed.".into()];
        };
        let (c, ccc) = (short(best.threshold), self.interval(&best.ccc));
        vec![
            format!(
                "CCC = μ²/ν is above 1 where clipping, with the learning rate raised to η/μ, leaves less \
                 noise at equal progress. At the best threshold, {c}, it is {ccc}, for a batch of {}.",
                short(n)
            ),
            format!(
                "The estimate assumes that the size of a gradient says nothing about its direction. In \
                 networks this was too favourable to clipping, by 5% (batches of 128) to 13% (batches \
                 of 8). {sample}"
            ),
        ]
    }
}

fn spike(spike: &Spike, threshold: Option<f64>) -> String {
    let steps = match spike.first == spike.last {
        true => format!("Step {}", grouped(spike.first)),
        false => format!("Steps {} to {}", grouped(spike.first), grouped(spike.last)),
    };
    let loss = match (spike.loss_before, spike.loss_peak) {
        (Some(before), Some(peak)) if peak <= before => "; the loss did not rise".into(),
        (Some(before), Some(peak)) => {
            let back = match spike.recovered_after {
                Some(after) => format!("recovered after {}", plural(after as u64, "step", "steps")),
                None => "not recovered by the end".into(),
            };
            format!("; loss {} to {}, {back}", about(before), about(peak))
        }
        _ => String::new(),
    };
    let clipped = match threshold.filter(|c| *c < spike.norm) {
        Some(c) => {
            format!(
                "; a threshold of {} shortens it by a factor of {}",
                short(c),
                about(spike.norm / c)
            )
        }
        None => String::new(),
    };
    let (norm, times) = (about(spike.norm), about(spike.times_median));
    format!("{steps}: norm up to {norm}, {times} times the running median{loss}{clipped}.")
}

fn effect(now: &CurrentThreshold) -> &'static str {
    match now.effect {
        ThresholdEffect::Idle => "It never clipped a step.",
        ThresholdEffect::Guard => "It is a guard: nearly all steps pass unchanged.",
        ThresholdEffect::Both => "It is more than a guard: it shortens many steps.",
        ThresholdEffect::HiddenRate => "It sets the length of most steps, like a learning rate.",
    }
}
