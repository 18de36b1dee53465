//! Settings in the files beside a log: arguments of the trainer, of DeepSpeed, parameters of MLflow.

use std::fs::{File, read_dir};
use std::io::Read;
use std::path::Path;

use crate::read::RunSettings;

/// Files with settings; those of the trainer come before those of the model.
const FILES: &str = "training_args.json train_args.json args.json hparams.yaml hparams.json \
     args.yaml args.yml ds_config.json deepspeed_config.json config.yaml config.yml config.json \
     files/config.yaml README.md";
/// Larger files are not settings.
const LARGEST: u64 = 1 << 20;

/// The settings beside a log, nearest first.
pub(super) fn settings(log: &Path) -> RunSettings {
    let mut settings = RunSettings::default();
    let mut folder = log.parent();
    let mut place = String::new();
    // Above a checkpoint, and above `runs/<name>`, is the output folder of the trainer.
    for _ in 0..3 {
        let Some(current) = folder else { break };
        let current = if current.as_os_str().is_empty() { Path::new(".") } else { current };
        read_folder(current, &place, &mut settings);
        let name = current.file_name().unwrap_or_default().to_string_lossy();
        let parent = current.parent().and_then(Path::file_name).unwrap_or_default();
        if !(name.starts_with("checkpoint-") || name == "runs" || parent == "runs") {
            break;
        }
        folder = current.parent();
        place.push_str("../");
    }
    parameters(log, &mut settings);
    settings
}

fn read_folder(folder: &Path, place: &str, settings: &mut RunSettings) {
    for name in FILES.split(' ') {
        let Some(text) = text(&folder.join(name)) else { continue };
        // A read-me file has settings only if it is the model card of the Hugging Face trainer.
        if name == "README.md" && !text.contains("Training hyperparameters") {
            continue;
        }
        let place = format!("{place}{name}");
        if !name.ends_with(".json") {
            yaml(&text, &place, settings);
        } else if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
            // In DeepSpeed's own configuration, the batch size is that of all workers.
            match value.get("train_batch_size") {
                Some(size) if name.contains("ds_") || name.contains("deepspeed") => {
                    settings.put_json("global_batch_size", size, &place);
                }
                _ => {}
            }
            settings.put_json("", &value, &place);
        }
    }
}

/// The parameters of the MLflow run that has this metric.
fn parameters(metric: &Path, settings: &mut RunSettings) {
    let run = metric.ancestors().skip(1).take(6).find(|path| path.join("meta.yaml").is_file());
    let Some(Ok(entries)) = run.map(|run| read_dir(run.join("params"))) else { return };
    for path in entries.flatten().map(|entry| entry.path()).take(10_000) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(value) = text(&path) {
            settings.put(&name, &value, &format!("params/{name}"));
        }
    }
}

fn text(path: &Path) -> Option<String> {
    let mut text = String::new();
    if !path.is_file() {
        return None;
    }
    File::open(path).ok()?.take(LARGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Reads lines `key: value`, also in the list of a model card. Settings are plain numbers and words, so
/// a full YAML parser would find nothing more.
fn yaml(text: &str, place: &str, settings: &mut RunSettings) {
    let mut groups: Vec<(usize, &str)> = Vec::new();
    for line in text.lines() {
        let body = line.split(" #").next().unwrap_or(line).trim_end();
        let item = body.trim_start();
        let depth = body.len() - item.len();
        let Some((key, value)) = item.trim_start_matches("- ").split_once(':') else { continue };
        let quotes = ['"', '\'', ' '];
        let (key, value) = (key.trim_matches(quotes), value.trim_matches(quotes));
        groups.retain(|(group, _)| *group < depth);
        match value.is_empty() {
            true => groups.push((depth, key)),
            false => {
                let names = groups.iter().map(|(_, name)| *name).chain([key]);
                settings.put(&names.collect::<Vec<_>>().join("/"), value, place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OptimizerKind;

    #[test]
    fn yaml_as_trainers_write_it() {
        let read = |text: &str| {
            let mut settings = RunSettings::default();
            yaml(text, "config.yaml", &mut settings);
            let optimizer = settings.optimizer().map(|o| o.0);
            (settings.batch_size().map(|b| b.0), settings.clip().map(|c| c.0), optimizer)
        };
        let hparams = "batch_size: 16  # samples\nlr: 0.1\ntrainer:\n  gradient_clip_val: '0.5'\n  \
                       accumulate_grad_batches: 2\noptimizer:\n  name: SGD\nnull\n";
        assert_eq!(read(hparams), (Some(32.0), Some(0.5), Some(OptimizerKind::Sgd)));
        let wandb = "_wandb:\n    value:\n        t: 1\nbatch_size:\n    desc: null\n    value: 8\n\
                     max_grad_norm:\n    value: 1\noptim:\n    value: adamw_torch\n";
        assert_eq!(read(wandb), (Some(8.0), Some(1.0), Some(OptimizerKind::Adam)));
        let card = "---\nlicense: mit\n---\n- train_batch_size: 4\n- eval_batch_size: 8\n\
                    - gradient_accumulation_steps: 8\n- total_train_batch_size: 64\n\
                    - optimizer: Use OptimizerNames.ADAMW_TORCH with betas=(0.9,0.999)\n";
        assert_eq!(read(card), (Some(64.0), None, Some(OptimizerKind::Adam)));
        assert_eq!(read(":\n : :\n- \n\u{0}"), (None, None, None));
    }
}
