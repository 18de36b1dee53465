//! A figure as PNG.

use anyhow::{Context, Result};
use tiny_skia::{
    Color, FillRule, LineJoin, Mask, Paint, PathBuilder, Pixmap, Stroke, StrokeDash, Transform,
};

use super::compose::compose;
use super::font_outlines::Faces;
use super::shapes::{Element, Outline, RADIUS, Shape};
use super::simplify::Point;
use super::svg::within_reach;
use super::theme::{CURRENT, PAINTS, colour};
use super::{Figure, Theme};

/// The figure as PNG bytes at `scale` pixels to one of the SVG; 2 suits print and screens.
pub fn render(figure: &Figure, theme: Theme, scale: f32) -> Result<Vec<u8>> {
    let drawing = compose(figure);
    let pixels = |length: f64| (length as f32 * scale).ceil() as u32;
    let (width, height) = (pixels(drawing.width), pixels(drawing.height));
    let image = Pixmap::new(width, height)
        .with_context(|| format!("cannot make an image of {width} by {height} pixels"))?;
    let faces = Faces::new().context("reading the fonts of the plots")?;
    let mut canvas = Canvas { image, transform: Transform::from_scale(scale, scale), theme };
    for item in &drawing.items {
        match item {
            Element::Shape(shape) => canvas.shape(shape, None),
            Element::TextLine(text) => {
                let (path, place) = faces.outline(text);
                let paint = canvas.paint(if text.font.muted { "muted" } else { "ink" }, 1.0);
                if let (Some(path), Some(paint)) = (path, paint) {
                    let place = canvas.transform.pre_concat(place);
                    canvas.image.fill_path(&path, &paint, FillRule::Winding, place, None);
                }
            }
            Element::Clipped(frame, shapes) => {
                let mut mask = Mask::new(width, height).context("clipping to the frame")?;
                if let Some(path) = path(&[frame.outline()]) {
                    mask.fill_path(&path, FillRule::Winding, true, canvas.transform);
                }
                shapes.iter().for_each(|shape| canvas.shape(shape, Some(&mask)));
            }
        }
    }
    canvas.image.encode_png().context("encoding a plot as PNG")
}

struct Canvas {
    image: Pixmap,
    transform: Transform,
    /// [`Theme::Auto`] is light here: which theme the reader prefers is not known.
    theme: Theme,
}

impl Canvas {
    fn shape(&mut self, shape: &Shape, mask: Option<&Mask>) {
        let paints = PAINTS.iter().find(|paint| paint.class == shape.class);
        let (Some(path), Some(paints)) = (path(&shape.outlines), paints) else { return };
        let named = |name| if name == CURRENT { shape.colour } else { name };
        if let Some((name, opacity)) = paints.fill
            && let Some(paint) = self.paint(named(name), opacity)
        {
            self.image.fill_path(&path, &paint, FillRule::Winding, self.transform, mask);
        }
        if let Some((name, opacity, width)) = paints.stroke
            && let Some(paint) = self.paint(named(name), opacity)
        {
            let dashes = shape.dash.split(' ').filter_map(|length| length.parse().ok()).collect();
            let line_join = if shape.class == "line" { LineJoin::Round } else { LineJoin::Miter };
            let dash = StrokeDash::new(dashes, 0.0);
            let stroke = Stroke { width, line_join, dash, ..Stroke::default() };
            self.image.stroke_path(&path, &paint, &stroke, self.transform, mask);
        }
    }

    /// Paint of a named colour, `#rrggbb` in the theme.
    fn paint(&self, name: &str, opacity: f32) -> Option<Paint<'static>> {
        let hex = colour(name, self.theme)?;
        let channel = |i: usize| u8::from_str_radix(hex.get(i..i + 2)?, 16).ok();
        let mut colour = Color::from_rgba8(channel(1)?, channel(3)?, channel(5)?, 255);
        colour.set_alpha(opacity);
        let mut paint = Paint::default();
        paint.set_color(colour);
        Some(paint)
    }
}

fn path(outlines: &[Outline]) -> Option<tiny_skia::Path> {
    let mut builder = PathBuilder::new();
    let near = |&(x, y): &Point| (within_reach(x) as f32, within_reach(y) as f32);
    for outline in outlines {
        match outline {
            Outline::Circle(centre) => {
                let (x, y) = near(centre);
                builder.push_circle(x, y, RADIUS as f32);
            }
            Outline::Line(points) | Outline::Polygon(points) => {
                for (i, (x, y)) in points.iter().map(near).enumerate() {
                    if i == 0 { builder.move_to(x, y) } else { builder.line_to(x, y) }
                }
                if matches!(outline, Outline::Polygon(_)) {
                    builder.close();
                }
            }
        }
    }
    builder.finish()
}
