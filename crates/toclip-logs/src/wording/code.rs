//! The lines to write, for the user's framework.

use std::str::FromStr;

use serde::Serialize;
use toclip_words::short;

use crate::names::by_name;
use crate::{Action, Advice, Error, Format, Log, Result};

/// A training framework.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Framework {
    /// A training loop in PyTorch.
    Pytorch,
    /// The trainer of Hugging Face transformers.
    HuggingFace,
    /// Lightning.
    Lightning,
    /// A DeepSpeed configuration.
    DeepSpeed,
    /// An Axolotl configuration.
    Axolotl,
    /// Optax, for JAX.
    Optax,
}

/// All frameworks with their names for options and for people.
const FRAMEWORKS: [(Framework, &str, &str); 6] = [
    (Framework::Pytorch, "pytorch", "PyTorch"),
    (Framework::HuggingFace, "huggingface", "Hugging Face"),
    (Framework::Lightning, "lightning", "Lightning"),
    (Framework::DeepSpeed, "deepspeed", "DeepSpeed"),
    (Framework::Axolotl, "axolotl", "Axolotl"),
    (Framework::Optax, "optax", "Optax"),
];

impl Framework {
    /// The framework that a log seems to come from; PyTorch if it does not show.
    pub fn of(log: &Log) -> Self {
        let lightning = |name: &str| name.contains("grad_2.0_norm");
        match log.summary.format {
            Format::TrainerState | Format::Printed => Framework::HuggingFace,
            Format::DeepSpeed => Framework::DeepSpeed,
            _ if log.summary.columns.iter().any(|c| lightning(&c.name)) => Framework::Lightning,
            _ => Framework::Pytorch,
        }
    }

    /// The name for people.
    pub fn name(self) -> &'static str {
        FRAMEWORKS[self as usize].2
    }
}

impl FromStr for Framework {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        by_name("framework", name, &FRAMEWORKS)
    }
}

/// Lines of code or configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodeBlock {
    /// For which framework.
    pub framework: Framework,
    /// The lines.
    pub lines: Vec<String>,
}

/// The lines that follow the recommendation; `None` if nothing should change.
pub(super) fn block(advice: &Advice, framework: Framework) -> Option<CodeBlock> {
    let r = &advice.recommendation;
    let lines = match (r.action, r.threshold) {
        (Action::FixLogging, _) if advice.analysis.distribution.is_none() => {
            log_before_clipping(advice, framework)
        }
        (Action::Remove, _) => vec![clip(framework, None)],
        (Action::Guard | Action::Clip | Action::LowerRate | Action::RollBack, Some(c)) => {
            vec![clip(framework, Some(&short(c)))]
        }
        _ => return None,
    };
    Some(CodeBlock { framework, lines })
}

/// Clipping at a threshold, or none.
fn clip(framework: Framework, threshold: Option<&str>) -> String {
    // Zero turns clipping off where the framework has a setting for it.
    let setting = threshold.unwrap_or("0.0");
    match (framework, threshold) {
        (Framework::Pytorch, None) => "# remove the call of clip_grad_norm_".into(),
        (Framework::Pytorch, Some(c)) => format!(
            "torch.nn.utils.clip_grad_norm_(model.parameters(), {c})  # before optimizer.step()"
        ),
        (Framework::HuggingFace, _) => format!("TrainingArguments(max_grad_norm={setting}, ...)"),
        (Framework::Lightning, None) => "Trainer(gradient_clip_val=None, ...)".into(),
        (Framework::Lightning, Some(c)) => {
            format!("Trainer(gradient_clip_val={c}, gradient_clip_algorithm=\"norm\", ...)")
        }
        (Framework::DeepSpeed, _) => format!("\"gradient_clipping\": {setting}"),
        (Framework::Axolotl, _) => format!("max_grad_norm: {setting}"),
        (Framework::Optax, None) => "# remove optax.clip_by_global_norm from the chain".into(),
        (Framework::Optax, Some(c)) => {
            format!("optimizer = optax.chain(optax.clip_by_global_norm({c}), optimizer)")
        }
    }
}

/// How to log norms before clipping.
fn log_before_clipping(advice: &Advice, framework: Framework) -> Vec<String> {
    let current = advice.analysis.current.as_ref();
    let c = current.map_or_else(|| "max_norm".into(), |now| short(now.threshold));
    let lines: &[&str] = match framework {
        Framework::HuggingFace | Framework::Axolotl => {
            &["TrainingArguments(logging_steps=1, ...)  # logs the norm before clipping"]
        }
        Framework::Lightning => &[
            "def on_before_optimizer_step(self, optimizer):  # in the LightningModule",
            "    self.log_dict(lightning.pytorch.utilities.grad_norm(self, norm_type=2))",
        ],
        Framework::DeepSpeed => {
            &["log({\"grad_norm\": engine.get_global_grad_norm()})  # after engine.step()"]
        }
        Framework::Optax => {
            &["log({\"grad_norm\": optax.global_norm(grads)})  # before optimizer.update"]
        }
        Framework::Pytorch => {
            return vec![
                format!("norm = torch.nn.utils.clip_grad_norm_(model.parameters(), {c})"),
                "log({\"grad_norm\": norm.item()})  # it returns the norm before clipping".into(),
            ];
        }
    };
    lines.iter().map(|line| (*line).to_owned()).collect()
}
