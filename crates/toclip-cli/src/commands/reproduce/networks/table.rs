//! What was measured in one run: the lines of its files in the terms of the figures.

use serde::Deserialize;

use super::lines::gap;

/// Standard errors on either side of a 95 % interval.
pub const Z: f64 = 1.96;

/// A value and its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub error: f64,
}

impl Estimate {
    pub fn low(self) -> f64 {
        self.value - Z * self.error
    }

    pub fn high(self) -> f64 {
        self.value + Z * self.error
    }

    /// The value and half of its 95 % interval.
    pub fn words(self) -> String {
        let half = Z * self.error;
        let decimals = match half {
            h if h > 0.0 && h.is_finite() => (1 - h.log10().floor() as i32).clamp(0, 4) as usize,
            _ => 3,
        };
        format!("{:.decimals$} ± {half:.decimals$}", self.value)
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
        match self {
            Estimator::Direct => "direct",
            Estimator::Batch => "batch form",
            Estimator::Fraction => "unclipped fraction (the paper's)",
        }
    }

    pub fn key(self) -> &'static str {
        match self {
            Estimator::Direct => "direct",
            Estimator::Batch => "batch",
            Estimator::Fraction => "fraction",
        }
    }
}

/// A line of `factors.jsonl`.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Columns")]
pub struct FactorLine {
    pub step: u64,
    pub epoch: f64,
    pub batch: u64,
    /// Which parameters: "all" is the whole model.
    pub group: String,
    pub threshold: f64,
    pub median_norm: f64,
    /// ‖E g‖, 0 where it was not seen.
    pub gradient_norm: f64,
    pub clip_fraction: f64,
    pub nu: Estimate,
    /// In the order of [`Estimator::ALL`].
    pub mu: [Estimate; 3],
    pub ccc: [Estimate; 3],
}

/// The same as it is written.
#[derive(Deserialize)]
struct Columns {
    step: u64,
    epoch: f64,
    batch: u64,
    #[serde(default = "whole")]
    group: String,
    threshold: f64,
    median_norm: f64,
    #[serde(deserialize_with = "gap")]
    gradient_norm: f64,
    clip_fraction: f64,
    #[serde(deserialize_with = "gap")]
    nu: f64,
    #[serde(deserialize_with = "gap")]
    nu_stderr: f64,
    #[serde(deserialize_with = "gap")]
    mu_direct: f64,
    #[serde(deserialize_with = "gap")]
    mu_direct_stderr: f64,
    #[serde(deserialize_with = "gap")]
    mu_batch: f64,
    #[serde(deserialize_with = "gap")]
    mu_batch_stderr: f64,
    #[serde(deserialize_with = "gap")]
    mu_fraction: f64,
    #[serde(deserialize_with = "gap")]
    mu_fraction_stderr: f64,
    #[serde(deserialize_with = "gap")]
    ccc_direct: f64,
    #[serde(deserialize_with = "gap")]
    ccc_direct_stderr: f64,
    #[serde(deserialize_with = "gap")]
    ccc_batch: f64,
    #[serde(deserialize_with = "gap")]
    ccc_batch_stderr: f64,
    #[serde(deserialize_with = "gap")]
    ccc_fraction: f64,
    #[serde(deserialize_with = "gap")]
    ccc_fraction_stderr: f64,
}

fn whole() -> String {
    "all".into()
}

impl From<Columns> for FactorLine {
    fn from(c: Columns) -> Self {
        let estimate = |value, error| Estimate { value, error };
        FactorLine {
            step: c.step,
            epoch: c.epoch,
            batch: c.batch,
            group: c.group,
            threshold: c.threshold,
            median_norm: c.median_norm,
            gradient_norm: c.gradient_norm,
            clip_fraction: c.clip_fraction,
            nu: estimate(c.nu, c.nu_stderr),
            mu: [
                estimate(c.mu_direct, c.mu_direct_stderr),
                estimate(c.mu_batch, c.mu_batch_stderr),
                estimate(c.mu_fraction, c.mu_fraction_stderr),
            ],
            ccc: [
                estimate(c.ccc_direct, c.ccc_direct_stderr),
                estimate(c.ccc_batch, c.ccc_batch_stderr),
                estimate(c.ccc_fraction, c.ccc_fraction_stderr),
            ],
        }
    }
}

impl FactorLine {
    pub fn mu(&self, by: Estimator) -> Estimate {
        self.mu[by as usize]
    }

    pub fn ccc(&self, by: Estimator) -> Estimate {
        self.ccc[by as usize]
    }

    /// Whether the batches showed a mean gradient at all. The direct estimate divides by its
    /// squared norm; where that drowns in the noise, the ratio and even its error mean nothing.
    pub fn determined(&self) -> bool {
        let ccc = self.ccc(Estimator::Direct);
        let known = self.gradient_norm > 0.0 && Z * ccc.error <= 0.5 * ccc.value.abs().max(1.0);
        self.clip_fraction == 0.0 || known
    }

    /// Whether an estimate says something.
    pub fn says(&self, by: Estimator) -> bool {
        by != Estimator::Direct || self.determined()
    }

    /// What is impossible in a line, if anything.
    pub fn wrong(&self) -> Option<String> {
        let positive = |name: &str, x: f64| {
            (!(x > 0.0 && x.is_finite())).then(|| format!("`{name}` is {x}; it should be positive"))
        };
        let share = (!(0.0..=1.0).contains(&self.clip_fraction)).then(|| {
            format!("`clip_fraction` is {}; it should be between 0 and 1", self.clip_fraction)
        });
        let batch = (self.batch == 0).then(|| "`batch` is 0; it should be positive".into());
        no_epoch(self.epoch)
            .or_else(|| positive("threshold", self.threshold))
            .or_else(|| positive("median_norm", self.median_norm))
            .or(share)
            .or(batch)
    }
}

/// What is wrong with an epoch; the first measurement is at 0, before training.
fn no_epoch(epoch: f64) -> Option<String> {
    (!(epoch >= 0.0 && epoch.is_finite()))
        .then(|| format!("`epoch` is {epoch}; it should not be negative"))
}

/// A line of `curvature.jsonl`: d = Tr G/‖G‖ at one step.
#[derive(Debug, Clone, Deserialize)]
pub struct Dimension {
    pub step: u64,
    pub epoch: f64,
    #[serde(deserialize_with = "gap")]
    pub dimension: f64,
    #[serde(deserialize_with = "gap")]
    pub dimension_stderr: f64,
    pub converged: bool,
    pub samples: u64,
    /// Mode of batch norm: "eval" or "train".
    pub mode: String,
    /// From `curvature-modes.jsonl`: measured by itself, not along the run.
    #[serde(skip)]
    pub aside: bool,
}

impl Dimension {
    pub fn d(&self) -> Estimate {
        Estimate { value: self.dimension, error: self.dimension_stderr }
    }

    /// Whether it can be drawn and judged.
    pub fn says(&self) -> bool {
        self.converged && self.dimension > 0.0 && self.dimension.is_finite()
    }

    pub fn wrong(&self) -> Option<String> {
        no_epoch(self.epoch)
    }
}

/// A line of `curvature-modes.jsonl`: d at the start or a step, for some number of images.
#[derive(Debug, Clone, Deserialize)]
pub struct Aside {
    pub model: String,
    at: At,
    pub mode: String,
    n: u64,
    #[serde(deserialize_with = "gap")]
    d: f64,
    #[serde(deserialize_with = "gap")]
    se: f64,
    conv: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum At {
    Step(u64),
    /// "init"
    Start(String),
}

impl Aside {
    /// The same in the terms of the run it belongs to.
    pub fn dimension(&self, steps_per_epoch: f64) -> Dimension {
        let step = match &self.at {
            At::Step(step) => *step,
            At::Start(_) => 0,
        };
        Dimension {
            step,
            epoch: step as f64 / steps_per_epoch,
            dimension: self.d,
            dimension_stderr: self.se,
            converged: self.conv,
            samples: self.n,
            mode: self.mode.clone(),
            aside: true,
        }
    }

    pub fn wrong(&self) -> Option<String> {
        match &self.at {
            At::Start(word) if word != "init" => {
                Some(format!("`at` is \"{word}\"; it should be \"init\" or a step"))
            }
            _ => None,
        }
    }
}

/// What `run.json` says of a run.
#[derive(Debug, Clone, Deserialize)]
pub struct Settings {
    pub model: String,
    pub loss: String,
    pub epochs: f64,
    pub batch: u64,
    pub rate: f64,
    pub momentum: f64,
    pub seed: u64,
    pub steps: u64,
    #[serde(default)]
    pub torch: String,
    #[serde(default)]
    pub device: String,
}

impl Settings {
    pub fn wrong(&self) -> Option<String> {
        if !(self.epochs > 0.0 && self.epochs.is_finite()) {
            return Some(format!("`epochs` is {}; it should be positive", self.epochs));
        }
        match (self.batch, self.steps) {
            (0, _) => Some("`batch` is 0; it should be positive".into()),
            (_, 0) => Some("`steps` is 0; it should be positive".into()),
            _ => None,
        }
    }

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
