//! The file of a figure: its experiment, charts, curves and claims.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use toclip::ensemble::Ensemble;
use toml::Table;

use super::facts::{ClaimFile, Facts};
use super::{FigureSection, RunSizes};
use crate::experiment::{Experiment, Prepared};
use crate::plot::{Axis, Chart, Figure};

/// What a figure shows and claims.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureFile {
    #[serde(skip)]
    pub id: &'static str,
    /// The heading of its section.
    title: String,
    /// The heading of the picture.
    figure: String,
    /// The problem in one line, without the number of runs.
    settings: String,
    /// Whether every curve has as many runs as the report asks for; a quarter of them otherwise.
    #[serde(default)]
    all_runs: bool,
    /// The claim that the simulations agree with the theory.
    #[serde(default)]
    pub agreement: String,
    pub thresholds: Option<Thresholds>,
    /// The keys that all curves share.
    experiment: Table,
    #[serde(default)]
    pub charts: Vec<ChartFile>,
    claims: Vec<ClaimFile>,
}

/// The thresholds of a figure with curves against the threshold.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    pub from: f64,
    pub to: f64,
    pub count: usize,
    /// Whether each has the constant rate that ends lowest with it; that of the experiment otherwise.
    #[serde(default)]
    pub best_rate: bool,
    /// Whether runs have one variable for each eigenvalue instead of all coordinates.
    #[serde(default)]
    pub collapsed: bool,
}

/// A chart and its curves.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChartFile {
    pub title: String,
    #[serde(default)]
    pub subtitle: String,
    x: String,
    #[serde(default)]
    linear_x: bool,
    y: String,
    #[serde(default)]
    linear_y: bool,
    #[serde(default)]
    pub curves: Vec<CurveFile>,
}

/// A curve: what it changes in the experiment.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurveFile {
    pub name: String,
    /// The name of its columns, where that is another.
    pub key: Option<String>,
    /// The keys that it changes.
    #[serde(default)]
    pub set: Table,
    /// The points that are simulated, by their numbers.
    #[serde(default)]
    pub simulate: Vec<usize>,
    /// Whether it is computed without being drawn.
    #[serde(default)]
    pub hidden: bool,
}

impl ChartFile {
    pub fn chart(&self) -> Chart {
        let axis = |label: &str, linear| match linear {
            true => Axis::linear(label),
            false => Axis::log(label),
        };
        Chart::new(&self.title)
            .subtitle(&self.subtitle)
            .x(axis(&self.x, self.linear_x))
            .y(axis(&self.y, self.linear_y))
    }
}

impl FigureFile {
    pub fn read(id: &'static str, text: &str) -> Result<Self> {
        let file: FigureFile = toml::from_str(text).with_context(|| format!("{id}.toml"))?;
        Ok(FigureFile { id, ..file })
    }

    /// The experiment with other values for some keys.
    pub fn with(&self, set: &Table) -> Table {
        let mut table = self.experiment.clone();
        table.extend(set.clone());
        table
    }

    /// An experiment on least squares, and its problem.
    pub fn prepared(&self, set: &Table) -> Result<(Experiment, Prepared)> {
        let (file, origin) = toclip_experiment::of_values(&self.with(set), Path::new(""))?;
        let experiment = file.into_trajectories(&origin)?;
        let prepared = Prepared::new(&experiment, &origin)?;
        Ok((experiment, prepared))
    }

    pub fn prepared_of(&self, curve: &CurveFile) -> Result<(Experiment, Prepared)> {
        self.prepared(&curve.set).with_context(|| curve.name.clone())
    }

    /// All curves with their charts, each curve under its full name.
    pub fn curves(&self) -> impl Iterator<Item = (&ChartFile, &CurveFile, String)> {
        let drawn = self.charts.iter().filter(|chart| !chart.curves.is_empty()).count();
        self.charts.iter().flat_map(move |chart| {
            chart.curves.iter().map(move |curve| match drawn {
                1 => (chart, curve, curve.name.clone()),
                _ => (chart, curve, format!("{}, {}", chart.title, curve.name)),
            })
        })
    }

    pub fn ensemble(&self, sizes: &RunSizes) -> Ensemble {
        let runs = if self.all_runs { sizes.runs } else { sizes.runs.div_ceil(4) };
        Ensemble::new(runs, sizes.seed)
    }

    /// The section with these charts and the claims of the file about these numbers.
    pub fn section(
        &self,
        charts: impl IntoIterator<Item = Chart>,
        facts: &Facts,
        sizes: &RunSizes,
    ) -> Result<FigureSection> {
        let Ensemble { runs, seed, .. } = self.ensemble(sizes);
        let settings = match self.agreement.is_empty() {
            true => self.settings.clone(),
            false => format!("{}; {runs} runs for each, seed {seed}", self.settings),
        };
        let claims = self.claims.iter().map(|claim| claim.check(facts));
        let mut charts: Vec<Chart> = charts.into_iter().collect();
        let section = FigureSection::new(self.id, &self.title)
            .settings(settings)
            .claims(claims.collect::<Result<Vec<_>>>()?);
        let section = match (charts.pop(), charts.is_empty()) {
            (Some(only), true) => section.figure(only),
            (last, _) => {
                let figure = Figure::new(&self.figure).columns(2);
                section.figure(charts.into_iter().chain(last).fold(figure, Figure::chart))
            }
        };
        Ok(FigureSection {
            experiment: Some(toml::to_string(&self.with(&self.shown()))?),
            ..section
        })
    }

    /// What the first curve changes: its experiment is the one to open in the explorer.
    fn shown(&self) -> Table {
        self.curves().next().map(|(_, curve, _)| curve.set.clone()).unwrap_or_default()
    }
}
