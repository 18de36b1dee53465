//! Text as outlines of DejaVu Sans, so that every machine draws the same PNG.

use roxmltree::Node;
use tiny_skia::{Path, PathBuilder, Transform};
use ttf_parser::{Face, FaceParsingError, GlyphId, OutlineBuilder};

use super::png::number;
use super::text::{RAISED, is_raised};

/// The two faces of the plots.
pub(super) struct Faces {
    regular: Face<'static>,
    bold: Face<'static>,
}

/// One `<text>` element as a shape.
pub(super) struct TextOutline {
    /// The letters along a baseline from (0, 0) to the right; `None` where nothing is to be drawn.
    pub path: Option<Path>,
    /// From there into the picture.
    pub place: Transform,
    /// Drawn in the muted colour.
    pub muted: bool,
}

impl Faces {
    pub fn new() -> Result<Self, FaceParsingError> {
        let face = |data| Face::parse(data, 0);
        Ok(Self { regular: face(dejavu::sans::regular())?, bold: face(dejavu::sans::bold())? })
    }

    /// The outline of a `<text>` element as `svg::draw` writes it: attributes `x`, `y` and
    /// `font-size`, classes `b`, `q`, `mid` and `end`, and a `transform` that is always a quarter
    /// turn to the left around (x, y).
    pub fn outline(&self, element: Node) -> TextOutline {
        let number = |name| number(element, name);
        let (x, y, size) = (number("x"), number("y"), number("font-size"));
        let has = |class| {
            element.attribute("class").is_some_and(|all| all.split(' ').any(|c| c == class))
        };
        let mut pen = Pen {
            face: if has("b") { &self.bold } else { &self.regular },
            path: PathBuilder::new(),
            scale: 0.0,
            at: (0.0, 0.0),
        };
        for run in element.descendants().filter(Node::is_text) {
            let (size, rise) = match run.parent().is_some_and(is_raised) {
                true => (size * RAISED.0 as f32, size * (RAISED.0 * RAISED.1) as f32),
                false => (size, 0.0),
            };
            pen.write(run.text().unwrap_or(""), size, rise);
        }
        let width = pen.at.0;
        let before = match () {
            () if has("mid") => width / 2.0,
            () if has("end") => width,
            () => 0.0,
        };
        let turn = if element.has_attribute("transform") { -90.0 } else { 0.0 };
        let place = Transform::from_translate(x, y).pre_rotate(turn).pre_translate(-before, 0.0);
        TextOutline { path: pen.path.finish(), place, muted: has("q") }
    }
}

/// Draws glyphs one after the other.
struct Pen<'a> {
    face: &'a Face<'static>,
    path: PathBuilder,
    /// Pixels per unit of the font.
    scale: f32,
    /// Where the next glyph starts; y points down.
    at: (f32, f32),
}

impl Pen<'_> {
    fn write(&mut self, text: &str, size: f32, rise: f32) {
        self.scale = size / f32::from(self.face.units_per_em());
        self.at.1 = -rise;
        let mut previous = None;
        for c in text.chars() {
            let glyph = self.face.glyph_index(c).unwrap_or_default();
            if let Some(previous) = previous {
                self.at.0 += self.scale * kerning(self.face, previous, glyph);
            }
            let face = self.face;
            // Spaces have no outline.
            let _ = face.outline_glyph(glyph, self);
            self.at.0 += self.scale * f32::from(face.glyph_hor_advance(glyph).unwrap_or(0));
            previous = Some(glyph);
        }
    }

    fn point(&self, x: f32, y: f32) -> (f32, f32) {
        (self.at.0 + self.scale * x, self.at.1 - self.scale * y)
    }
}

/// Correction of the distance between two glyphs, in units of the font.
fn kerning(face: &Face, left: GlyphId, right: GlyphId) -> f32 {
    let tables = face.tables().kern.iter().flat_map(|kern| kern.subtables);
    let pairs = tables.filter(|table| table.horizontal && !table.variable);
    pairs.filter_map(|table| table.glyphs_kerning(left, right)).map(f32::from).sum()
}

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.point(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.point(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.point(x1, y1), self.point(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) =
            (self.point(x1, y1), self.point(x2, y2), self.point(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
