//! Settings of a run: clipping threshold, batch size and optimizer, under the names that trainers give
//! them.

use serde::Serialize;
use serde_json::Value;

use super::role::{Role, is_one_of, role_of};
use super::row::parse_number;
use crate::OptimizerKind;

/// The number of samples per step over all workers.
const GLOBAL_BATCH: &str = "global_batch_size effective_batch_size total_batch_size \
     total_train_batch_size global_train_batch_size";
/// Samples per worker and accumulation step, the more specific first.
const MICRO_BATCH: &str = "per_device_train_batch_size train_micro_batch_size_per_gpu \
     per_gpu_train_batch_size micro_batch_size train_batch_size";
/// The same, or the number of samples per step without accumulation.
const BATCH: &str = "batch_size batchsize";
const ACCUMULATION: &str = "gradient_accumulation_steps accumulate_grad_batches grad_accum_steps \
     grad_accumulation_steps gradient_accumulation accumulation_steps grad_accum accum_iter \
     update_freq";
const WORKERS: &str = "world_size data_parallel_size num_processes num_gpus devices";
const OPTIMIZER: &str = "optim optimizer optimizer_name optimizer_type";
/// Optimizers that divide by a running scale of the gradient, or use its sign.
const SCALED: &str = "adam adagrad adadelta adafactor rmsprop lamb lion sophia shampoo soap muon \
     novograd galore";
/// Clipping of single components, where the threshold is none for the norm.
const ALGORITHM: &str = "gradient_clip_algorithm";

/// Where the settings of a run were found, in words such as `max_grad_norm = 1.0 in args.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SettingSources {
    /// The source of the clipping threshold.
    pub clip: Option<String>,
    /// The source of the batch size.
    pub batch_size: Option<String>,
    /// The source of the optimizer.
    pub optimizer: Option<String>,
}

/// Settings as they were found. Where two have the same name, the first is used.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RunSettings {
    found: Vec<Setting>,
}

#[derive(Clone, Debug, PartialEq)]
struct Setting {
    meaning: Meaning,
    name: String,
    value: String,
    /// The value, if it is a finite number.
    number: Option<f64>,
    place: String,
}

/// The meaning of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Meaning {
    /// The clipping threshold, under any name.
    Clip,
    /// The number of samples per step, under any name.
    GlobalBatch,
    /// The optimizer, under any name.
    Optimizer,
    /// One of the other settings, which its name tells.
    Named,
}

/// A value and where it was found.
pub(super) type Sourced<T> = Option<(T, String)>;

impl RunSettings {
    /// Adds a setting if it is of use. `path` is its name, after those of the groups that it is in.
    pub fn put(&mut self, path: &str, value: &str, place: &str) {
        let value: String = value.trim().chars().filter(|c| !c.is_control()).take(80).collect();
        let number = parse_number(value.as_bytes());
        self.add(path, value, number, place);
    }

    /// Adds a setting that was read as a number.
    pub fn put_number(&mut self, path: &str, number: f64, place: &str) {
        self.add(path, number.to_string(), Some(number), place);
    }

    fn add(&mut self, path: &str, value: String, number: Option<f64>, place: &str) {
        if self.found.len() < 1000
            && let Some((meaning, name)) = setting_name(path)
        {
            let (number, place) = (number.filter(|n| n.is_finite()), place.to_owned());
            self.found.push(Setting { meaning, name, value, number, place });
        }
    }

    /// Adds the settings of a JSON document.
    pub fn put_json(&mut self, path: &str, value: &Value, place: &str) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    self.put_json(&format!("{path}/{key}"), value, place);
                }
            }
            Value::String(text) => self.put(path, text, place),
            Value::Number(number) => self.put(path, &number.to_string(), place),
            _ => {}
        }
    }

    /// Adds other settings.
    pub fn extend(&mut self, others: &RunSettings) {
        self.found.extend_from_slice(&others.found);
    }

    /// The current threshold; infinite if the run is set not to clip.
    pub fn clip(&self) -> Sourced<f64> {
        let by_value = |s: &Setting| s.name == ALGORITHM && s.value.eq_ignore_ascii_case("value");
        if self.found.iter().any(by_value) {
            return None;
        }
        let clip = |s: &Setting| {
            let threshold = s.number.filter(|_| s.meaning == Meaning::Clip)?;
            match threshold {
                // 0 turns clipping off in every trainer that has the setting.
                0.0 => Some((f64::INFINITY, s.source())),
                _ => Some((threshold, s.source())).filter(|(c, _)| *c > 0.0 && c.is_finite()),
            }
        };
        self.found.iter().find_map(clip)
    }

    /// The number of samples per step. Trainers that accumulate always say over how many steps they
    /// do; without that the number is not known.
    pub fn batch_size(&self) -> Sourced<f64> {
        if let Some(global) = self.counts().find(|s| s.meaning == Meaning::GlobalBatch) {
            return Some((global.number?, global.source()));
        }
        let accumulation = self.first(ACCUMULATION);
        let size = self.first(MICRO_BATCH).filter(|_| accumulation.is_some());
        let size = size.or_else(|| self.first(BATCH))?;
        let (mut product, mut words) = (size.number?, format!("{} = {}", size.name, size.value));
        let mut places = vec![&size.place];
        for factor in [accumulation, self.first(WORKERS)].into_iter().flatten() {
            product *= factor.number?;
            words += &format!(" × {} = {}", factor.name, factor.value);
            if !places.contains(&&factor.place) {
                places.push(&factor.place);
            }
        }
        let places = places.into_iter().map(String::as_str).collect::<Vec<_>>().join(" and ");
        Some((product, format!("{words} in {places}")))
    }

    /// The number of samples per worker and accumulation step.
    pub fn micro_batch_size(&self) -> Option<f64> {
        self.first(MICRO_BATCH)?.number
    }

    /// The settings that can be a number of samples, steps or workers.
    fn counts(&self) -> impl Iterator<Item = &Setting> {
        self.found.iter().filter(|s| s.number.is_some_and(|n| (1.0..1e9).contains(&n)))
    }

    /// The first of these with one of these names, the first name first.
    fn first(&self, names: &str) -> Option<&Setting> {
        names.split(' ').find_map(|name| self.counts().find(|s| s.name == name))
    }

    /// The kind of the optimizer.
    pub fn optimizer(&self) -> Sourced<OptimizerKind> {
        let kind = |s: &Setting| {
            let kind = optimizer_kind(&s.value).filter(|_| s.meaning == Meaning::Optimizer)?;
            Some((kind, s.source()))
        };
        self.found.iter().find_map(kind)
    }
}

impl Setting {
    fn source(&self) -> String {
        format!("{} = {} in {}", self.name, self.value, self.place)
    }
}

/// The meaning of a setting, and its name without the groups; `None` for one that is of no use.
pub(super) fn setting_name(path: &str) -> Option<(Meaning, String)> {
    let mut parts: Vec<String> = (path.split(['/', '.']).map(str::trim))
        .filter(|part| !part.is_empty())
        .map(|part| part.to_lowercase().replace(['-', ' '], "_"))
        .collect();
    if parts.iter().any(|part| is_one_of(part, "eval val valid validation test dev")) {
        return None;
    }
    // W&B writes `batch_size: {value: 32}`, DeepSpeed `optimizer: {type: Adam}`.
    let is = |part: Option<&String>, names: &str| part.is_some_and(|p| is_one_of(p, names));
    while is(parts.last(), "value") {
        parts.pop();
    }
    if is(parts.last(), "type name _target_ class_path")
        && is(parts.iter().rev().nth(1), "optimizer optim")
    {
        parts.pop();
    }
    let name = parts.pop()?;
    let known = [MICRO_BATCH, BATCH, ACCUMULATION, WORKERS, ALGORITHM];
    let meaning = if is_one_of(&name, GLOBAL_BATCH) {
        Meaning::GlobalBatch
    } else if is_one_of(&name, OPTIMIZER) {
        Meaning::Optimizer
    } else if role_of(&name).is_some_and(|(role, _)| role == Role::Clip) {
        Meaning::Clip
    } else if known.iter().any(|names| is_one_of(&name, names)) {
        Meaning::Named
    } else {
        return None;
    };
    Some((meaning, name))
}

/// The kind of optimizer that a name means, such as `adamw_torch` or `torch.optim.SGD`.
pub(crate) fn optimizer_kind(name: &str) -> Option<OptimizerKind> {
    let name = name.to_lowercase();
    if SCALED.split(' ').any(|known| name.contains(known)) {
        Some(OptimizerKind::Adam)
    } else {
        (name.contains("sgd") || name.contains("nesterov")).then_some(OptimizerKind::Sgd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(found: &[(&str, &str)]) -> RunSettings {
        let mut settings = RunSettings::default();
        found.iter().for_each(|(name, value)| settings.put(name, value, "args.json"));
        settings
    }

    #[test]
    fn batch_sizes_are_multiplied() {
        let hf = [("per_device_train_batch_size", "8"), ("gradient_accumulation_steps", "4")];
        let (size, source) = settings(&hf).batch_size().unwrap();
        assert_eq!(size, 32.0);
        let says = "per_device_train_batch_size = 8 × gradient_accumulation_steps = 4 in args.json";
        assert_eq!(source, says);
        let workers = [&hf[..], &[("world_size", "2")]].concat();
        assert_eq!(settings(&workers).batch_size().unwrap().0, 64.0);
        let total = [&hf[..], &[("total_train_batch_size", "100")]].concat();
        assert_eq!(settings(&total).batch_size().unwrap().0, 100.0);
        assert_eq!(settings(&[("batch_size", "auto")]).batch_size(), None);
        assert_eq!(settings(&[("batch_size", "16")]).batch_size().unwrap().0, 16.0);
        // Whether gradients were accumulated is not known.
        let state = settings(&[("train_batch_size", "16")]);
        assert_eq!((state.batch_size(), state.micro_batch_size()), (None, Some(16.0)));
        assert_eq!(settings(&[("eval/batch_size", "4")]).batch_size(), None);
    }

    #[test]
    fn thresholds_and_optimizers() {
        let clip = |name: &str, value: &str| settings(&[(name, value)]).clip().map(|(c, _)| c);
        assert_eq!(clip("trainer/gradient_clip_val", "0.5"), Some(0.5));
        assert_eq!(clip("max_grad_norm", "0"), Some(f64::INFINITY));
        assert_eq!(clip("gradient_clipping", "auto"), None);
        assert_eq!(clip("grad_norm", "1.0"), None);
        let by_value = [("gradient_clip_val", "0.5"), ("gradient_clip_algorithm", "value")];
        assert_eq!(settings(&by_value).clip(), None);
        for (name, value, kind) in [
            ("optim", "adamw_torch", Some(OptimizerKind::Adam)),
            ("optimizer/type", "AdamW", Some(OptimizerKind::Adam)),
            ("optimizer", "torch.optim.SGD", Some(OptimizerKind::Sgd)),
            ("optimizer", "Use OptimizerNames.ADAMW_TORCH with betas", Some(OptimizerKind::Adam)),
            ("optimizer", "mine", None),
            ("type", "AdamW", None),
        ] {
            let found = settings(&[(name, value)]).optimizer().map(|(kind, _)| kind);
            assert_eq!(found, kind, "{name} {value}");
        }
    }
}
