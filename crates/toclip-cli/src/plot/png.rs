//! A figure as PNG.

use anyhow::{Context, Result};
use resvg::tiny_skia::{Color, FillRule, Paint, Pixmap, Transform};
use resvg::usvg::roxmltree::Document;
use resvg::usvg::{Options, Tree};

use super::glyphs::Faces;
use super::theme::text_colours;
use super::{Figure, Theme, svg};

/// The figure as PNG bytes at `scale` pixels to one of the SVG; 2 suits print and screens.
pub fn render(figure: &Figure, theme: Theme, scale: f32) -> Result<Vec<u8>> {
    // Which theme the reader prefers is not known here.
    let theme = if theme == Theme::Auto { Theme::Light } else { theme };
    let drawn = svg::draw(figure, theme, false);
    let document = Document::parse(&drawn).context("reading the plot's own SVG")?;
    let tree =
        Tree::from_xmltree(&document, &Options::default()).context("reading the plot's own SVG")?;
    let size = tree.size();
    let pixels = |length: f32| (length * scale).ceil() as u32;
    let (width, height) = (pixels(size.width()), pixels(size.height()));
    let mut image = Pixmap::new(width, height)
        .with_context(|| format!("cannot make an image of {width} by {height} pixels"))?;
    let transform = Transform::from_scale(scale, scale);
    resvg::render(&tree, transform, &mut image.as_mut());

    // resvg is built without its text feature, which would bring a text shaper; all text lies on
    // top of what it drew.
    let faces = Faces::new().context("reading the fonts of the plots")?;
    let (ink, muted) = text_colours(theme);
    for element in document.descendants().filter(|node| node.has_tag_name("text")) {
        let text = faces.outline(element);
        let Some(path) = text.path else { continue };
        let mut paint = Paint::default();
        paint.set_color(colour(if text.muted { muted } else { ink }));
        let place = transform.pre_concat(text.place);
        image.fill_path(&path, &paint, FillRule::Winding, place, None);
    }
    image.encode_png().context("encoding a plot as PNG")
}

/// A colour of the theme, `#rrggbb`.
fn colour(hex: &str) -> Color {
    let channel = |i: usize| hex.get(i..i + 2).and_then(|v| u8::from_str_radix(v, 16).ok());
    let [red, green, blue] = [1, 3, 5].map(|i| channel(i).unwrap_or(0));
    Color::from_rgba8(red, green, blue, 255)
}
