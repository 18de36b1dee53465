//! Series as shapes.

use super::axis_map::AxisMap;
use super::hatch::hatch;
use super::shapes::{Frame, Outline, Shape};
use super::simplify::{Point, simplify, spread};
use super::theme::{BANDS, DASHES, LINES, SERIES};
use super::ticks::value_label;
use super::{AxisScale, Chart, Series, SeriesKind};

/// More marks than this in a chart have no value under the pointer: the file would be large and
/// the marks too close to be pointed at.
const NAMED_MARKS: usize = 150;

/// How a series is told from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    /// Class of its colour.
    pub colour: &'static str,
    /// Dashes of its line.
    pub dash: &'static str,
    /// Dashes of the edges of its band.
    pub edge: &'static str,
    /// Hatch of its band.
    pub hatch: usize,
    /// Shape of its marks.
    pub mark: usize,
}

impl Style {
    /// Outlines in the colour of the series.
    pub fn shape(self, class: &'static str, dash: &'static str, outlines: Vec<Outline>) -> Shape {
        Shape { colour: self.colour, dash, ..Shape::new(class, outlines) }
    }
}

/// The style of every series. Patterns and marks go by order among series of the same
/// kind: a lone curve over two bands is solid.
pub(super) fn styles(chart: &Chart) -> Vec<Style> {
    let mut next = 0;
    let mut seen: [Vec<usize>; 4] = Default::default();
    let mut order = |group: usize, slot: usize| {
        let seen = &mut seen[group];
        seen.iter().position(|&s| s == slot).unwrap_or_else(|| {
            seen.push(slot);
            seen.len() - 1
        })
    };
    let mut style = |series: &Series| {
        let slot = series.slot.unwrap_or(next);
        next = next.max(slot.saturating_add(1));
        let mut style =
            Style { colour: SERIES[slot % SERIES.len()].0, dash: "", edge: "", hatch: 0, mark: 0 };
        match series.kind {
            SeriesKind::Line => style.dash = LINES[order(0, slot) % LINES.len()],
            SeriesKind::Dashed => style.dash = DASHES[order(1, slot) % DASHES.len()],
            SeriesKind::Points => style.mark = order(3, slot),
            SeriesKind::Band { .. } => {
                style.hatch = order(2, slot);
                style.edge = BANDS[style.hatch % BANDS.len()];
                if !series.y.is_empty() {
                    style.dash = LINES[order(0, slot) % LINES.len()];
                }
            }
        }
        style
    };
    chart.series.iter().map(&mut style).collect()
}

/// The two maps of a chart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plane {
    pub x: AxisMap,
    pub y: AxisMap,
}

impl Plane {
    /// The stretches of a curve without a gap, in pixels.
    pub fn runs(&self, x: &[f64], y: &[f64]) -> Vec<Vec<Point>> {
        unbroken(x.iter().zip(y).map(|(&x, &y)| Some((self.x.of(x)?, self.y.of(y)?))))
    }

    /// The same for both edges of a band, as [upper, lower].
    pub fn band(&self, x: &[f64], low: &[f64], high: &[f64]) -> Vec<[Vec<Point>; 2]> {
        let lower = |v: f64| match self.y.scale {
            AxisScale::Log if v <= 0.0 => Some(self.y.pixels.0),
            _ => self.y.of(v),
        };
        let runs = unbroken(x.iter().zip(low).zip(high).map(|((&x, &low), &high)| {
            let x = self.x.of(x)?;
            Some([(x, self.y.of(high)?), (x, lower(low)?)])
        }));
        let edge = |run: &[[Point; 2]], i: usize| run.iter().map(|pair| pair[i]).collect();
        runs.iter().map(|run| [edge(run, 0), edge(run, 1)]).collect()
    }

    /// The rectangle that the chart fills.
    pub fn frame(&self) -> Frame {
        let ((left, right), (bottom, top)) = (self.x.pixels, self.y.pixels);
        Frame { left, top, right, bottom }
    }

    /// The shapes of a series on the layer of areas.
    pub fn area(&self, series: &Series, style: Style) -> [Shape; 2] {
        let bands = match &series.kind {
            SeriesKind::Band { low, high } => self.band(&series.x, low, high),
            _ => Vec::new(),
        };
        let hatch = |[upper, lower]: &[Vec<Point>; 2]| {
            // A histogram goes up and down at one place; its bars need no hatch.
            let bars = upper.windows(2).any(|pair| pair[0].0 >= pair[1].0);
            if bars { Vec::new() } else { hatch(style.hatch, upper, lower, self.frame()) }
        };
        let lines = bands.iter().flat_map(hatch).collect();
        let polygon = |edges: [Vec<Point>; 2]| {
            let [upper, mut lower] = edges.map(|edge| simplify(&edge));
            lower.reverse();
            Outline::Polygon([upper, lower].concat())
        };
        let area = style.shape("area", style.edge, bands.into_iter().map(polygon).collect());
        [area, style.shape("hatch", "", lines)]
    }

    /// The shapes of a series on the layer of lines.
    pub fn lines(&self, series: &Series, style: Style) -> Vec<Shape> {
        if series.kind == SeriesKind::Points {
            return Vec::new();
        }
        let (mut line, mut alone) = (Vec::new(), Vec::new());
        for run in self.runs(&series.x, &series.y) {
            // A line without length would not be seen.
            let dot = |&(x, y): &Point| (x - run[0].0).abs().max((y - run[0].1).abs()) < 0.5;
            match run.iter().all(dot) {
                true => alone.push(mark(0, run[0])),
                false => line.push(Outline::Line(simplify(&run))),
            }
        }
        vec![style.shape("line", style.dash, line), style.shape("dot", "", alone)]
    }

    /// The shapes of a series on the layer of marks, with values under the pointer.
    pub fn points(&self, series: &Series, style: Style) -> Vec<Shape> {
        if series.kind != SeriesKind::Points {
            return Vec::new();
        }
        let points = spread(&self.runs(&series.x, &series.y).concat());
        let points: Vec<_> = points.into_iter().filter(|p| self.shows(*p)).collect();
        if points.len() > NAMED_MARKS {
            let all = points.iter().map(|&p| mark(style.mark, p)).collect();
            return vec![style.shape("dot", "", all)];
        }
        let one = |&(x, y): &Point| {
            let value =
                format!("{}, {}", value_label(self.x.value(x)), value_label(self.y.value(y)));
            let title = format!("{}\n{value}", series.label);
            Shape { title, ..style.shape("dot", "", vec![mark(style.mark, (x, y))]) }
        };
        points.iter().map(one).collect()
    }

    /// Whether a point lies in the frame, give or take rounding.
    fn shows(&self, (x, y): Point) -> bool {
        let Frame { left, top, right, bottom } = self.frame();
        (left - 0.01..=right + 0.01).contains(&x) && (top - 0.01..=bottom + 0.01).contains(&y)
    }
}

/// The stretches between gaps.
fn unbroken<T: Clone>(values: impl Iterator<Item = Option<T>>) -> Vec<Vec<T>> {
    let values: Vec<Option<T>> = values.collect();
    let stretches = values.split(Option::is_none).filter(|stretch| !stretch.is_empty());
    stretches.map(|stretch| stretch.iter().flatten().cloned().collect()).collect()
}

/// One mark.
pub(super) fn mark(kind: usize, (x, y): Point) -> Outline {
    let corners: &[Point] = match kind % 4 {
        0 => return Outline::Circle((x, y)),
        1 => &[(-3.1, -3.1), (3.1, -3.1), (3.1, 3.1), (-3.1, 3.1)],
        2 => &[(0.0, -4.2), (3.9, 2.8), (-3.9, 2.8)],
        _ => &[(0.0, -4.4), (4.4, 0.0), (0.0, 4.4), (-4.4, 0.0)],
    };
    Outline::Polygon(corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(scale: AxisScale) -> Plane {
        let map = |pixels, scale| AxisMap { scale, units: (0.0, 10.0), pixels };
        Plane { x: map((0.0, 100.0), AxisScale::Linear), y: map((100.0, 0.0), scale) }
    }

    #[test]
    fn gaps_break_the_line() {
        let x = [0.0, 1.0, 2.0, 3.0, f64::NAN, 5.0, 6.0];
        let y = [1.0, 2.0, f64::NAN, 4.0, 5.0, f64::INFINITY, 7.0];
        let runs = plane(AxisScale::Linear).runs(&x, &y);
        assert_eq!(runs.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1]);
        let shapes = plane(AxisScale::Linear).lines(&Series::line("", &x, &y), styles_of_one());
        let outlines: Vec<usize> = shapes.iter().map(|shape| shape.outlines.len()).collect();
        assert_eq!(outlines, [1, 2], "a line and two single points");
    }

    fn styles_of_one() -> Style {
        styles(&Chart::new("").line("", &[], &[]))[0]
    }

    #[test]
    fn on_a_log_axis_zero_ends_a_line_but_not_a_band() {
        let plane = plane(AxisScale::Log);
        let (x, zero, one) = ([1.0, 2.0, 3.0], [1.0, 0.0, 1.0], [10.0; 3]);
        assert_eq!(plane.runs(&x, &zero).len(), 2);
        let band = plane.band(&x, &zero, &one);
        assert_eq!(band.len(), 1);
        assert_eq!(band[0][1][1], (20.0, 100.0));
        assert_eq!(plane.band(&x, &[f64::NAN; 3], &one).len(), 0);
    }

    #[test]
    fn a_lone_curve_over_bands_is_solid_and_slots_share_a_colour() {
        let v = [1.0];
        let chart = Chart::new("")
            .band("", &v, &v, &v)
            .series(Series::line("", &v, &v).slot(0))
            .band("", &v, &v, &v)
            .line("", &v, &v)
            .series(Series::line("", &v, &v).slot(0))
            .dashed("", &v, &v);
        let found = styles(&chart);
        let colours: Vec<&str> = found.iter().map(|s| s.colour).collect();
        assert_eq!(colours, ["c0", "c0", "c1", "c2", "c0", "c3"]);
        assert_eq!((found[1].dash, found[3].dash, found[4].dash), ("", LINES[1], ""));
        assert!(found[5].dash == DASHES[0] && found[2].edge != found[0].edge);
        let many = (0..40).fold(Chart::new(""), |chart, _| chart.line("", &v, &v));
        assert_eq!(styles(&many).len(), 40);
        assert_eq!(
            styles(&Chart::new("").series(Series::line("", &v, &v).slot(usize::MAX))).len(),
            1
        );
    }
}
