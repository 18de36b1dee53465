//! Charts along training: curves with 95% bands over the epoch, and what was measured before it.

use super::measurements::Estimate;
use crate::plot::{Axis, Chart, Series};

/// An estimate at an epoch; NaN where there is none.
pub type Point = (f64, Estimate);

/// Where to draw what was measured before training: a log axis has no zero.
pub fn start(epochs: impl Iterator<Item = f64>) -> f64 {
    let first = epochs.filter(|epoch| *epoch > 0.0).fold(f64::INFINITY, f64::min);
    if first.is_finite() { first / 3.0 } else { 1.0 }
}

/// Draws curves with their bands in the colours of their order, and marks with error bars at `start`
/// for what was measured before training. The first curve has its mark on top.
pub fn draw(mut chart: Chart, start: f64, curves: &[(String, Vec<Point>)]) -> Chart {
    let is_before = |point: &Point| point.0 == 0.0;
    let epoch = Axis::log("epoch");
    chart = match curves.iter().any(|(_, points)| points.iter().any(is_before)) {
        true => chart.x(epoch.range(0.8 * start, f64::NAN)).vline(start, "before training"),
        false => chart.x(epoch),
    };
    let mut marks = Vec::new();
    for (slot, (label, points)) in curves.iter().enumerate() {
        let (before, along): (Vec<Point>, Vec<Point>) = points.iter().copied().partition(is_before);
        let column = |of: fn(&Point) -> f64| along.iter().map(of).collect::<Vec<f64>>();
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
