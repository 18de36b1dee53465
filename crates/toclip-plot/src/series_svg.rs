//! Series as SVG paths.

use super::axis_map::Map;
use super::simplify::{Point, simplify, spread};
use super::theme::{BANDS, DASHES, LINES, SERIES};
use super::ticks::short;
use super::{AxisScale, Chart, Kind, Series, text};

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
    /// Shape of its marks.
    pub mark: usize,
}

/// The style of every series. Patterns and marks go by order among what they are to be told
/// from, so that a lone curve over two bands is solid.
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
            Style { colour: SERIES[slot % SERIES.len()].0, dash: "", edge: "", mark: 0 };
        match series.kind {
            Kind::Line => style.dash = LINES[order(0, slot) % LINES.len()],
            Kind::Dashed => style.dash = DASHES[order(1, slot) % DASHES.len()],
            Kind::Points => style.mark = order(3, slot),
            Kind::Band { .. } => {
                style.edge = BANDS[order(2, slot) % BANDS.len()];
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
    pub x: Map,
    pub y: Map,
}

impl Plane {
    /// The stretches of a curve without a gap, in pixels.
    pub fn runs(&self, x: &[f64], y: &[f64]) -> Vec<Vec<Point>> {
        let mut runs = vec![Vec::new()];
        for (&a, &b) in x.iter().zip(y) {
            match (self.x.of(a), self.y.of(b)) {
                (Some(a), Some(b)) => runs.last_mut().into_iter().for_each(|run| run.push((a, b))),
                _ => runs.push(Vec::new()),
            }
        }
        runs.retain(|run| !run.is_empty());
        runs
    }

    /// The same for both edges of a band, as (upper, lower).
    pub fn band(&self, x: &[f64], low: &[f64], high: &[f64]) -> Vec<(Vec<Point>, Vec<Point>)> {
        let bottom = self.y.pixels.0;
        let lower = |v: f64| match self.y.scale {
            AxisScale::Log if v <= 0.0 => Some(bottom),
            _ => self.y.of(v),
        };
        let mut runs = vec![(Vec::new(), Vec::new())];
        for ((&a, &low), &high) in x.iter().zip(low).zip(high) {
            match (self.x.of(a), lower(low), self.y.of(high)) {
                (Some(a), Some(low), Some(high)) => {
                    if let Some(run) = runs.last_mut() {
                        run.0.push((a, high));
                        run.1.push((a, low));
                    }
                }
                _ => runs.push(Default::default()),
            }
        }
        runs.retain(|run| !run.0.is_empty());
        runs
    }

    /// What a series leaves on the layer of areas.
    pub fn areas(&self, series: &Series, style: Style) -> String {
        let Kind::Band { low, high } = &series.kind else { return String::new() };
        let mut area = String::new();
        for (upper, lower) in self.band(&series.x, low, high) {
            let (upper, mut lower) = (simplify(&upper), simplify(&lower));
            lower.reverse();
            area.push_str(&path(&[upper, lower].concat()));
            area.push('Z');
        }
        group(style.colour, &shape("area", style.edge, &area))
    }

    /// What a series leaves on the layer of lines.
    pub fn lines(&self, series: &Series, style: Style) -> String {
        if series.kind == Kind::Points {
            return String::new();
        }
        let (mut line, mut alone) = (String::new(), String::new());
        for run in self.runs(&series.x, &series.y) {
            // A line without length would not be seen.
            let dot = |&(x, y): &Point| (x - run[0].0).abs().max((y - run[0].1).abs()) < 0.5;
            match run.iter().all(dot) {
                true => alone.push_str(&mark(0, run[0])),
                false => line.push_str(&path(&simplify(&run))),
            }
        }
        group(style.colour, &(shape("line", style.dash, &line) + &shape("dot", "", &alone)))
    }

    /// What a series leaves on the layer of marks; `named` puts values under the pointer.
    pub fn points(&self, series: &Series, style: Style, named: bool) -> String {
        if series.kind != Kind::Points {
            return String::new();
        }
        let points = spread(&self.runs(&series.x, &series.y).concat());
        let points: Vec<_> = points.into_iter().filter(|p| self.shows(*p)).collect();
        if !named || points.len() > NAMED_MARKS {
            let all: String = points.iter().map(|&p| mark(style.mark, p)).collect();
            return group(style.colour, &shape("dot", "", &all));
        }
        let one = |p: &Point| {
            let (x, y) = (short(self.x.value(p.0)), short(self.y.value(p.1)));
            let title = text::escape(&format!("{}\n{x}, {y}", series.label));
            let d = mark(style.mark, *p);
            format!("<path class=\"dot\" d=\"{d}\"><title>{title}</title></path>\n")
        };
        group(style.colour, &points.iter().map(one).collect::<String>())
    }

    /// Whether a point lies in the frame, give or take rounding.
    fn shows(&self, (x, y): Point) -> bool {
        let ((left, right), (bottom, top)) = (self.x.pixels, self.y.pixels);
        (left - 0.01..=right + 0.01).contains(&x) && (top - 0.01..=bottom + 0.01).contains(&y)
    }
}

/// A group in the colour of a series; nothing for nothing.
pub(super) fn group(colour: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!("<g class=\"{colour}\">{content}</g>\n")
}

/// One path element; nothing for nothing.
pub(super) fn shape(class: &str, dash: &str, d: &str) -> String {
    match (d, dash) {
        ("", _) => String::new(),
        (d, "") => format!("<path class=\"{class}\" d=\"{d}\"/>"),
        (d, dash) => format!("<path class=\"{class}\" stroke-dasharray=\"{dash}\" d=\"{d}\"/>"),
    }
}

/// Path data through points: to a tenth of a pixel and as steps, a third of the length.
pub(super) fn path(points: &[Point]) -> String {
    let tenths = |v: f64| (within_reach(v) * 10.0).round() as i64;
    let mut d = String::new();
    let mut last = (0, 0);
    for (i, &(x, y)) in points.iter().enumerate() {
        let here = (tenths(x), tenths(y));
        for (j, step) in [here.0 - last.0, here.1 - last.1].into_iter().enumerate() {
            match (i, j) {
                (0, 0) => d.push('M'),
                (1, 0) => d.push('l'),
                // A minus sign separates too.
                _ if step >= 0 => d.push(' '),
                _ => {}
            }
            d.push_str(&tenth(step));
        }
        last = here;
    }
    d
}

/// A number of tenths, without a leading zero.
fn tenth(n: i64) -> String {
    let sign = if n < 0 { "-" } else { "" };
    match (n.abs() / 10, n.abs() % 10) {
        (whole, 0) => format!("{sign}{whole}"),
        (0, tenths) => format!("{sign}.{tenths}"),
        (whole, tenths) => format!("{sign}{whole}.{tenths}"),
    }
}

/// What is far outside the frame is brought nearer, to where single-precision renderers still
/// have digits.
fn within_reach(v: f64) -> f64 {
    v.clamp(-1e5, 1e5)
}

/// Path data of one mark.
pub(super) fn mark(kind: usize, (x, y): Point) -> String {
    let at = |dx: f64, dy: f64| (x + dx, y + dy);
    let closed = |corners: &[Point]| path(corners) + "Z";
    match kind % 4 {
        0 => format!("{}a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0Z", path(&[at(-3.4, 0.0)])),
        1 => closed(&[at(-3.1, -3.1), at(3.1, -3.1), at(3.1, 3.1), at(-3.1, 3.1)]),
        2 => closed(&[at(0.0, -4.2), at(3.9, 2.8), at(-3.9, 2.8)]),
        _ => closed(&[at(0.0, -4.4), at(4.4, 0.0), at(0.0, 4.4), at(-4.4, 0.0)]),
    }
}

/// A coordinate to a hundredth of a pixel.
pub(super) fn num(v: f64) -> String {
    let rounded = (within_reach(v) * 100.0).round() / 100.0;
    // Adding zero turns −0 into 0.
    format!("{}", rounded + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(scale: AxisScale) -> Plane {
        let map = |pixels, scale| Map { scale, units: (0.0, 10.0), pixels };
        Plane { x: map((0.0, 100.0), AxisScale::Linear), y: map((100.0, 0.0), scale) }
    }

    #[test]
    fn gaps_break_the_line() {
        let x = [0.0, 1.0, 2.0, 3.0, f64::NAN, 5.0, 6.0];
        let y = [1.0, 2.0, f64::NAN, 4.0, 5.0, f64::INFINITY, 7.0];
        let runs = plane(AxisScale::Linear).runs(&x, &y);
        assert_eq!(runs.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1]);
        let svg = plane(AxisScale::Linear).lines(&Series::line("", &x, &y), styles_of_one());
        assert_eq!(svg.matches('M').count(), 3, "a line and two single points: {svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
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
        assert_eq!(band[0].1[1], (20.0, 100.0));
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

    #[test]
    fn coordinates_are_short_and_never_wild() {
        assert_eq!(num(1.0 / 3.0), "0.33");
        assert_eq!(num(-0.001), "0");
        assert_eq!(num(1e300), "100000");
        assert_eq!(path(&[(1.0, 2.04), (1.26, 2.0), (-1e300, 2.5)]), "M1 2l.3 0-100001.3 .5");
    }

    /// The PNG's reading of the path is the independent one.
    #[test]
    fn a_path_goes_through_its_points() {
        let points: Vec<Point> = (0..500)
            .map(|i| f64::from(i) * 0.77)
            .map(|x| (200.0 + x * (x / 9.0).cos(), 200.0 + x * (x / 7.0).sin()))
            .collect();
        let read = super::super::png::path(&path(&points)).unwrap();
        assert_eq!(read.points().len(), points.len());
        for (a, b) in read.points().iter().zip(&points) {
            let (dx, dy) = (f64::from(a.x) - b.0, f64::from(a.y) - b.1);
            assert!(dx.abs() < 0.051 && dy.abs() < 0.051, "{a:?} {b:?}");
        }
    }
}
