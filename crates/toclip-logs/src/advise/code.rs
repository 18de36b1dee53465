//! The lines to change.

use serde::Serialize;
use toclip::monitor::Choice;

use super::optimizer::Optimizer;
use crate::Point;
use crate::words::short;

/// One line of code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodeLine {
    /// For what.
    pub framework: &'static str,
    /// The line.
    pub line: String,
}

/// A scale that moved by more than this will leave a fixed number behind.
const MOVED: f64 = 1.5;

/// What is known besides the choice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    /// The optimizer; `None` if nobody says.
    pub optimizer: Option<Optimizer>,
    /// The last learning rate of the log.
    pub rate: Option<f64>,
    /// The scale of the norms at the end.
    pub scale: f64,
    /// The largest over the least scale of the log's quarters.
    pub moved: f64,
    /// Steps from one norm to the next: the scale remembers 200 norms, code counts steps.
    pub gap: f64,
}

impl Setup {
    /// Whether a multiple of a running scale must be used instead of a number.
    pub fn follows(&self) -> bool {
        self.moved > MOVED
    }

    /// The threshold in words.
    pub fn threshold(&self, choice: &Choice) -> String {
        match self.follows() {
            true => format!(
                "{} times the running scale of the norms ({} from here on)",
                short(choice.multiple),
                short(choice.threshold)
            ),
            false => format!("{} from here on", short(choice.threshold)),
        }
    }

    /// What to do with the learning rate, in words.
    pub fn rate(&self, change: f64) -> String {
        let change = short(change);
        match self.optimizer {
            Some(Optimizer::Sgd) => format!("multiply the learning rate by {change}"),
            Some(Optimizer::Adam) => "leave the learning rate alone".into(),
            None => {
                format!(
                    "leave the learning rate alone (SGD only: multiply it by {change}; --optimizer)"
                )
            }
        }
    }

    /// The lines; the rate goes on from the last one of the log.
    pub fn lines(&self, choice: &Choice) -> Vec<CodeLine> {
        let (c, k) = (short(choice.threshold), short(choice.multiple));
        let s = short(self.scale);
        let change = short(choice.rate_change);
        // A schedule gives the rate, so the factor is what is to be written, not a number.
        let lr = match (self.optimizer, self.rate) {
            (Some(Optimizer::Sgd), Some(rate)) => format!(
                "  # and from here on {change} times the scheduled lr: {:.3e} after the last {rate:.3e}",
                rate * choice.rate_change
            ),
            (Some(Optimizer::Sgd), None) => {
                format!("  # and from here on {change} times the scheduled lr")
            }
            _ => String::new(),
        };
        let line = |framework, line: String| CodeLine { framework, line: line + &lr };
        // The running scale of the monitor: a geometric mean that remembers 200 norms.
        let memory = (200.0 * self.gap.max(1.0)).round();
        let follow =
            format!("if 0 < norm < float(\"inf\"): scale *= (norm / scale) ** (1 / {memory})");
        let optimizer = match self.optimizer {
            Some(Optimizer::Sgd) => "optax.sgd(schedule)",
            Some(Optimizer::Adam) => "optax.adamw(schedule)",
            None => "optimizer",
        };
        if self.follows() {
            return vec![
                line(
                    "PyTorch",
                    format!(
                        "norm = torch.nn.utils.clip_grad_norm_(model.parameters(), {k} * scale).item()"
                    ),
                ),
                CodeLine { framework: "", line: format!("{follow}  # begin with scale = {s}") },
                // One line, as a body has indents that a table would lose.
                line(
                    "Lightning",
                    format!(
                        "def configure_gradient_clipping(self, optimizer, *args, **kwargs): norm = \
                         torch.nn.utils.clip_grad_norm_(self.parameters(), {k} * self.scale).item(); \
                         self.scale *= (norm / self.scale) ** (1 / {memory}) if 0 < norm < float(\"inf\") \
                         else 1.0  # begin with self.scale = {s}"
                    ),
                ),
                CodeLine {
                    framework: "others",
                    line: format!("{c} while the scale of the norms stays near {s}; then again"),
                },
            ];
        }
        vec![
            line(
                "PyTorch",
                format!("torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm={c})"),
            ),
            line("Hugging Face", format!("TrainingArguments(max_grad_norm={c}, …)")),
            line(
                "Lightning",
                format!("Trainer(gradient_clip_val={c}, gradient_clip_algorithm=\"norm\", …)"),
            ),
            line("Optax", format!("optax.chain(optax.clip_by_global_norm({c}), {optimizer})")),
        ]
    }
}

/// Steps from one point to the next on average, those that thinning left out among them.
pub(super) fn gap(points: &[Point]) -> f64 {
    match points {
        [first, .., last] => (last.step - first.step) / (points.len() as f64 - 1.0),
        _ => 1.0,
    }
}

/// The largest over the least geometric mean of the four quarters of some norms.
pub(super) fn moved(norms: &[f64]) -> f64 {
    let quarter = norms.len().div_ceil(4).max(1);
    let mean = |part: &[f64]| {
        let logs: Vec<f64> = part.iter().filter(|n| **n > 0.0).map(|n| n.ln()).collect();
        (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64)
    };
    let means: Vec<f64> = norms.chunks(quarter).filter_map(mean).collect();
    let most = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = means.iter().copied().fold(f64::INFINITY, f64::min);
    (most - least).exp().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of Python with a body after its colon takes no further line into that body.
    #[test]
    fn what_follows_the_scale_in_lightning_is_one_line() {
        let setup = Setup { optimizer: None, rate: None, scale: 2.0, moved: 3.0, gap: 10.0 };
        let interval = toclip::monitor::Interval { value: 1.0, low: 1.0, high: 1.0 };
        let choice = Choice {
            threshold: 3.0,
            multiple: 1.5,
            candidate: 0,
            clip_fraction: 0.1,
            mu: 0.9,
            rate_factor: 1.1,
            rate_change: 1.1,
            ccc: interval,
            gain: interval,
            evidence: toclip::monitor::Evidence::Norms,
            second_moment: None,
        };
        let lines = setup.lines(&choice);
        let at = lines.iter().position(|line| line.framework == "Lightning").unwrap();
        let def = &lines[at].line;
        assert!(def.contains("1.5 * self.scale") && def.contains("; self.scale *= "), "{def}");
        assert!(!lines[at + 1].framework.is_empty());
        // One norm in ten steps: 200 norms are 2000 steps.
        assert!(def.contains("** (1 / 2000)") && lines[1].line.contains("** (1 / 2000)"), "{def}");
    }

    #[test]
    fn the_scale_moves_or_it_does_not() {
        assert_eq!(moved(&[2.0; 100]), 1.0);
        assert_eq!(moved(&[]), 1.0);
        let falling: Vec<f64> = (0..100).map(|i| 0.9_f64.powi(i)).collect();
        // From the middle of the first quarter to that of the last are 75 steps.
        assert!((moved(&falling) / 0.9_f64.powi(-75) - 1.0).abs() < 1e-9);
        // It rose and fell again: the ends alone would not show it.
        let bump: Vec<f64> = (0..100).map(|i| if i / 25 == 1 { 3.0 } else { 1.0 }).collect();
        assert!((moved(&bump) - 3.0).abs() < 1e-9);
    }
}
