//! The questions of the page.

use serde::Deserialize;
use serde_json::Value;
use toclip_plot::{Chart, Figure, Theme};

use crate::setting;
use crate::to_json;

/// A question of the page.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Request {
    /// The experiment that a TOML text describes, as the page keeps it.
    Read {
        /// The text of a file.
        toml: String,
    },
    /// Risk over time: clipped as the experiment says, and unclipped.
    Paths {
        /// As in a file for `toclip run`.
        experiment: toml::Table,
    },
    /// Risk over time with the threshold of the largest CCC at every moment.
    BestPath {
        /// As in a file for `toclip run`.
        experiment: toml::Table,
    },
    /// μ, m2, ν, CSC and CCC at one risk and several thresholds.
    Factors {
        /// As in a file for `toclip run`.
        experiment: toml::Table,
        /// R.
        risk: f64,
        /// The moment, for classification, where the risk is not the whole state.
        #[serde(default)]
        time: f64,
        /// c, in the units of the experiment.
        thresholds: Vec<f64>,
    },
    /// Whether to clip at a risk, and the limit on any rule.
    Verdict {
        /// As in a file for `toclip run`.
        experiment: toml::Table,
        /// R.
        risk: f64,
        /// The moment, for classification, where the risk is not the whole state.
        #[serde(default)]
        time: f64,
    },
    /// The density of the residual at a risk.
    Density {
        /// As in a file for `toclip run`.
        experiment: toml::Table,
        /// R.
        risk: f64,
        /// A residual that must be in the picture.
        reach: f64,
    },
    /// The final risk at one threshold and several learning rates, and the largest stable rate.
    MapColumn {
        /// As in a file for `toclip run`.
        experiment: toml::Table,
        /// c, in the units of the experiment.
        threshold: f64,
        /// η at the start, in the units of the experiment.
        rates: Vec<f64>,
    },
    /// One run of C-SGD.
    Run {
        /// As in a file for `toclip run`.
        experiment: toml::Table,
        /// Of all runs.
        seed: u64,
        /// The number of the run.
        index: u64,
    },
    /// A chart as SVG.
    Figure {
        /// What to draw.
        chart: Box<Chart>,
        /// On a dark background.
        dark: bool,
    },
}

impl Request {
    /// The answer as JSON.
    ///
    /// # Errors
    /// A sentence for people.
    pub fn answer(self) -> Result<Value, String> {
        match self {
            Request::Read { toml } => setting::read(&toml),
            Request::Paths { experiment } => setting::of(experiment)?.paths(),
            Request::BestPath { experiment } => setting::of(experiment)?.best_path(),
            Request::Factors { experiment, risk, time, thresholds } => {
                to_json(setting::of(experiment)?.factors(risk, time, &thresholds)?)
            }
            Request::Verdict { experiment, risk, time } => {
                to_json(setting::of(experiment)?.verdict(risk, time)?)
            }
            Request::Density { experiment, risk, reach } => {
                to_json(setting::of(experiment)?.density(risk, reach)?)
            }
            Request::MapColumn { experiment, threshold, rates } => {
                to_json(setting::of(experiment)?.map_column(threshold, &rates)?)
            }
            Request::Run { experiment, seed, index } => setting::of(experiment)?.run(seed, index),
            Request::Figure { chart, dark } => {
                let theme = if dark { Theme::Dark } else { Theme::Light };
                Ok(Value::String(toclip_plot::svg(&Figure::from(*chart), theme)))
            }
        }
    }
}
