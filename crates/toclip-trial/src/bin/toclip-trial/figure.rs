//! The results as a picture: one chart for each kind of problem, the batch size across.

use toclip_plot::{Axis, Chart, Figure, Series};

use crate::results::Results;

/// Neighbouring rules stand this factor apart, so that their intervals can be told.
const APART: f64 = 1.12;
/// Half the width of a bar, as a factor.
const BAR: f64 = 1.035;

/// The ratios to unclipped with their intervals.
pub fn figure(results: &Results) -> Figure {
    let title = format!(
        "Final risk over that of unclipped SGD, with {:.0}% intervals",
        100.0 * results.confidence
    );
    let mut figure = Figure::new(&title).columns(3);
    let mut groups: Vec<&str> = Vec::new();
    for row in &results.rows {
        if !groups.contains(&row.group) {
            groups.push(row.group);
        }
    }
    for group in groups {
        figure = figure.chart(chart(results, group));
    }
    figure
}

fn chart(results: &Results, group: &str) -> Chart {
    let mut chart = Chart::new(group)
        .x(Axis::log("batch size B"))
        .y(Axis::log("risk / unclipped"))
        .note("B = 1, 8 and 64; rules set apart for the eye")
        .hline(1.0, "1");
    let rules = results.rules();
    for (slot, rule) in rules.iter().skip(1).enumerate() {
        let shift = APART.powf(slot as f64 - 0.5 * (rules.len() as f64 - 2.0));
        let (mut x, mut y) = (Vec::new(), Vec::new());
        // The intervals are bars: a band with gaps.
        let (mut bar, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
        for (row, entry) in results.of(*rule).filter(|(row, _)| row.group == group) {
            let at = row.batch as f64 * shift;
            x.push(at);
            y.push(entry.ratio.mean);
            bar.extend([at / BAR, at * BAR, f64::NAN]);
            low.extend([entry.ratio.low, entry.ratio.low, f64::NAN]);
            high.extend([entry.ratio.high, entry.ratio.high, f64::NAN]);
        }
        chart = chart
            .series(Series::band("", &bar, &low, &high).slot(slot))
            .series(Series::points(rule.name(), &x, &y).slot(slot));
    }
    chart
}
