//! Figures 6 and 7: networks measured along their training on a GPU.
//!
//! The command trains nothing: the tables of the project's runs are compiled in.

mod chart;
mod dimension;
mod factor_claims;
mod factors;
mod record;
mod runs;

use anyhow::Result;

use super::figure_section::FigureSection;
use runs::{NetworkRun, measured};

pub fn figure_6() -> Result<FigureSection> {
    let networks = &measured()?;
    let mut figure = FigureSection::new("6", "μ, ν and CCC in networks")
        .settings(settings(networks))
        .claims(factor_claims::claims(networks));
    figure.section.figures = factors::figures(networks);
    figure.tables = factors::tables(networks);
    Ok(figure)
}

pub fn figure_7() -> Result<FigureSection> {
    let networks = &measured()?;
    let mut figure = FigureSection::new("7", "intrinsic dimension of networks")
        .settings(settings(networks))
        .claims(dimension::claims(networks))
        .figure(dimension::figure(networks));
    figure.tables = dimension::tables(networks);
    Ok(figure)
}

/// The runs in a line.
fn settings(networks: &[NetworkRun]) -> String {
    let describe = |run: &NetworkRun| {
        let [epochs, batch, rate, momentum, seed] =
            ["epochs", "batch", "rate", "momentum", "seed"].map(|key| run.settings[key]);
        let name = run.name();
        format!(
            "{name}: {epochs} epochs, batch {batch}, η = {rate}, momentum {momentum}, seed {seed}"
        )
    };
    let runs: Vec<String> = networks.iter().map(describe).collect();
    format!("{}; trained without clipping; 200 epochs in the paper", runs.join("; "))
}

/// Runs of one network of the paper.
fn of_paper<'a>(networks: &'a [NetworkRun], model: &str) -> Vec<&'a NetworkRun> {
    networks.iter().filter(|run| run.settings.words["model"] == model).collect()
}

fn epoch(epoch: f64) -> String {
    if epoch < 10.0 { format!("{epoch:.1}") } else { format!("{epoch:.0}") }
}

/// "at epoch 54", or "before training".
fn when(at: f64) -> String {
    if at == 0.0 { "before training".into() } else { format!("at epoch {}", epoch(at)) }
}
