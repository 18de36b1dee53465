//! The samples of a fit, whatever the model.

use serde_json::{Value, json};
use toclip::ensemble::Statistics;
use toclip_data::Design;

use super::FitSettings;
use super::figures::clip;
use crate::output::Table;
use toclip_words::short;

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

    /// The samples, the fitted model with its quality here and on its own half, and the pass.
    pub fn facts(
        &self,
        model: &str,
        quality: String,
        on_own_half: Option<String>,
        ridge: Option<String>,
        more: Vec<(&str, String)>,
    ) -> Vec<[String; 2]> {
        let FittedData { rows, cols, settings, .. } = self;
        let mut facts = vec![
            ("samples", format!("{rows}, with {cols} features ({})", settings.features)),
            ("d = Tr K/‖K‖", short(self.dim)),
            ("‖x‖²/d", format!("1 ± {}", short(self.norm_spread))),
            (model, quality),
        ];
        facts.extend(on_own_half.map(|quality| ("  on its own half", quality)));
        facts.extend(ridge.map(|ridge| ("  with", ridge)));
        facts.extend(more);
        let ([end, eta], c) = ([self.end(), settings.eta].map(short), clip(settings.clip));
        let (start, runs, seed) = (settings.describe_start(), settings.runs, settings.seed);
        let pass =
            format!("T = n/d = {end}, η = {eta}, c = {c}, {start}, {runs} runs, seed {seed}");
        facts.push(("one pass", pass));
        facts.into_iter().map(|(name, value)| [name.into(), value]).collect()
    }

    pub fn tables(&self) -> [(String, Table); 2] {
        let one = |name: &'static str, values: &[f64]| Table::from_iter([(name, values)]);
        [
            ("spectrum".into(), one("eigenvalue", &self.eigenvalues)),
            ("theta".into(), one("theta", &self.optimum)),
        ]
    }

    /// Adds the samples and the settings to the result for programs.
    pub fn add_to(&self, mut json: Value) -> Value {
        let settings = &self.settings;
        let clip = Some(settings.clip).filter(|c| c.is_finite());
        json["settings"] = json!({
            "features": settings.features.to_string(), "eta": settings.eta, "clip": clip,
            "runs": settings.runs, "seed": settings.seed, "start_noise": settings.start_noise,
            "held_out": settings.held_out,
        });
        json["name"] = self.name.as_str().into();
        json["samples"] = self.rows.into();
        json["features"] = self.cols.into();
        json["dim"] = self.dim.into();
        json["norm"] = self.norm.into();
        json["norm_spread"] = self.norm_spread.into();
        json
    }
}

/// Adds the columns of an ensemble: the mean, its standard error and the quantiles.
pub fn statistics_columns(
    table: Table,
    name: &str,
    statistics: &Statistics,
    probabilities: &[f64],
) -> Table {
    let Statistics { mean, standard_error, quantiles, .. } = statistics;
    let table = table
        .numbers(format!("{name}_mean"), mean.iter().copied())
        .numbers(format!("{name}_standard_error"), standard_error.iter().copied());
    probabilities.iter().zip(quantiles).fold(table, |table, (p, values)| {
        table.numbers(format!("{name}_q{}", short(100.0 * p)), values.iter().copied())
    })
}
