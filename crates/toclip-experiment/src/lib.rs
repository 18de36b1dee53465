//! Experiments on clipped SGD: the grammar of their files, the problem one describes, and running it.
//!
//! [`read()`] takes a TOML file and [`of_values`] the same as values of a program; both give an
//! [`ExperimentFile`]. [`Prepared`] builds the [`Problem`](toclip::Problem) in the coordinates of the theory,
//! [`run::run_all`] computes the trajectories and [`Criteria::curves`] the curves of the criteria. Errors
//! name file, line and key.
//!
//! ```
//! use std::path::Path;
//! use toclip_experiment::{Prepared, parse, run};
//!
//! let text = r#"
//!     spectrum      = { kind = "isotropic", dim = 100 }
//!     start         = { kind = "uniform", norm = 1.0 }
//!     noise         = { family = "gaussian", sigma = 0.5 }
//!     time          = 3.0
//!     learning_rate = 0.5
//!     clip          = 0.9
//!     methods       = ["ode"]
//! "#;
//! let (experiment, origin) = parse(text, Path::new("short.toml"))?;
//! let prepared = Prepared::new(&experiment, &origin)?;
//! let curves = run::run_all(&experiment, &prepared)?;
//! assert!(curves[0].risk().last() < Some(&0.15));
//! # Ok::<(), toclip_experiment::Error>(())
//! ```

mod batch;
mod criteria;
mod error;
mod files;
mod limits;
mod mistake;
mod model;
mod noise;
mod optimizer;
mod policy;
mod prepared;
mod read;
mod rule;
mod value;
mod value_forms;

pub mod run;
pub mod schema;

pub use batch::BatchChoice;
pub use criteria::{
    Criteria, CriteriaCurves, Criterion, CriterionCurve, LabelledNoise, NumberOrRange,
};
pub use error::{Error, KeyError, Result};
pub use limits::{check_memory, check_steps};
pub use mistake::{Mistake, ValueError};
pub use model::ModelChoice;
pub use noise::{NoiseChoice, ResidualFile};
pub use optimizer::{BuiltTraining, GroupsChoice, MomentumChoice, PrivacyChoice, TrainingChoice};
pub use policy::{Clip, LearningRate, PolicySpec, StabilityMargin};
pub use prepared::Prepared;
pub use read::{ExperimentFile, Origin, check_methods, of_values, parse, parse_file, read};
pub use rule::RuleChoice;
pub use run::{FinishedRun, RunSink};
pub use value::from_value;

use serde::{Deserialize, Serialize};
use toclip::dynamics::Covariates;
use toclip::spectrum::{SpectrumSpec, Start};

/// The trajectories of a file, with defaults filled in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Experiment {
    /// The name of the [`ExperimentFile`].
    #[serde(skip)]
    pub name: String,
    /// The last time.
    pub time: f64,
    /// The relative tolerance of the deterministic methods.
    pub tolerance: f64,
    /// The methods to run, in this order.
    pub methods: Vec<Method>,
    /// The eigenvalues of K.
    pub spectrum: SpectrumSpec,
    /// The generalised linear model; `None` for least squares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelChoice>,
    /// $\theta^\ast$ of a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub teacher: Option<Start>,
    /// $\theta_0 - \theta^\ast$ in the eigenbasis; $\theta_0$ where there is a teacher.
    pub start: Start,
    /// The noise of one sample.
    #[serde(skip_serializing_if = "NoiseChoice::is_of_model")]
    pub noise: NoiseChoice,
    /// The samples of a step.
    #[serde(skip_serializing_if = "BatchChoice::is_single")]
    pub batch: BatchChoice,
    /// How the gradient is changed.
    #[serde(skip_serializing_if = "RuleChoice::is_clip")]
    pub rule: RuleChoice,
    /// The groups of coordinates that are clipped one by one; none for all together.
    #[serde(skip_serializing_if = "GroupsChoice::is_empty")]
    pub groups: GroupsChoice,
    /// How steps remember gradients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub momentum: Option<MomentumChoice>,
    /// The noise of private SGD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privacy: Option<PrivacyChoice>,
    /// The distribution of the features that C-SGD sees.
    #[serde(skip_serializing_if = "is_gaussian")]
    pub covariates: Covariates,
    /// $\eta$ along time.
    pub learning_rate: LearningRate,
    /// How gradients are clipped.
    pub clip: Clip,
    /// The margin below the stability limit that $\eta$ keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<StabilityMargin>,
    /// The times that are saved.
    pub points: SavedTimes,
    /// The runs of the random methods.
    pub ensemble: Runs,
}

fn is_gaussian(covariates: &Covariates) -> bool {
    *covariates == Covariates::Gaussian
}

impl Experiment {
    /// Rule, groups, momentum and privacy together.
    pub fn training(&self) -> TrainingChoice {
        TrainingChoice {
            rule: self.rule.clone(),
            groups: self.groups.clone(),
            momentum: self.momentum,
            privacy: self.privacy,
        }
    }

    /// Learning rate, threshold and margin together.
    pub fn policy(&self) -> PolicySpec {
        PolicySpec {
            learning_rate: self.learning_rate.clone(),
            clip: self.clip.clone(),
            margin: self.margin,
        }
    }
}

/// A description of the dynamics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The ODE of the risk.
    Ode,
    /// The same ODE without clipping, to compare with.
    Unclipped,
    /// The integral equation.
    Volterra,
    /// Homogenised SGD: the stochastic differential equation, an ensemble.
    Hsgd,
    /// Clipped SGD itself, an ensemble.
    Sgd,
}

impl Method {
    /// Every method.
    pub const ALL: [Method; 5] =
        [Method::Ode, Method::Unclipped, Method::Volterra, Method::Hsgd, Method::Sgd];

    /// The name in files and tables.
    pub fn key(self) -> &'static str {
        match self {
            Method::Ode => "ode",
            Method::Unclipped => "unclipped",
            Method::Volterra => "volterra",
            Method::Hsgd => "hsgd",
            Method::Sgd => "sgd",
        }
    }

    /// The name in plots and reports.
    pub fn title(self, clipped: bool) -> &'static str {
        match (self, clipped) {
            (Method::Ode, _) => "ODE",
            (Method::Unclipped, _) => "ODE, unclipped",
            (Method::Volterra, _) => "integral equation",
            (Method::Hsgd, true) => "C-HSGD",
            (Method::Hsgd, false) => "HSGD",
            (Method::Sgd, true) => "C-SGD",
            (Method::Sgd, false) => "SGD",
        }
    }

    /// Whether it is random, and so an ensemble of runs.
    pub fn is_ensemble(self) -> bool {
        matches!(self, Method::Hsgd | Method::Sgd)
    }

    fn parse(value: toml::Value) -> Result<Self, Mistake> {
        let name = value.as_str().ok_or_else(|| Mistake::is(&value, "a string"))?;
        let found = Method::ALL.into_iter().find(|method| method.key() == name);
        let known = Method::ALL.map(Method::key);
        found.ok_or_else(|| toclip_words::unknown("method", name, &known).into())
    }
}

/// How many runs, from which seed, and the share of them that a band holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Runs {
    /// How many runs.
    pub runs: u64,
    /// The seed of all of them.
    pub seed: u64,
    /// The share of the runs in a band.
    pub confidence: f64,
}

impl Default for Runs {
    fn default() -> Self {
        Runs { runs: 100, seed: 1, confidence: 0.8 }
    }
}

/// At which times the curves are saved: `51`, or `{ spacing = "log", count = 51, first = 0.01 }`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct SavedTimes {
    /// Equal distances or equal ratios.
    #[serde(default)]
    pub spacing: Spacing,
    /// How many times.
    pub count: usize,
    /// The first time of logarithmic spacing; a thousandth of the last unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<f64>,
}

impl Default for SavedTimes {
    fn default() -> Self {
        // 200 intervals: round numbers for most horizons.
        SavedTimes { spacing: Spacing::Linear, count: 201, first: None }
    }
}

impl SavedTimes {
    fn parse(value: toml::Value) -> Result<Self, Mistake> {
        let table = value_forms::table_with(
            "count",
            value,
            toml::Value::is_integer,
            "an integer or a table",
        )?;
        value::read_value(table, SavedTimes::deserialize)
    }
}

value_forms::deserialize_by_parse!(Method);
value_forms::serde_by_parse!(SavedTimes);

/// How times are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// At equal distances, from 0 on.
    #[default]
    Linear,
    /// At equal ratios.
    Log,
}
