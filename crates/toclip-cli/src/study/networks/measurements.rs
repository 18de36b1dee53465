//! The records that `train.py` writes, in the terms of the figures.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::Value;

use super::json_lines::{
    Allowed, BOOLEAN, INTEGER, NOT_NEGATIVE, NUMBER, POSITIVE, Record, SHARE, STRING,
};
use crate::output::numbers::interval;

/// Standard errors on either side of a 95% interval.
pub const Z: f64 = 1.96;

/// A value and its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub error: f64,
}

impl Estimate {
    pub const MISSING: Estimate = Estimate { value: f64::NAN, error: f64::NAN };

    /// The lower end of the 95% interval.
    pub fn low(self) -> f64 {
        self.value - Z * self.error
    }

    /// The upper end of the 95% interval.
    pub fn high(self) -> f64 {
        self.value + Z * self.error
    }
}

/// "1.181 (95% CI 1.137–1.225)".
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&interval(self.value, self.low(), self.high()))
    }
}

/// How μ is estimated, in the order of the tables and colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimator {
    Direct,
    Batch,
    Fraction,
}

impl Estimator {
    pub const ALL: [Estimator; 3] = [Estimator::Direct, Estimator::Batch, Estimator::Fraction];

    pub fn label(self) -> &'static str {
        ["direct", "batch form", "unclipped fraction (the paper's)"][self as usize]
    }

    fn key(self) -> &'static str {
        ["direct", "batch", "fraction"][self as usize]
    }
}

/// The estimates of a line, in the order of the tables; each with its standard error beside it.
pub const ESTIMATES: [&str; 7] =
    ["nu", "mu_direct", "ccc_direct", "mu_batch", "ccc_batch", "mu_fraction", "ccc_fraction"];

/// A line of `factors.jsonl`.
#[derive(Debug, Clone, Deserialize)]
pub struct FactorLine {
    pub step: u64,
    pub epoch: f64,
    pub batch: u64,
    /// Which parameters: "all" is the whole model, and so is none.
    pub group: Option<String>,
    pub threshold: f64,
    pub median_norm: f64,
    pub clip_fraction: f64,
    /// Estimates and standard errors by name; null where a number is not finite.
    #[serde(flatten)]
    pub estimates: BTreeMap<String, Value>,
}

impl Record for FactorLine {
    const KEYS: &'static [(Allowed, &'static [&'static str])] = &[
        (INTEGER, &["step", "batch"]),
        (NOT_NEGATIVE, &["epoch"]),
        (POSITIVE, &["threshold", "median_norm", "batch"]),
        (SHARE, &["clip_fraction"]),
        (NUMBER, &ESTIMATES),
        (NUMBER, &["nu_stderr", "mu_direct_stderr", "ccc_direct_stderr", "mu_batch_stderr"]),
        (NUMBER, &["ccc_batch_stderr", "mu_fraction_stderr", "ccc_fraction_stderr"]),
        (NUMBER, &["gradient_norm"]),
    ];
}

impl FactorLine {
    fn number(&self, name: &str) -> f64 {
        self.estimates.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    /// One of [`ESTIMATES`].
    pub fn estimate(&self, name: &str) -> Estimate {
        Estimate { value: self.number(name), error: self.number(&format!("{name}_stderr")) }
    }

    pub fn nu(&self) -> Estimate {
        self.estimate("nu")
    }

    pub fn mu(&self, by: Estimator) -> Estimate {
        self.estimate(&format!("mu_{}", by.key()))
    }

    pub fn ccc(&self, by: Estimator) -> Estimate {
        self.estimate(&format!("ccc_{}", by.key()))
    }

    /// Whether the batches showed a mean gradient at all. The direct estimate divides by its
    /// squared norm; where that is lost in the noise, neither the ratio nor its error means anything.
    pub fn determined(&self) -> bool {
        let ccc = self.ccc(Estimator::Direct);
        let seen = self.number("gradient_norm") > 0.0;
        self.clip_fraction == 0.0 || (seen && Z * ccc.error <= 0.5 * ccc.value.abs().max(1.0))
    }

    /// Whether an estimate can be drawn and judged.
    pub fn has(&self, by: Estimator) -> bool {
        by != Estimator::Direct || self.determined()
    }
}

/// A line of `curvature.jsonl`: d = Tr G/‖G‖ at one step.
#[derive(Debug, Clone, Deserialize)]
pub struct Dimension {
    pub step: u64,
    pub epoch: f64,
    #[serde(deserialize_with = "number_or_nan")]
    pub dimension: f64,
    #[serde(deserialize_with = "number_or_nan")]
    pub dimension_stderr: f64,
    pub converged: bool,
    pub samples: u64,
    /// Mode of batch norm: "eval" or "train".
    pub mode: String,
}

fn number_or_nan<'de, D: Deserializer<'de>>(value: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or(f64::NAN))
}

impl Record for Dimension {
    const KEYS: &'static [(Allowed, &'static [&'static str])] = &[
        // The first measurement is at epoch 0, before training.
        (NOT_NEGATIVE, &["epoch"]),
        (INTEGER, &["step", "samples"]),
        (NUMBER, &["dimension", "dimension_stderr"]),
        (BOOLEAN, &["converged"]),
        (STRING, &["mode"]),
    ];
}

impl Dimension {
    pub fn d(&self) -> Estimate {
        Estimate { value: self.dimension, error: self.dimension_stderr }
    }

    /// Whether it can be drawn and judged.
    pub fn is_usable(&self) -> bool {
        self.converged && self.dimension > 0.0 && self.dimension.is_finite()
    }
}

/// The settings of a run, in `run.json`.
#[derive(Debug, Clone, Deserialize)]
pub struct TrainingSettings {
    pub model: String,
    pub loss: String,
    pub epochs: f64,
    pub batch: u64,
    pub rate: f64,
    pub momentum: f64,
    pub seed: u64,
}

impl Record for TrainingSettings {
    const KEYS: &'static [(Allowed, &'static [&'static str])] = &[
        (STRING, &["model", "loss"]),
        (INTEGER, &["batch", "steps", "seed"]),
        (POSITIVE, &["epochs", "batch", "steps", "rate"]),
        (NOT_NEGATIVE, &["momentum"]),
    ];
}

impl TrainingSettings {
    /// The name that people know a network by.
    pub fn name(&self) -> String {
        let model = match self.model.as_str() {
            "resnet18" => "ResNet-18",
            "vit_s16" => "ViT-S/16",
            "vit_s4" => "ViT-S/4",
            "small_cnn" => "small CNN",
            other => other,
        };
        match self.loss.as_str() {
            "mse" => model.into(),
            loss => format!("{model}, {}", loss.replace('_', " ")),
        }
    }
}
