//! A figure as PNG, with a font of its own so that every machine gives the same picture.

use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::{Figure, Theme, svg};

/// The figure as PNG bytes at `scale` pixels to one of the SVG; 2 suits print and screens.
pub fn render(figure: &Figure, theme: Theme, scale: f32) -> Result<Vec<u8>> {
    // Which theme the reader prefers is not known here.
    let theme = if theme == Theme::Auto { Theme::Light } else { theme };
    let tree = parse(&svg::draw(figure, theme, false))?;
    let size = tree.size();
    let pixels = |length: f32| (length * scale).ceil() as u32;
    let (width, height) = (pixels(size.width()), pixels(size.height()));
    let mut image = Pixmap::new(width, height)
        .with_context(|| format!("cannot make an image of {width} by {height} pixels"))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut image.as_mut());
    image.encode_png().context("encoding a plot as PNG")
}

/// Reads SVG with the fonts of the plots.
pub(super) fn parse(svg: &str) -> Result<Tree> {
    static FONTS: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    let fonts = FONTS.get_or_init(|| {
        let mut fonts = fontdb::Database::new();
        for face in [dejavu::sans::regular(), dejavu::sans::bold()] {
            fonts.load_font_source(fontdb::Source::Binary(Arc::new(face)));
        }
        Arc::new(fonts)
    });
    let options = Options { fontdb: fonts.clone(), ..Options::default() };
    Tree::from_str(svg, &options).context("reading the plot's own SVG")
}
