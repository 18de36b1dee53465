//! Figure 7: the intrinsic dimension d = Tr G/‖G‖ of the Gauss–Newton matrix along training.

use super::factor_claims::of_paper;
use super::run::{Networks, Run};
use super::table::{Dimension, Estimate};
use crate::plot::{Axis, Chart, Figure, Series};

/// What the paper reads off its own runs.
pub const PAPER_START: f64 = 100.0;
pub const PAPER_END: f64 = 1000.0;
pub const PAPER_VIT: f64 = 300.0;

/// The modes of batch norm, the one in which networks are trained first; others by name.
pub fn modes(networks: &Networks) -> Vec<String> {
    let mut modes: Vec<String> = vec!["train".into(), "eval".into()];
    let all = networks.runs.iter().flat_map(|run| &run.dimensions).map(|d| d.mode.clone());
    let mut found: Vec<String> = all.collect();
    found.sort();
    found.dedup();
    modes.retain(|mode| found.contains(mode));
    found.retain(|mode| !modes.contains(mode));
    modes.extend(found);
    modes
}

/// The mode in words, and what batch norm does in it.
pub fn mode_words(mode: &str) -> (String, &'static str) {
    match mode {
        "train" => ("training mode".into(), "statistics of the batch"),
        "eval" => ("evaluation mode".into(), "running statistics"),
        other => (format!("mode {other}"), ""),
    }
}

/// What can be judged of a run in one mode, in order of time.
pub fn of<'a>(run: &'a Run, mode: &str) -> Vec<&'a Dimension> {
    run.dimensions.iter().filter(|d| d.mode == mode && d.says()).collect()
}

/// One chart for each mode of batch norm, with the values of the paper as lines.
pub fn figure(networks: &Networks) -> Figure {
    let all = &networks.runs;
    let first = all
        .iter()
        .flat_map(|run| &run.dimensions)
        .map(|d| d.epoch)
        .filter(|epoch| *epoch > 0.0)
        .fold(f64::INFINITY, f64::min);
    // There is no zero on a log axis: the start has its own line to the left.
    let start = if first.is_finite() { first / 3.0 } else { 1.0 };
    let known = || all.iter().flat_map(|run| &run.dimensions).filter(|d| d.says()).map(|d| d.d());
    let paper = paper_lines(networks);
    let top = paper.iter().map(|line| line.0).fold(0.0, f64::max);
    let least = known().map(Estimate::low).filter(|low| *low > 0.0).fold(5.0, f64::min);
    let range = (0.9 * least, 1.5 * known().map(Estimate::high).fold(top, f64::max));
    let mut figure = Figure::new("Intrinsic dimension d = Tr G/‖G‖ along training, 95 % intervals");
    for mode in modes(networks) {
        let (words, means) = mode_words(&mode);
        let mut chart = Chart::new(&format!("Batch norm in {words}"))
            .subtitle(means)
            .x(Axis::log("epoch").range(0.8 * start, f64::NAN))
            .y(Axis::log("d = Tr G/‖G‖").range(range.0, range.1));
        let mut from_start = false;
        for (slot, run) in all.iter().enumerate() {
            let found = of(run, &mode);
            from_start |= found.iter().any(|d| d.step == 0);
            chart = draw(chart, &run.name(all), slot, &found, start);
        }
        if from_start {
            chart = chart.vline(start, "before training");
        }
        for &(at, name) in &paper {
            chart = chart.hline(at, name);
        }
        figure = figure.chart(chart);
    }
    figure
}

/// What the paper says of the networks that are there.
fn paper_lines(networks: &Networks) -> Vec<(f64, &'static str)> {
    let mut lines = Vec::new();
    if !of_paper(networks, "resnet18").is_empty() {
        lines.push((PAPER_END, "paper, ResNet-18 at the end"));
    }
    if !of_paper(networks, "vit_s16").is_empty() {
        lines.push((PAPER_VIT, "paper, ViT-S/16 throughout"));
    }
    if !of_paper(networks, "resnet18").is_empty() {
        lines.push((PAPER_START, "paper, ResNet-18 at the start"));
    }
    lines
}

/// A line for what was measured along the run, marks with error bars for what stands alone.
fn draw(chart: Chart, name: &str, slot: usize, found: &[&Dimension], start: f64) -> Chart {
    let along: Vec<&&Dimension> = found.iter().filter(|d| !d.aside && d.step > 0).collect();
    let alone: Vec<&&Dimension> = found.iter().filter(|d| d.aside || d.step == 0).collect();
    let column = |of: &dyn Fn(Estimate) -> f64| along.iter().map(|d| of(d.d())).collect::<Vec<_>>();
    let mut chart = chart;
    if !along.is_empty() {
        let x: Vec<f64> = along.iter().map(|d| d.epoch).collect();
        let band = Series::band(name, &x, &column(&Estimate::low), &column(&Estimate::high));
        chart = chart.series(band.middle(&column(&|e| e.value)).slot(slot));
    }
    if !alone.is_empty() {
        let place = |d: &Dimension| if d.step == 0 { start } else { d.epoch };
        for d in &alone {
            let (x, low, high) = (place(d), d.d().low(), d.d().high());
            chart = chart.series(Series::band("", &[x, x], &[low, low], &[high, high]).slot(slot));
        }
        let x: Vec<f64> = alone.iter().map(|d| place(d)).collect();
        let y: Vec<f64> = alone.iter().map(|d| d.d().value).collect();
        // The line has the name already.
        let name = if along.is_empty() { name } else { "" };
        chart = chart.series(Series::points(name, &x, &y).slot(slot));
    }
    chart
}

/// The numbers behind the figure, a table for each network and mode.
pub fn tables(networks: &Networks) -> Vec<(String, crate::output::Table)> {
    let mut tables = Vec::new();
    for run in &networks.runs {
        for mode in modes(networks) {
            let lines: Vec<&Dimension> = run.dimensions.iter().filter(|d| d.mode == mode).collect();
            if lines.is_empty() {
                continue;
            }
            let column = |of: &dyn Fn(&Dimension) -> f64| lines.iter().map(|d| of(d)).collect();
            let columns: [(&str, Vec<f64>); 6] = [
                ("step", column(&|d| d.step as f64)),
                ("epoch", column(&|d| d.epoch)),
                ("samples", column(&|d| d.samples as f64)),
                ("dimension", column(&|d| d.d().value)),
                ("dimension_stderr", column(&|d| d.d().error)),
                ("converged", column(&|d| f64::from(u8::from(d.converged)))),
            ];
            let columns: Vec<(String, &[f64])> =
                columns.iter().map(|(name, column)| ((*name).into(), column.as_slice())).collect();
            let name = format!("figure-7-{}-{mode}", run.file_name());
            tables.push((name, super::super::part::table(&columns)));
        }
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Kind;

    #[test]
    fn every_mode_has_its_chart_and_a_line_where_it_was_measured_along_the_run() {
        let whole = Networks::load(None).unwrap();
        // As the tables would be had one mode been measured at the start only.
        let mut networks = Networks::load(None).unwrap();
        for run in &mut networks.runs {
            run.dimensions.retain(|d| d.mode == "eval" || d.step == 0);
        }
        let bands = |figure: &Figure, chart: usize| {
            let named = |s: &&Series| matches!(s.kind, Kind::Band { .. }) && !s.label.is_empty();
            figure.charts[chart].series.iter().filter(named).count()
        };
        let before = figure(&networks);
        assert_eq!(before.charts.len(), 2);
        assert!(before.charts[0].title.contains("training mode"));
        assert_eq!((bands(&before, 0), bands(&before, 1)), (0, 3));
        let after = figure(&whole);
        assert_eq!((bands(&after, 0), bands(&after, 1)), (1, 3));
    }

    #[test]
    fn the_paper_is_drawn_beside_its_own_networks_only() {
        let mut networks = Networks::load(None).unwrap();
        assert_eq!(figure(&networks).charts[0].lines.len(), 4, "three, and the start");
        networks.runs.retain(|run| run.settings.model == "vit_s4");
        let alone = figure(&networks);
        assert!(alone.charts[0].lines.iter().all(|line| !line.label.contains("paper")));
    }

    #[test]
    fn what_did_not_converge_is_not_drawn() {
        let mut networks = Networks::load(None).unwrap();
        let count = of(&networks.runs[0], "eval").len();
        networks.runs[0].dimensions.iter_mut().find(|d| d.mode == "eval").unwrap().converged =
            false;
        assert_eq!(of(&networks.runs[0], "eval").len(), count - 1);
    }
}
