//! The lines of code to change.

use serde::Serialize;
use toclip::monitor::Choice;
use toclip::short;

use crate::{Advice, Optimizer};

/// One line of code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodeLine {
    /// For which framework; empty for the one of the line before.
    pub framework: &'static str,
    /// The line.
    pub line: String,
}

fn line(framework: &'static str, line: impl Into<String>) -> CodeLine {
    CodeLine { framework, line: line.into() }
}

/// How to log norms before clipping.
pub(super) fn log_before_clipping(threshold: f64) -> Vec<CodeLine> {
    let c = short(threshold);
    vec![
        line(
            "PyTorch",
            format!(
                "norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm={c}); \
                 log({{\"grad_norm\": norm.item()}})  # returns the norm before clipping"
            ),
        ),
        line(
            "Hugging Face",
            "TrainingArguments(logging_steps=1, …)  # its grad_norm is the norm before clipping",
        ),
        line(
            "Lightning",
            "def on_before_optimizer_step(self, optimizer): \
             self.log_dict(grad_norm(self, norm_type=2))",
        ),
        line("Optax", "log({\"grad_norm\": optax.global_norm(grads)})  # before optimizer.update"),
    ]
}

/// How to clip as recommended; the learning rate continues from the last one of the log.
pub(super) fn clip(advice: &Advice, choice: &Choice) -> Vec<CodeLine> {
    let (c, k) = (short(choice.threshold), short(choice.multiple));
    let s = short(advice.scale.unwrap_or(f64::NAN));
    let change = short(choice.rate_change);
    // A schedule sets the rate, so the factor is what matters, not the number.
    let rate = match (advice.optimizer, advice.learning_rate) {
        (Some(Optimizer::Sgd), Some(rate)) => format!(
            "  # and from now on {change} times the scheduled lr: {:.3e} after the last {rate:.3e}",
            rate * choice.rate_change
        ),
        (Some(Optimizer::Sgd), None) => {
            format!("  # and from now on {change} times the scheduled lr")
        }
        _ => String::new(),
    };
    let with_rate = |framework, text: String| line(framework, text + &rate);
    if let Some(memory) = advice.recommendation.scale_memory {
        return vec![
            with_rate(
                "PyTorch",
                format!(
                    "norm = torch.nn.utils.clip_grad_norm_(model.parameters(), {k} * scale).item()"
                ),
            ),
            line(
                "",
                format!(
                    "if 0 < norm < float(\"inf\"): scale *= (norm / scale) ** (1 / {memory})  # start \
                     with scale = {s}"
                ),
            ),
            // On one line, because the indents of a body would be lost in a table.
            with_rate(
                "Lightning",
                format!(
                    "def configure_gradient_clipping(self, optimizer, *args, **kwargs): norm = \
                     torch.nn.utils.clip_grad_norm_(self.parameters(), {k} * self.scale).item(); \
                     self.scale *= (norm / self.scale) ** (1 / {memory}) if 0 < norm < float(\"inf\") \
                     else 1.0  # start with self.scale = {s}"
                ),
            ),
            line("others", format!("{c} while the scale of the norms is near {s}, then ask again")),
        ];
    }
    let optimizer = match advice.optimizer {
        Some(Optimizer::Sgd) => "optax.sgd(schedule)",
        Some(Optimizer::Adam) => "optax.adamw(schedule)",
        None => "optimizer",
    };
    vec![
        with_rate(
            "PyTorch",
            format!("torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm={c})"),
        ),
        with_rate("Hugging Face", format!("TrainingArguments(max_grad_norm={c}, …)")),
        with_rate(
            "Lightning",
            format!("Trainer(gradient_clip_val={c}, gradient_clip_algorithm=\"norm\", …)"),
        ),
        with_rate("Optax", format!("optax.chain(optax.clip_by_global_norm({c}), {optimizer})")),
    ]
}
