//! A figure as PNG: the SVG of [`svg::draw`], of which only the elements and attributes that it
//! writes are known here. A general SVG renderer would take longer to compile than all other plots.

use anyhow::{Context, Result};
use roxmltree::{Document, Node};
use tiny_skia::{
    Color, FillRule, LineJoin, Mask, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, StrokeDash,
    Transform,
};

use super::glyphs::Faces;
use super::theme::{CURRENT, PAINTS, SERIES, colour};
use super::{Figure, Theme, svg};

/// The figure as PNG bytes at `scale` pixels to one of the SVG; 2 suits print and screens.
pub fn render(figure: &Figure, theme: Theme, scale: f32) -> Result<Vec<u8>> {
    // Which theme the reader prefers is not known here.
    let theme = if theme == Theme::Auto { Theme::Light } else { theme };
    let drawn = svg::draw(figure, theme, false);
    let document = Document::parse(&drawn).context("reading the plot's own SVG")?;
    let root = document.root_element();
    let pixels = |name| (number(root, name) * scale).ceil() as u32;
    let (width, height) = (pixels("width"), pixels("height"));
    let mut canvas = Canvas {
        image: Pixmap::new(width, height)
            .with_context(|| format!("cannot make an image of {width} by {height} pixels"))?,
        transform: Transform::from_scale(scale, scale),
        theme,
        faces: Faces::new().context("reading the fonts of the plots")?,
    };
    canvas.children(root, None, None);
    canvas.image.encode_png().context("encoding a plot as PNG")
}

struct Canvas {
    image: Pixmap,
    transform: Transform,
    theme: Theme,
    faces: Faces,
}

impl Canvas {
    /// Draws what is inside an element, in the colour of a series and clipped by a mask.
    fn children(&mut self, parent: Node, series: Option<&str>, mask: Option<&Mask>) {
        for element in parent.children().filter(Node::is_element) {
            let class = element.attribute("class").unwrap_or("");
            match element.tag_name().name() {
                "g" => {
                    let named = SERIES.iter().any(|colour| colour.0 == class);
                    self.children(element, if named { Some(class) } else { series }, mask);
                }
                "svg" => {
                    let mask = Mask::new(self.image.width(), self.image.height());
                    let frame = rectangle(element);
                    let clip = mask.zip(frame).map(|(mut mask, frame)| {
                        mask.fill_path(&frame, FillRule::Winding, true, self.transform);
                        mask
                    });
                    self.children(element, series, clip.as_ref());
                }
                "rect" => self.shape(element, class, rectangle(element), series, mask),
                "path" => {
                    let path = path(element.attribute("d").unwrap_or(""));
                    self.shape(element, class, path, series, mask);
                }
                "text" => {
                    let text = self.faces.outline(element);
                    let paint = self.paint(if text.muted { "muted" } else { "ink" }, series, 1.0);
                    if let (Some(path), Some(paint)) = (text.path, paint) {
                        let place = self.transform.pre_concat(text.place);
                        self.image.fill_path(&path, &paint, FillRule::Winding, place, mask);
                    }
                }
                _ => {}
            }
        }
    }

    fn shape(
        &mut self,
        element: Node,
        class: &str,
        path: Option<Path>,
        series: Option<&str>,
        mask: Option<&Mask>,
    ) {
        let (Some(path), Some(paints)) = (path, PAINTS.iter().find(|p| p.class == class)) else {
            return;
        };
        if let Some((name, opacity)) = paints.fill
            && let Some(paint) = self.paint(name, series, opacity)
        {
            self.image.fill_path(&path, &paint, FillRule::Winding, self.transform, mask);
        }
        if let Some((name, opacity, width)) = paints.stroke
            && let Some(paint) = self.paint(name, series, opacity)
        {
            let dashes = element.attribute("stroke-dasharray").unwrap_or("");
            let dashes = dashes.split(' ').filter_map(|length| length.parse().ok()).collect();
            let line_join = if class == "line" { LineJoin::Round } else { LineJoin::Miter };
            let dash = StrokeDash::new(dashes, 0.0);
            let stroke = Stroke { width, line_join, dash, ..Stroke::default() };
            self.image.stroke_path(&path, &paint, &stroke, self.transform, mask);
        }
    }

    /// Paint of a named colour, `#rrggbb` in the theme.
    fn paint(&self, name: &str, series: Option<&str>, opacity: f32) -> Option<Paint<'static>> {
        let hex = colour(if name == CURRENT { series? } else { name }, self.theme)?;
        let channel = |i: usize| u8::from_str_radix(hex.get(i..i + 2)?, 16).ok();
        let mut colour = Color::from_rgba8(channel(1)?, channel(3)?, channel(5)?, 255);
        colour.set_alpha(opacity);
        let mut paint = Paint::default();
        paint.set_color(colour);
        Some(paint)
    }
}

pub(super) fn number(element: Node, name: &str) -> f32 {
    element.attribute(name).and_then(|value| value.parse().ok()).unwrap_or(0.0)
}

fn rectangle(element: Node) -> Option<Path> {
    let [x, y, width, height] = ["x", "y", "width", "height"].map(|name| number(element, name));
    Rect::from_xywh(x, y, width, height).map(PathBuilder::from_rect)
}

/// Path data of the kinds that `marks` writes: `M`, relative `l` and `Z`, and half circles `a`.
pub(super) fn path(data: &str) -> Option<Path> {
    let mut builder = PathBuilder::new();
    let (mut x, mut y) = (0.0, 0.0);
    let mut rest = data;
    while let Some(command) = rest.chars().next() {
        let body = &rest[command.len_utf8()..];
        let end = body.find(char::is_alphabetic).unwrap_or(body.len());
        let spaced = body[..end].replace('-', " -");
        let numbers: Vec<f32> = spaced.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        match (command, numbers.as_slice()) {
            ('M', &[to_x, to_y]) => {
                (x, y) = (to_x, to_y);
                builder.move_to(x, y);
            }
            ('l', steps) => {
                for step in steps.chunks_exact(2) {
                    (x, y) = (x + step[0], y + step[1]);
                    builder.line_to(x, y);
                }
            }
            // Radius (twice), rotation, two flags, and the way across.
            ('a', &[_, _, _, _, _, across, _]) => {
                let radius = across / 2.0;
                // A quarter of a circle as a cubic curve.
                let handle = 0.552_284_8 * radius;
                let (middle, end, bottom) = (x + radius, x + across, y + radius);
                builder.cubic_to(x, y + handle, middle - handle, bottom, middle, bottom);
                builder.cubic_to(middle + handle, bottom, end, y + handle, end, y);
                x = end;
            }
            _ => builder.close(),
        }
        rest = &body[end..];
    }
    builder.finish()
}
