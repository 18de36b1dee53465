//! Figures of the risk over time, by theory and by simulation.

use anyhow::{Context, Result};
use toclip::dynamics::{Ode, Sgd};

use super::facts::Facts;
use super::figure_file::{ChartFile, FigureFile};
use super::{Agreement, FigureSection, RunSizes, add_path, last};
use crate::output::Table;
use crate::plot::Chart;
use crate::report::Claim;

/// The risk over time of all curves of a chart.
pub struct Paths {
    pub chart: Chart,
    pub table: Table,
    /// That each curve agrees with its runs.
    pub agreement: Vec<Claim>,
}

impl Paths {
    /// Adds the risk of each at the time `end` to the facts, if there is one.
    pub fn new(
        file: &FigureFile,
        chart: &ChartFile,
        (end, facts): (Option<f64>, &mut Facts),
        sizes: &RunSizes,
    ) -> Result<Self> {
        let ensemble = file.ensemble(sizes);
        let (mut drawn, mut table) = (chart.chart(), Table::default());
        let mut agreement = Vec::new();
        for (slot, curve) in chart.curves.iter().enumerate() {
            let (_, prepared) = file.prepared_of(curve)?;
            let (problem, times) = (&prepared.problem, &prepared.times);
            if slot == 0 {
                table = table.numbers("t", times.iter().copied());
            }
            let (ode, sgd) = (Ode::new(problem)?, Sgd::new(problem)?);
            let saved: Vec<f64> = times.iter().copied().chain(end).collect();
            let theory = ode.solve(&saved)?;
            facts.add(&curve.name, [("end", last(&theory))]);
            let risk = &theory.risk[..times.len()];
            let band = ensemble.run(&sgd, times, None)?;
            let compared = Agreement::new(risk, &band, problem.risk() / problem.dim());
            agreement.push(compared.gap_claim(&file.agreement, &curve.name, ensemble.runs));
            let key = curve.key.as_deref().unwrap_or(&curve.name);
            (drawn, table) = add_path((drawn, table), (slot, key, &curve.name), risk, &band);
        }
        Ok(Paths { chart: drawn, table, agreement })
    }
}

/// A figure of nothing else.
pub fn figure(file: &FigureFile, sizes: &RunSizes) -> Result<FigureSection> {
    let chart = file.charts.first().context("the figure has no charts")?;
    let mut facts = Facts::default();
    let Paths { chart, table, agreement } = Paths::new(file, chart, (None, &mut facts), sizes)?;
    Ok(file.section([chart], &facts, sizes)?.claims(agreement).table(table))
}
