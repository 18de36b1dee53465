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

/// The axis of epochs, with room for the start.
pub fn epochs(start: f64) -> Axis {
    Axis::log("epoch").range(0.8 * start, f64::NAN)
}

/// A curve with its band.
pub fn curve(chart: Chart, label: &str, slot: usize, points: &[Point]) -> Chart {
    let column = |of: fn(&Point) -> f64| points.iter().map(of).collect::<Vec<f64>>();
    let (low, high) = (column(|p| p.1.low()), column(|p| p.1.high()));
    let band = Series::band(label, &column(|p| p.0), &low, &high);
    chart.series(band.middle(&column(|p| p.1.value)).slot(slot))
}

/// Marks with error bars.
pub fn marks(mut chart: Chart, label: &str, slot: usize, points: &[Point]) -> Chart {
    for (x, estimate) in points {
        let (low, high) = ([estimate.low(); 2], [estimate.high(); 2]);
        chart = chart.series(Series::band("", &[*x, *x], &low, &high).slot(slot));
    }
    let (x, y): (Vec<f64>, Vec<f64>) = points.iter().map(|(x, e)| (*x, e.value)).unzip();
    if x.is_empty() { chart } else { chart.series(Series::points(label, &x, &y).slot(slot)) }
}
