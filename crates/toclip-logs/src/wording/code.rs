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

const PYTORCH: &str = "torch.nn.utils.clip_grad_norm_";

/// How to log norms before clipping.
pub(super) fn log_before_clipping(threshold: f64) -> Vec<CodeLine> {
    let c = short(threshold);
    let torch = format!("norm = {PYTORCH}(model.parameters(), max_norm={c})");
    let log = "log({\"grad_norm\": norm.item()})  # returns the norm before clipping";
    let hook = "def on_before_optimizer_step(self, optimizer):";
    vec![
        line("PyTorch", format!("{torch}; {log}")),
        line(
            "Hugging Face",
            "TrainingArguments(logging_steps=1, …)  # logs the norm before clipping",
        ),
        line("Lightning", format!("{hook} self.log_dict(grad_norm(self, norm_type=2))")),
        line("Optax", "log({\"grad_norm\": optax.global_norm(grads)})  # before optimizer.update"),
    ]
}

/// How to clip as recommended; the learning rate continues from the last one of the log.
pub(super) fn clip(advice: &Advice, choice: &Choice) -> Vec<CodeLine> {
    let (c, k) = (short(choice.threshold), short(choice.multiple));
    let s = short(advice.scale.unwrap_or(f64::NAN));
    // A schedule sets the rate, so the factor is what matters, not the number.
    let factor =
        format!("  # and from now on {} times the scheduled lr", short(choice.rate_change));
    let rate = match (advice.optimizer, advice.learning_rate) {
        (Some(Optimizer::Sgd), Some(last)) => {
            format!("{factor}: {:.3e} after the last {last:.3e}", last * choice.rate_change)
        }
        (Some(Optimizer::Sgd), None) => factor,
        _ => String::new(),
    };
    let with_rate = |framework, text: String| line(framework, text + &rate);
    if let Some(memory) = advice.recommendation.scale_memory {
        let finite = "0 < norm < float(\"inf\")";
        let hook = "def configure_gradient_clipping(self, optimizer, *args, **kwargs):";
        // On one line, because the indents of a body would be lost in a table.
        let lightning = format!(
            "{hook} norm = {PYTORCH}(self.parameters(), {k} * self.scale).item(); self.scale *= (norm \
             / self.scale) ** (1 / {memory}) if {finite} else 1.0  # start with self.scale = {s}"
        );
        let update = format!("if {finite}: scale *= (norm / scale) ** (1 / {memory})");
        return vec![
            with_rate(
                "PyTorch",
                format!("norm = {PYTORCH}(model.parameters(), {k} * scale).item()"),
            ),
            line("", format!("{update}  # start with scale = {s}")),
            with_rate("Lightning", lightning),
            line("others", format!("{c} while the scale of the norms is near {s}, then ask again")),
        ];
    }
    let optimizer = match advice.optimizer {
        Some(Optimizer::Sgd) => "optax.sgd(schedule)",
        Some(Optimizer::Adam) => "optax.adamw(schedule)",
        None => "optimizer",
    };
    let lightning = format!("Trainer(gradient_clip_val={c}, gradient_clip_algorithm=\"norm\", …)");
    vec![
        with_rate("PyTorch", format!("{PYTORCH}(model.parameters(), max_norm={c})")),
        with_rate("Hugging Face", format!("TrainingArguments(max_grad_norm={c}, …)")),
        with_rate("Lightning", lightning),
        with_rate("Optax", format!("optax.chain(optax.clip_by_global_norm({c}), {optimizer})")),
    ]
}
