//! What a fit knows of the samples, whatever the model.

use serde_json::{Value, json};
use toclip_data::Design;

use super::FitSettings;
use crate::output::Table;
use crate::output::numbers::short;

/// The samples, θ* and the settings.
#[derive(Debug, Clone)]
pub struct FittedData {
    pub name: String,
    pub settings: FitSettings,
    /// Samples that SGD sees, and features.
    pub rows: usize,
    pub cols: usize,
    pub dim: f64,
    pub norm: f64,
    /// Standard deviation of ‖x‖²/d.
    pub norm_spread: f64,
    pub eigenvalues: Vec<f64>,
    /// θ*, in the coordinates of ‖K‖ = 1.
    pub optimum: Vec<f64>,
    /// At which predictions and runs are saved.
    pub times: Vec<f64>,
}

impl FittedData {
    pub fn new(design: &Design, settings: &FitSettings, optimum: &[f64], times: &[f64]) -> Self {
        FittedData {
            name: design.name().to_owned(),
            settings: settings.clone(),
            rows: design.rows(),
            cols: design.cols(),
            dim: design.dim(),
            norm: design.norm(),
            norm_spread: design.square_norms().1,
            eigenvalues: design.eigenvalues().to_vec(),
            optimum: optimum.to_vec(),
            times: times.to_vec(),
        }
    }

    /// n/d.
    pub fn end(&self) -> f64 {
        self.times.last().copied().unwrap_or(0.0)
    }

    /// The first facts: samples, d and norms.
    pub fn facts(&self) -> Vec<(String, String)> {
        let FittedData { rows, cols, settings, .. } = self;
        vec![
            ("samples".into(), format!("{rows}, with {cols} features ({})", settings.features)),
            ("d = Tr K/‖K‖".into(), short(self.dim)),
            ("‖x‖²/d".into(), format!("1 ± {}", short(self.norm_spread))),
        ]
    }

    pub fn tables(&self) -> [(String, Table); 2] {
        let one = |name: &'static str, values: &[f64]| Table::from_iter([(name, values)]);
        [
            ("spectrum".into(), one("eigenvalue", &self.eigenvalues)),
            ("theta".into(), one("theta", &self.optimum)),
        ]
    }

    /// The settings for programs.
    pub fn settings_json(&self) -> Value {
        let settings = &self.settings;
        let clip = Some(settings.clip).filter(|c| c.is_finite());
        json!({
            "features": settings.features.to_string(), "eta": settings.eta, "clip": clip,
            "runs": settings.runs, "seed": settings.seed, "start_noise": settings.start_noise,
            "held_out": settings.held_out,
        })
    }
}
