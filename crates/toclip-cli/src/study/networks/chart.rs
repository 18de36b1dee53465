//! Charts along training: curves with 95% bands over the epoch, and the values before training.

use super::record::Estimate;
use crate::plot::{Axis, Chart, Series};

/// A label, and estimates by epoch; NaN where there is none.
pub type EpochCurve = (String, Vec<(f64, Estimate)>);

/// Draws curves with their bands in the colours of their order. Values from before training are marks
/// with error bars at the left, since a log axis has no zero. The first curve has its mark on top.
pub fn draw(mut chart: Chart, curves: &[EpochCurve]) -> Chart {
    let epochs = || curves.iter().flat_map(|(_, points)| points.iter().map(|point| point.0));
    let first = epochs().filter(|epoch| *epoch > 0.0).reduce(f64::min);
    let start = first.map_or(1.0, |first| first / 3.0);
    let epoch = Axis::log("epoch");
    chart = match epochs().any(|epoch| epoch == 0.0) {
        true => chart.x(epoch.range(0.8 * start, f64::NAN)).vline(start, "before training"),
        false => chart.x(epoch),
    };
    let mut marks = Vec::new();
    for (slot, (label, points)) in curves.iter().enumerate() {
        let (before, along): (Vec<_>, Vec<_>) =
            points.iter().copied().partition(|point| point.0 == 0.0);
        let column = |of: fn(&(f64, Estimate)) -> f64| along.iter().map(of).collect::<Vec<f64>>();
        if !along.is_empty() {
            let (low, high) = (column(|p| p.1.low()), column(|p| p.1.high()));
            let band = Series::band(label, &column(|p| p.0), &low, &high);
            chart = chart.series(band.middle(&column(|p| p.1.value)).slot(slot));
        }
        for (_, estimate) in before.iter().filter(|point| !point.1.value.is_nan()) {
            let (low, high) = ([estimate.low(); 2], [estimate.high(); 2]);
            let label = if along.is_empty() { label } else { "" };
            marks.push(Series::points(label, &[start], &[estimate.value]).slot(slot));
            marks.push(Series::band("", &[start; 2], &low, &high).slot(slot));
        }
    }
    marks.into_iter().rev().fold(chart, Chart::series)
}
