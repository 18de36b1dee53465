//! Figures of the risk at the end against the threshold.

use anyhow::{Context, Result};
use toclip::Problem;

use super::facts::Facts;
use super::figure_file::FigureFile;
use super::tuned::{self, TunedCurve, TuningProblem, agreement_claim, log_spaced};
use super::{FigureSection, RunSizes};
use crate::experiment::LearningRate;
use crate::plot::Chart;

/// A curve and what it was made from.
pub struct ThresholdCurve {
    pub curve: TunedCurve,
    pub problem: Problem,
    pub time: f64,
}

/// All curves of a file, in its order.
pub fn curves(file: &FigureFile, sizes: &RunSizes) -> Result<Vec<ThresholdCurve>> {
    let thresholds = file.thresholds.as_ref().context("the figure has no thresholds")?;
    let c = log_spaced((thresholds.from, thresholds.to), thresholds.count);
    let ensemble = &file.ensemble(sizes);
    let make = |(_, curve, name): (_, _, String)| -> Result<ThresholdCurve> {
        let (experiment, prepared) = file.prepared_of(curve)?;
        let rate = match &experiment.learning_rate {
            LearningRate::Schedule(rate) if !thresholds.best_rate => Some(rate.at(0.0)),
            _ => None,
        };
        let (problem, time) = (prepared.problem, experiment.time);
        let collapsed = thresholds.collapsed;
        let tuning = TuningProblem { problem: &problem, time, rate, collapsed, ensemble };
        let curve = TunedCurve::new(&name, &tuning, &c, &curve.simulate)?;
        Ok(ThresholdCurve { curve, problem, time })
    };
    file.curves().map(make).collect()
}

/// The charts with the curves that are drawn.
pub fn charts(file: &FigureFile, all: &[ThresholdCurve]) -> Vec<Chart> {
    let mut made = all.iter();
    let chart = |chart: &super::figure_file::ChartFile| {
        let curves = chart.curves.iter().zip(made.by_ref());
        let drawn = curves.filter(|(curve, _)| !curve.hidden).enumerate();
        drawn.fold(chart.chart(), |chart, (slot, (curve, one))| {
            one.curve.draw(chart, &curve.name, slot)
        })
    };
    file.charts.iter().map(chart).collect()
}

/// The numbers of all curves.
pub fn facts(all: &[ThresholdCurve]) -> Result<Facts> {
    let mut facts = Facts::default();
    for one in all {
        one.curve.facts(&mut facts)?;
        facts.add(&one.curve.name, [("start", one.problem.risk())]);
    }
    Ok(facts)
}

/// The section of these charts and curves.
pub fn section(
    file: &FigureFile,
    (charts, all, facts): (Vec<Chart>, &[ThresholdCurve], &Facts),
    sizes: &RunSizes,
) -> Result<FigureSection> {
    let runs = all.iter().flat_map(|one| &one.curve.runs);
    Ok(file
        .section(charts, facts, sizes)?
        .claims([agreement_claim(&file.agreement, runs, file.ensemble(sizes).runs)])
        .table(tuned::table(all.iter().map(|one| &one.curve))))
}

/// A figure of nothing else.
pub fn figure(file: &FigureFile, sizes: &RunSizes) -> Result<FigureSection> {
    let all = curves(file, sizes)?;
    section(file, (charts(file, &all), &all, &facts(&all)?), sizes)
}
