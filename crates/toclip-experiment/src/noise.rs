//! The noise of an experiment: a family with its parameters, or residuals in a file.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toclip::Step;
use toclip::noise::{Family, NoNoise, Noise};
use toml::Value;

use crate::Mistake;

use crate::files::residuals;
use crate::value::read_value;
use crate::value_forms::deserialize_by_parse;
use crate::{BatchChoice, RuleChoice};
use toclip_words::unknown;

/// The noise of one sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum NoiseChoice {
    /// The model draws its labels itself.
    OfModel,
    /// A family with its parameters.
    Family(Family),
    /// Residuals in a file.
    File(ResidualFile),
}

/// `{ family = "empirical", file = "residuals.csv" }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResidualFile {
    /// Always `empirical`.
    pub family: String,
    /// The file, from the folder of the experiment.
    pub file: String,
}

impl NoiseChoice {
    fn parse(value: Value) -> Result<Self, Mistake> {
        let family = value.get("family").and_then(Value::as_str).unwrap_or_default();
        if !family.is_empty() && !Family::NAMES.contains(&family) {
            return Err(unknown("noise family", family, &Family::NAMES).into());
        }
        if family == "empirical" && value.get("values").is_none() {
            if value.get("file").is_none() {
                let what = "empirical noise needs `values`, a list of residuals, or `file`, a CSV \
                            or NPY file of them";
                return Err(what.into());
            }
            read_value(value, ResidualFile::deserialize).map(NoiseChoice::File)
        } else if family.is_empty() && value.is_table() {
            Err("the key `family` is missing".into())
        } else {
            read_value(value, Family::deserialize).map(NoiseChoice::Family)
        }
    }

    /// Whether labels are drawn by the model, which has no other noise.
    pub fn is_of_model(&self) -> bool {
        *self == NoiseChoice::OfModel
    }

    /// The noise in words.
    pub fn describe(&self) -> String {
        match self {
            NoiseChoice::OfModel => "none".into(),
            NoiseChoice::Family(family) => family.describe(),
            NoiseChoice::File(residuals) => format!("residuals in {}", residuals.file),
        }
    }

    /// The step that the noise, its batches and a rule make; a file is looked for in `folder`.
    ///
    /// # Errors
    /// A sentence for residuals that cannot be read, or batches and rules that the family does not support.
    pub fn build(
        &self,
        batch: BatchChoice,
        rule: &RuleChoice,
        folder: &Path,
    ) -> Result<Step<'static>, String> {
        let batch = batch.to_core().map_err(|error| error.to_string())?;
        let noise = Arc::new(self.family(folder)?);
        let step = Step::new(noise).with_batch(batch);
        step.and_then(|step| step.with_rule(rule.0.clone())).map_err(|error| error.to_string())
    }

    /// The family; a file is looked for in `folder`.
    ///
    /// # Errors
    /// A sentence for residuals that cannot be read.
    pub fn family(&self, folder: &Path) -> Result<Family, String> {
        match self {
            NoiseChoice::OfModel => Ok(NoNoise.into()),
            NoiseChoice::Family(family) => Ok(family.clone()),
            NoiseChoice::File(file) => residuals(&folder.join(&file.file)).map(Family::Empirical),
        }
    }
}

deserialize_by_parse!(NoiseChoice);
