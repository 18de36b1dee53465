//! From values to axis units (the value, or its log10) to pixels.

use super::heat_map::extent;
use super::{Axis, AxisScale, Chart, Direction, SeriesKind};

/// Beyond this a difference of two values may overflow.
const LARGEST: f64 = 1e300;
/// Below this a difference of two values loses digits.
const SMALLEST: f64 = 1e-300;
/// Air between the outermost data and the frame, as a share of the axis.
const PAD: (f64, f64) = (0.02, 0.05);

/// A value in axis units; `None` where the axis has no place for it.
pub(super) fn to_units(scale: AxisScale, value: f64) -> Option<f64> {
    match scale {
        AxisScale::Linear => (value.abs() <= LARGEST).then_some(value),
        AxisScale::Log => (value > 0.0 && value < f64::INFINITY).then(|| value.log10()),
    }
}

/// A straight map from axis units to pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct AxisMap {
    pub scale: AxisScale,
    /// Ends of the axis in axis units.
    pub units: (f64, f64),
    /// The same ends in pixels.
    pub pixels: (f64, f64),
}

impl AxisMap {
    /// Pixel of a position in axis units.
    pub fn pixel(&self, units: f64) -> f64 {
        let (lo, hi) = self.units;
        let share = (units - lo) / (hi - lo);
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    /// Pixel of a value.
    pub fn of(&self, value: f64) -> Option<f64> {
        to_units(self.scale, value).map(|units| self.pixel(units))
    }

    /// Value at a pixel.
    pub fn value(&self, pixel: f64) -> f64 {
        let share = (pixel - self.pixels.0) / (self.pixels.1 - self.pixels.0);
        let units = self.units.0 + share * (self.units.1 - self.units.0);
        match self.scale {
            AxisScale::Linear => units,
            AxisScale::Log => 10f64.powf(units),
        }
    }
}

/// The ranges of a chart, in axis units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub x: (f64, f64),
    pub y: (f64, f64),
    /// Nothing can be drawn.
    pub empty: bool,
    /// Whether anything but convention decides the range of x and y.
    pub known: (bool, bool),
}

impl Window {
    pub fn of(chart: &Chart) -> Self {
        let fixed = fixed_ends(&chart.x);
        let mut all: Vec<(f64, f64)> = Vec::new();
        for series in &chart.series {
            let columns: Vec<&[f64]> = match &series.kind {
                SeriesKind::Band { low, high } => vec![low, high, &series.y],
                _ => vec![&series.y],
            };
            for (&x, &y) in columns.into_iter().flat_map(|column| series.x.iter().zip(column)) {
                all.extend(to_units(chart.x.scale, x).zip(to_units(chart.y.scale, y)));
            }
        }
        // Curves that leave a fixed window sideways must not stretch its height.
        let inside = |x: f64| fixed.0.is_none_or(|lo| x >= lo) && fixed.1.is_none_or(|hi| x <= hi);
        let (mut x, mut y): (Vec<f64>, Vec<f64>) =
            all.iter().copied().filter(|point| inside(point.0)).unzip();
        // A window between two points of a curve shows the line that joins them.
        if let ((Some(lo), Some(hi)), true) = (fixed, x.is_empty())
            && all.iter().any(|point| point.0 < lo)
            && all.iter().any(|point| point.0 > hi)
        {
            (x, y) = (vec![lo, hi], all.iter().map(|point| point.1).collect());
        }
        let empty = x.is_empty();
        for line in &chart.lines {
            match line.direction {
                Direction::Horizontal => y.extend(to_units(chart.y.scale, line.at)),
                Direction::Vertical => x.extend(to_units(chart.x.scale, line.at)),
            }
        }
        if let Some(map) = &chart.heat
            && let (Some(x), Some(y)) = (extent(&chart.x, &map.x), extent(&chart.y, &map.y))
        {
            // Cells fill the frame.
            return Self { x, y, empty: false, known: (true, true) };
        }
        let known =
            |axis: &Axis, data: &[f64]| !data.is_empty() || fixed_ends(axis) != (None, None);
        Self {
            x: ends(&chart.x, &x, PAD.0),
            y: ends(&chart.y, &y, PAD.1),
            empty,
            known: (known(&chart.x, &x), known(&chart.y, &y)),
        }
    }
}

/// The ends that were asked for and that the axis can have.
fn fixed_ends(axis: &Axis) -> (Option<f64>, Option<f64>) {
    let Some((a, b)) = axis.range else { return (None, None) };
    match (to_units(axis.scale, a), to_units(axis.scale, b)) {
        (Some(a), Some(b)) if a == b => (None, None),
        (Some(a), Some(b)) => (Some(a.min(b)), Some(a.max(b))),
        ends => ends,
    }
}

fn ends(axis: &Axis, data: &[f64], pad: f64) -> (f64, f64) {
    let fixed = fixed_ends(axis);
    let least = data.iter().copied().reduce(f64::min).or(fixed.0).or(fixed.1).unwrap_or(0.0);
    let most = data.iter().copied().reduce(f64::max).or(fixed.0).or(fixed.1).unwrap_or(1.0);
    let (lo, hi) = (fixed.0.unwrap_or(least), fixed.1.unwrap_or(most));
    if let (Some(lo), Some(hi)) = fixed {
        return (lo, hi);
    }
    // Constant data, or all of it on the wrong side of the one fixed end.
    let flat = hi - lo <= SMALLEST.max(1e-12 * lo.abs().max(hi.abs()));
    let air = match (flat, axis.scale) {
        (false, _) => pad * (hi - lo),
        (true, AxisScale::Log) => 0.5,
        (true, AxisScale::Linear) if lo.abs().max(hi.abs()) <= SMALLEST => 1.0,
        (true, AxisScale::Linear) => 0.1 * lo.abs().max(hi.abs()),
    };
    match fixed {
        (Some(lo), _) => (lo, hi.max(lo) + air),
        (_, Some(hi)) => (lo.min(hi) - air, hi),
        _ => (lo - air, hi + air),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(x: Axis, y: Axis, xs: &[f64], ys: &[f64]) -> Window {
        Window::of(&Chart::new("").x(x).y(y).line("", xs, ys))
    }

    #[test]
    fn map_goes_there_and_back() {
        let linear =
            AxisMap { scale: AxisScale::Linear, units: (-2.0, 6.0), pixels: (300.0, 20.0) };
        let log = AxisMap { scale: AxisScale::Log, units: (-9.0, 12.0), pixels: (10.0, 400.0) };
        assert_eq!(linear.of(2.0), Some(160.0));
        assert_eq!(log.of(1e-9), Some(10.0));
        for value in [1e-8, 0.3, 1.0, 5.9e11] {
            let back = log.value(log.of(value).unwrap());
            assert!((back / value - 1.0).abs() < 1e-12);
        }
        for gap in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!((linear.of(gap), log.of(gap)), (None, None));
        }
        assert_eq!((log.of(0.0), log.of(-1.0), linear.of(1e301)), (None, None, None));
    }

    #[test]
    fn the_window_has_width_whatever_the_data() {
        let axes = [Axis::linear(""), Axis::log(""), Axis::log("").range(0.5, f64::NAN)];
        let values = [0.0, -3.0, 1e-310, 5e-324, 1.0, 1e300, f64::MAX, f64::NAN, f64::INFINITY];
        for x in &axes {
            for y in &axes {
                for a in values {
                    for b in values {
                        let w = window(x.clone(), y.clone(), &[a, b], &[b, a]);
                        for (lo, hi) in [w.x, w.y] {
                            assert!(lo < hi && (hi - lo).is_finite(), "{a} {b}: {lo} {hi}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_fixed_window_is_kept_and_decides_what_counts() {
        let w = window(
            Axis::linear("").range(2.0, 1.0),
            Axis::linear(""),
            &[0.0, 1.0, 2.0, 3.0],
            &[1e9, 5.0, 6.0, f64::NAN],
        );
        assert_eq!(w.x, (1.0, 2.0));
        assert!(w.y.0 < 5.0 && w.y.1 > 6.0 && w.y.1 < 7.0);
        let w =
            window(Axis::linear(""), Axis::linear("").range(0.0, f64::INFINITY), &[1.0], &[8.0]);
        assert!(w.y.0 == 0.0 && w.y.1 > 8.0);
        let w = window(Axis::linear(""), Axis::log("").range(0.0, 10.0), &[1.0], &[1.0]);
        assert_eq!(w.y.1, 1.0, "a log axis cannot start at 0: that end comes from the data");
    }

    #[test]
    fn only_points_with_both_coordinates_count() {
        let chart = Chart::new("").y(Axis::log("")).line("", &[0.0, 1.0, 9.0], &[1.0, 2.0, 0.0]);
        let w = Window::of(&chart);
        assert!(w.x.1 < 1.1 && !w.empty);
        let w =
            window(Axis::linear("").range(4.0, 5.0), Axis::linear(""), &[0.0, 9.0], &[2.0, 3.0]);
        assert!(!w.empty && w.x == (4.0, 5.0) && w.y.0 < 2.0 && w.y.1 > 3.0);
        assert!(Window::of(&Chart::new("").line("", &[f64::NAN], &[1.0]).hline(3.0, "")).empty);
    }
}
