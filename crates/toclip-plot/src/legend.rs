//! The legend: a sample of each series beside its name, in as many columns as fit above the
//! chart, where it hides no curve.

use super::hatch::hatch;
use super::layout::LEGEND;
use super::series::{Style, mark};
use super::shapes::{Anchor, Element, Frame, Outline, Shape, text};
use super::simplify::Point;
use super::{Series, SeriesKind};

const SAMPLE: f64 = 26.0;
const GAP: f64 = 6.0;
/// Least and most air between columns.
const BETWEEN: (f64, f64) = (14.0, 24.0);

/// The sample before a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LegendSample {
    Line(Style),
    Band(Style),
    BandWithLine(Style),
    Mark(Style),
    Reference(&'static str),
}

impl LegendSample {
    pub fn of(series: &Series, style: Style) -> Self {
        match series.kind {
            SeriesKind::Line | SeriesKind::Dashed => Self::Line(style),
            SeriesKind::Points => Self::Mark(style),
            SeriesKind::Band { .. } if series.y.is_empty() => Self::Band(style),
            SeriesKind::Band { .. } => Self::BandWithLine(style),
        }
    }

    fn draw(self, x: f64, y: f64) -> Vec<Shape> {
        let across = || vec![Outline::Line(vec![(x, y), (x + SAMPLE, y)])];
        let band = |style: Style| {
            let frame = Frame { left: x, top: y - 6.0, right: x + SAMPLE, bottom: y + 6.0 };
            let edge = |y| [(frame.left, y), (frame.right, y)];
            let lines = hatch(style.hatch, &edge(frame.top), &edge(frame.bottom), frame);
            let area = style.shape("area", style.edge, vec![frame.outline()]);
            [area, style.shape("hatch", "", lines)]
        };
        let line = |style: Style| style.shape("line", style.dash, across());
        match self {
            Self::Line(style) => vec![line(style)],
            Self::Band(style) => band(style).into(),
            Self::BandWithLine(style) => band(style).into_iter().chain([line(style)]).collect(),
            Self::Mark(style) => {
                let marks =
                    [4.0, SAMPLE / 2.0, SAMPLE - 4.0].map(|dx| mark(style.mark, (x + dx, y)));
                vec![style.shape("dot", "", marks.into())]
            }
            Self::Reference(dash) => vec![Shape { dash, ..Shape::new("ref", across()) }],
        }
    }
}

/// Names and samples of one chart, or of a figure whose charts all have the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Legend {
    pub entries: Vec<(String, LegendSample)>,
}

/// An entry in its place: the sample's left end and middle, and the lines of its name.
struct Placed {
    x: f64,
    y: f64,
    lines: Vec<String>,
    sample: LegendSample,
}

impl Legend {
    /// Height on a chart of the given width.
    pub fn height(&self, width: f64) -> f64 {
        self.place(width).1
    }

    /// Draws with its upper left corner at a point.
    pub fn draw(&self, width: f64, (x, y): Point) -> Vec<Element> {
        let mut items = Vec::new();
        for entry in self.place(width).0 {
            let (x, y) = (x + entry.x, y + entry.y);
            items.extend(entry.sample.draw(x, y).into_iter().map(Element::Shape));
            let at = (x + SAMPLE + GAP, y + 0.35 * LEGEND.size);
            items.extend(text(at, Anchor::Start, LEGEND, &entry.lines));
        }
        items
    }

    fn place(&self, width: f64) -> (Vec<Placed>, f64) {
        let names: Vec<Vec<String>> = self
            .entries
            .iter()
            .map(|(label, _)| LEGEND.wrap(label, width - SAMPLE - GAP))
            .collect();
        let wide = |lines: &Vec<String>| {
            SAMPLE + GAP + lines.iter().map(|line| LEGEND.width(line)).fold(0.0, f64::max)
        };
        let widths = |columns: usize| -> Vec<f64> {
            let column = |c: usize| names.iter().skip(c).step_by(columns).map(wide);
            (0..columns).map(|c| column(c).fold(0.0, f64::max)).collect()
        };
        let fits = |columns: &usize| {
            let between = BETWEEN.0 * (*columns as f64 - 1.0);
            widths(*columns).iter().sum::<f64>() + between <= width
        };
        let columns = (1..=names.len()).rev().find(fits).unwrap_or(1);
        let widths = widths(columns);
        let spare = (width - widths.iter().sum::<f64>()) / (columns as f64 - 1.0).max(1.0);
        let between = spare.clamp(BETWEEN.0, BETWEEN.1);

        let mut placed = Vec::new();
        let mut y = 0.0;
        for (row, lines) in names.chunks(columns).enumerate() {
            let mut x = 0.0;
            let single = LEGEND.leading() + 3.0;
            for (column, lines) in lines.iter().enumerate() {
                let sample = self.entries[row * columns + column].1;
                placed.push(Placed { x, y: y + single / 2.0, lines: lines.clone(), sample });
                x += widths[column] + between;
            }
            let tallest = lines.iter().map(Vec::len).max().unwrap_or(1);
            y += single + tallest.saturating_sub(1) as f64 * LEGEND.leading();
        }
        (placed, y)
    }
}
