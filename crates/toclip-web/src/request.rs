//! What the page may ask.

use serde::Deserialize;
use serde_json::Value;

use crate::glm::GlmSetting;
use crate::setting::{Description, Setting};
use crate::{factors, figure, glm, map, paths, setting, to_json};

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
        experiment: Description,
    },
    /// Risk over time with the threshold of the largest CCC at every moment.
    BestPath {
        /// As in a file for `toclip run`.
        experiment: Description,
    },
    /// μ, m2, ν, CSC and CCC at one risk and several thresholds.
    Factors {
        /// As in a file for `toclip run`.
        experiment: Description,
        /// R.
        risk: f64,
        /// The moment, for classification, where the risk is not the whole state.
        #[serde(default)]
        time: f64,
        /// c, in the units of the experiment.
        thresholds: Vec<f64>,
    },
    /// The best threshold at a risk, and the limit on any rule.
    Verdict {
        /// As in a file for `toclip run`.
        experiment: Description,
        /// R.
        risk: f64,
        /// The moment, for classification, where the risk is not the whole state.
        #[serde(default)]
        time: f64,
    },
    /// The density of the residual at a risk.
    Density {
        /// As in a file for `toclip run`.
        experiment: Description,
        /// R.
        risk: f64,
        /// A residual that must be in the picture.
        reach: f64,
    },
    /// The final risk at one threshold and several learning rates, and the largest stable rate.
    MapColumn {
        /// As in a file for `toclip run`.
        experiment: Description,
        /// c, in the units of the experiment.
        threshold: f64,
        /// η at the start, in the units of the experiment.
        rates: Vec<f64>,
    },
    /// One run of C-SGD.
    Run {
        /// As in a file for `toclip run`.
        experiment: Description,
        /// Of all runs.
        seed: u64,
        /// The number of the run.
        index: u64,
    },
    /// A chart as SVG.
    Figure {
        /// What to draw.
        chart: figure::Chart,
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
        if self.experiment().is_some_and(glm::is_glm) {
            self.of_glm()
        } else {
            self.of_least_squares()
        }
    }

    fn experiment(&self) -> Option<&Description> {
        match self {
            Request::Paths { experiment }
            | Request::BestPath { experiment }
            | Request::Factors { experiment, .. }
            | Request::Verdict { experiment, .. }
            | Request::Density { experiment, .. }
            | Request::MapColumn { experiment, .. }
            | Request::Run { experiment, .. } => Some(experiment),
            Request::Read { .. } | Request::Figure { .. } => None,
        }
    }

    fn of_glm(self) -> Result<Value, String> {
        match self {
            Request::Paths { experiment } => glm::both(&*GlmSetting::of(&experiment)?),
            Request::Factors { experiment, time, thresholds, .. } => {
                to_json(glm::curves(&*GlmSetting::of(&experiment)?, time, &thresholds)?)
            }
            Request::Verdict { experiment, time, .. } => {
                to_json(glm::verdict(&*GlmSetting::of(&experiment)?, time)?)
            }
            Request::MapColumn { experiment, threshold, rates } => {
                to_json(glm::column(&*GlmSetting::of(&experiment)?, threshold, &rates)?)
            }
            Request::Run { experiment, seed, index } => {
                glm::run(&*GlmSetting::of(&experiment)?, seed, index)
            }
            _ => Err("this picture is for least squares, not for classification".into()),
        }
    }

    fn of_least_squares(self) -> Result<Value, String> {
        match self {
            Request::Read { toml } => setting::read(&toml),
            Request::Paths { experiment } => paths::both(&*Setting::of(&experiment)?),
            Request::BestPath { experiment } => paths::best(&*Setting::best_of(&experiment)?),
            Request::Factors { experiment, risk, thresholds, .. } => {
                to_json(factors::curves(&*Setting::of(&experiment)?, risk, &thresholds)?)
            }
            Request::Verdict { experiment, risk, .. } => {
                to_json(factors::verdict(&*Setting::of(&experiment)?, risk)?)
            }
            Request::Density { experiment, risk, reach } => {
                to_json(factors::density(&*Setting::of(&experiment)?, risk, reach)?)
            }
            Request::MapColumn { experiment, threshold, rates } => {
                to_json(map::column(&*Setting::of(&experiment)?, threshold, &rates)?)
            }
            Request::Run { experiment, seed, index } => {
                paths::run(&*Setting::of(&experiment)?, seed, index)
            }
            Request::Figure { chart, dark } => Ok(Value::String(chart.svg(dark))),
        }
    }
}
