//! An experiment is a file: what it says, the problem it makes, and the running of it.
//!
//! [`read`] takes the file, [`Problem`] builds what it names in the coordinates of the theory,
//! [`run`](run::run) makes the curves and [`Report`] says what they show.

mod batch;
mod choice;
mod problem;
mod read;
mod report;

pub mod figure;
pub mod identity;
pub mod run;
pub mod schema;
pub mod store;

pub use batch::Batch;
pub use choice::{Clip, NoiseChoice};
pub use problem::Problem;
pub use read::{Source, check_methods, parse, read};
pub use report::Report;
pub use store::{Finished, Store};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use toclip::dynamics::Covariates;
use toclip::schedule::Schedule;
use toclip::spectrum::{SpectrumSpec, Start};

/// What a file says, defaults filled in. Written as TOML it is a file that says the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Experiment {
    pub name: String,
    pub time: f64,
    pub tolerance: f64,
    pub methods: Vec<Method>,
    pub spectrum: SpectrumSpec,
    pub start: Start,
    pub noise: NoiseChoice,
    #[serde(skip_serializing_if = "Batch::is_single")]
    pub batch: Batch,
    pub covariates: Covariates,
    pub learning_rate: Schedule,
    pub clip: Clip,
    pub points: Points,
    pub ensemble: Runs,
}

/// A description of the dynamics.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ValueEnum,
)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Method {
    /// The ODE of the risk
    Ode,
    /// The same ODE without clipping, to compare with
    Unclipped,
    /// The integral equation
    Volterra,
    /// Homogenised SGD: the stochastic differential equation, an ensemble
    Hsgd,
    /// Clipped SGD itself, an ensemble
    Sgd,
}

impl Method {
    pub const ALL: [Method; 5] =
        [Method::Ode, Method::Unclipped, Method::Volterra, Method::Hsgd, Method::Sgd];

    /// As files and tables have it.
    pub fn key(self) -> &'static str {
        match self {
            Method::Ode => "ode",
            Method::Unclipped => "unclipped",
            Method::Volterra => "volterra",
            Method::Hsgd => "hsgd",
            Method::Sgd => "sgd",
        }
    }

    /// As people call it.
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
}

/// How many runs, from which seed, and the share of them that a band holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Runs {
    pub runs: u64,
    pub seed: u64,
    pub confidence: f64,
}

impl Default for Runs {
    fn default() -> Self {
        Runs { runs: 100, seed: 1, confidence: 0.8 }
    }
}

/// At which times the curves are saved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Points {
    #[serde(default)]
    pub spacing: Spacing,
    pub count: usize,
    /// The first time of logarithmic spacing; a thousandth of the last unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<f64>,
}

impl Default for Points {
    fn default() -> Self {
        // 200 intervals: round numbers for most horizons.
        Points { spacing: Spacing::Linear, count: 201, first: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    #[default]
    Linear,
    Log,
}
