//! A figure as shapes and lines of text, from which SVG and PNG are written.

use super::font::Font;
use super::simplify::Point;

/// Radius of a round mark.
pub(super) const RADIUS: f64 = 3.4;

/// A figure in pixels.
pub(super) struct Drawing {
    pub width: f64,
    pub height: f64,
    pub items: Vec<Element>,
}

/// One thing to draw.
pub(super) enum Element {
    Shape(Shape),
    TextLine(TextLine),
    /// Shapes that are cut off at a frame.
    Clipped(Frame, Vec<Shape>),
}

/// Outlines that are painted alike.
#[derive(Clone, Debug, Default)]
pub(super) struct Shape {
    /// Its paint in the theme.
    pub class: &'static str,
    /// The colour of its series, where it belongs to one.
    pub colour: &'static str,
    /// Lengths of dashes and gaps; empty for a solid line.
    pub dash: &'static str,
    pub outlines: Vec<Outline>,
    /// Shown under the pointer; empty for none.
    pub title: String,
}

impl Shape {
    pub fn new(class: &'static str, outlines: Vec<Outline>) -> Self {
        Shape { class, outlines, ..Shape::default() }
    }
}

/// A line, a polygon or a round mark.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outline {
    Line(Vec<Point>),
    Polygon(Vec<Point>),
    Circle(Point),
}

/// A rectangle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Frame {
    pub fn outline(self) -> Outline {
        let Frame { left, top, right, bottom } = self;
        Outline::Polygon(vec![(left, top), (right, top), (right, bottom), (left, bottom)])
    }
}

/// One line of text.
#[derive(Clone, Debug)]
pub(super) struct TextLine {
    /// Where the baseline starts, has its middle or ends.
    pub at: Point,
    pub anchor: Anchor,
    pub font: Font,
    /// Reads upwards.
    pub turned: bool,
    pub content: String,
}

/// Which point of a text its place means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Lines of text from a first baseline downwards.
pub(super) fn text<'a>(
    (x, y): Point,
    anchor: Anchor,
    font: Font,
    lines: impl IntoIterator<Item = &'a String>,
) -> impl Iterator<Item = Element> {
    lines.into_iter().enumerate().map(move |(i, line)| {
        let at = (x, y + i as f64 * font.leading());
        Element::TextLine(TextLine { at, anchor, font, turned: false, content: line.clone() })
    })
}
