//! Text as outlines of DejaVu Sans: every machine draws the same PNG.

use tiny_skia::{Path, PathBuilder, Transform};
use ttf_parser::{Face, FaceParsingError, GlyphId, OutlineBuilder};

use super::font::{RAISED, runs};
use super::shapes::{Anchor, TextLine};

/// The two faces of the plots.
pub(super) struct Faces {
    regular: Face<'static>,
    bold: Face<'static>,
}

impl Faces {
    pub fn new() -> Result<Self, FaceParsingError> {
        let face = |data| Face::parse(data, 0);
        Ok(Self { regular: face(dejavu::sans::regular())?, bold: face(dejavu::sans::bold())? })
    }

    /// The letters along a baseline from (0, 0) to the right, `None` where nothing is to be drawn,
    /// and the way from there into the picture.
    pub fn outline(&self, text: &TextLine) -> (Option<Path>, Transform) {
        let mut pen = Pen {
            face: if text.font.bold { &self.bold } else { &self.regular },
            path: PathBuilder::new(),
            scale: 0.0,
            at: (0.0, 0.0),
        };
        let size = text.font.size;
        for (raised, run) in runs(&text.content) {
            let (size, rise) =
                if raised { (size * RAISED.0, size * RAISED.0 * RAISED.1) } else { (size, 0.0) };
            pen.write(&run, size as f32, rise as f32);
        }
        let before = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => pen.at.0 / 2.0,
            Anchor::End => pen.at.0,
        };
        let turn = if text.turned { -90.0 } else { 0.0 };
        let place = Transform::from_translate(text.at.0 as f32, text.at.1 as f32);
        (pen.path.finish(), place.pre_rotate(turn).pre_translate(-before, 0.0))
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
