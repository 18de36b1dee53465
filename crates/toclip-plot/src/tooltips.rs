//! Values under the pointer without a script: upright strips over the chart, each with a title
//! that lists the curves there. Works wherever an SVG is shown by itself or inside a page.

use super::series::Plane;
use super::shapes::{Frame, Shape};
use super::simplify::Point;
use super::ticks::value_label;
use super::{AxisScale, Chart, SeriesKind};

/// Strips over a chart: fine enough to read a curve, few enough for a small file.
const STRIPS: usize = 40;
/// More lines than this do not fit a tooltip.
const LINES: usize = 12;

/// The strips of a chart, left to right.
pub(super) fn strips(chart: &Chart, plane: &Plane) -> Vec<Shape> {
    let frame = plane.frame();
    let width = (frame.right - frame.left) / STRIPS as f64;
    let curves: Vec<ReadableCurve> =
        chart.series.iter().filter_map(|s| ReadableCurve::of(s, plane)).collect();
    let strip = |i: usize| {
        let left = frame.left + i as f64 * width;
        let at = left + width / 2.0;
        let read = curves.iter().filter_map(|curve| curve.read(at, plane));
        let lines: Vec<String> = read.take(LINES).collect();
        let name = if chart.x.label.is_empty() { "x" } else { &chart.x.label };
        let title = format!("{name}: {}\n{}", value_label(plane.x.value(at)), lines.join("\n"));
        let outlines = vec![Frame { left, right: left + width, ..frame }.outline()];
        (!lines.is_empty()).then(|| Shape { title, ..Shape::new("hit", outlines) })
    };
    (0..STRIPS).filter_map(strip).collect()
}

/// A named series as functions of x: one for a line, two for a band.
struct ReadableCurve<'a> {
    label: &'a str,
    columns: Vec<Vec<Vec<Point>>>,
}

impl<'a> ReadableCurve<'a> {
    fn of(series: &'a super::Series, plane: &Plane) -> Option<Self> {
        let columns = match &series.kind {
            SeriesKind::Points => return None,
            SeriesKind::Line | SeriesKind::Dashed => vec![plane.runs(&series.x, &series.y)],
            SeriesKind::Band { low, high } => {
                let edges = plane.band(&series.x, low, high).into_iter();
                let (upper, lower) = edges.map(|[upper, lower]| (upper, lower)).unzip();
                vec![lower, upper]
            }
        };
        // A curve that turns back has several values at one x: none is shown.
        let forward = columns.iter().flatten().all(|run| run.is_sorted_by(|a, b| a.0 <= b.0));
        (forward && !series.label.is_empty()).then_some(Self { label: &series.label, columns })
    }

    fn read(&self, at: f64, plane: &Plane) -> Option<String> {
        let band = self.columns.len() > 1;
        let values: Option<Vec<String>> = self
            .columns
            .iter()
            .map(|runs| runs.iter().find_map(|run| height(run, at)))
            .map(|y| y.map(|y| value(y, plane, band)))
            .collect();
        values.map(|values| format!("{}: {}", self.label, values.join(" to ")))
    }
}

/// A band that goes below a log axis is drawn down to the axis, where its value is not known.
fn value(y: f64, plane: &Plane, band: bool) -> String {
    let bounded = band && plane.y.scale == AxisScale::Log && y == plane.y.pixels.0;
    format!("{}{}", if bounded { "at most " } else { "" }, value_label(plane.y.value(y)))
}

/// Height of the drawn line at a pixel column.
fn height(run: &[Point], at: f64) -> Option<f64> {
    let next = run.partition_point(|p| p.0 < at);
    let (a, b) = (run.get(next.checked_sub(1)?)?, run.get(next)?);
    Some(a.1 + (b.1 - a.1) * (at - a.0) / (b.0 - a.0))
}

#[cfg(test)]
mod tests {
    use super::super::Axis;
    use super::super::axis_map::AxisMap;
    use super::*;

    fn titles(chart: &Chart) -> Vec<String> {
        let x = AxisMap { scale: AxisScale::Linear, units: (0.0, 8.0), pixels: (0.0, 80.0) };
        let y = AxisMap { scale: chart.y.scale, units: (0.0, 4.0), pixels: (100.0, 0.0) };
        strips(chart, &Plane { x, y }).into_iter().map(|strip| strip.title).collect()
    }

    #[test]
    fn strips_read_the_curve_where_it_is_defined() {
        let x = [1.0, 2.0, 3.0, 5.0, 6.0];
        let y = [10.0, 100.0, f64::NAN, 1.0, 1.0];
        let chart = Chart::new("").x(Axis::linear("t")).y(Axis::log("")).line("R & D", &x, &y);
        let found = titles(&chart);
        // Five strips to 1 of the x axis, of which [1, 2] and [5, 6] have a curve: 5 centres each.
        assert_eq!(found.len(), 10);
        // The straight line on a log axis: 10^(1 + 0.5) half-way, at the third of five centres.
        assert_eq!(found[2], "t: 1.5\nR & D: 31.62");
        assert_eq!(found[9], "t: 5.9\nR & D: 1");
    }

    #[test]
    fn a_band_reads_both_edges_and_a_loop_is_left_out() {
        let x = [0.0, 8.0];
        let chart = Chart::new("").band("80 %", &x, &[0.0, 2.0], &[1.0, 3.0]);
        assert_eq!(titles(&chart)[20], "x: 4.1\n80 %: 1.025 to 2.025");
        let open = Chart::new("").y(Axis::log("")).band("b", &x, &[0.0, 0.0], &[10.0, 10.0]);
        assert_eq!(titles(&open)[0], "x: 0.1\nb: at most 1 to 10");
        assert!(
            titles(&Chart::new("").line("loop", &[0.0, 5.0, 1.0], &[0.0, 1.0, 2.0])).is_empty()
        );
        assert!(titles(&Chart::new("").line("", &x, &x)).is_empty());
    }
}
