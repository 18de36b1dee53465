//! Colours, dash patterns and the style sheet.

/// Which colours a picture has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Dark on white, for print.
    Light,
    /// Light on near-black.
    Dark,
    /// Follows the reader's system, by CSS; only a browser can. Elsewhere light.
    Auto,
}

/// Name of a colour in the style sheet, its value on white, and its value on near-black.
type Colour = (&'static str, &'static str, &'static str);

#[rustfmt::skip]
const SURFACE: [Colour; 5] = [
    ("bg",    "#ffffff", "#14171c"),
    ("ink",   "#1c2126", "#e8ebee"),
    ("muted", "#57606a", "#a3acb5"),
    ("frame", "#8a939c", "#6d7681"),
    ("grid",  "#e9ebee", "#262c34"),
];

/// The palette of Okabe and Ito (2008), told apart by colour-blind readers, with the
/// colours that are pale on white last. Its yellow is left out (invisible on white) and its blue is
/// lighter on a dark background.
#[rustfmt::skip]
pub(super) const SERIES: [Colour; 7] = [
    ("c0", "#0072b2", "#3d9bdc"), // blue
    ("c1", "#d55e00", "#e8711a"), // vermillion
    ("c2", "#009e73", "#0fb488"), // bluish green
    ("c3", "#cc79a7", "#d88ab5"), // reddish purple
    ("c4", "#1c2126", "#e8ebee"), // black
    ("c5", "#e69f00", "#e69f00"), // orange
    ("c6", "#56b4e9", "#8fd0f5"), // sky blue
];

/// From few to many: dark to light with even steps in lightness, by the map viridis (Smith and van der
/// Walt 2015), which the colour-blind can read and which prints in grey.
#[rustfmt::skip]
pub(super) const SEQUENTIAL: [Colour; 12] = [
    ("s0", "#440154", "#440154"), ("s1", "#482173", "#482173"), ("s2", "#433e85", "#433e85"),
    ("s3", "#38598c", "#38598c"), ("s4", "#2d708e", "#2d708e"), ("s5", "#25858e", "#25858e"),
    ("s6", "#1e9b8a", "#1e9b8a"), ("s7", "#2ab07f", "#2ab07f"), ("s8", "#52c569", "#52c569"),
    ("s9", "#86d549", "#86d549"), ("s10", "#c2df23", "#c2df23"), ("s11", "#fde725", "#fde725"),
];

/// Below and above a middle: from the blue of the series over near-white to their vermillion.
#[rustfmt::skip]
pub(super) const DIVERGING: [Colour; 13] = [
    ("d0", "#005a8f", "#005a8f"), ("d1", "#1f7ab5", "#1f7ab5"), ("d2", "#5799c7", "#5799c7"),
    ("d3", "#8ab8d9", "#8ab8d9"), ("d4", "#b5d2e6", "#b5d2e6"), ("d5", "#dae7f0", "#dae7f0"),
    ("d6", "#f5f5f5", "#f5f5f5"),
    ("d7", "#fbe3d2", "#fbe3d2"), ("d8", "#f6c5a2", "#f6c5a2"), ("d9", "#efa36e", "#efa36e"),
    ("d10", "#e5823d", "#e5823d"), ("d11", "#d55e00", "#d55e00"), ("d12", "#a84a00", "#a84a00"),
];

/// For a cell without a number.
pub(super) const MISSING: Colour = ("gap", "#b4bac1", "#4a525b");

/// A colour by its name in the style sheet; [`Theme::Auto`] is light here.
pub(super) fn colour(name: &str, theme: Theme) -> Option<&'static str> {
    let (_, light, dark) =
        SURFACE.iter().chain(&SERIES).chain(heat_colours()).find(|colour| colour.0 == name)?;
    Some(if theme == Theme::Dark { dark } else { light })
}

/// Every colour of a heat map.
fn heat_colours() -> impl Iterator<Item = &'static Colour> {
    SEQUENTIAL.iter().chain(&DIVERGING).chain([&MISSING])
}

/// The colour of the series, which the group around a shape gives.
pub(super) const CURRENT: &str = "currentColor";

/// How a class of shapes is painted.
pub(super) struct Paint {
    pub class: &'static str,
    /// Colour and opacity.
    pub fill: Option<(&'static str, f32)>,
    /// Colour, opacity and width.
    pub stroke: Option<(&'static str, f32, f32)>,
}

#[rustfmt::skip]
pub(super) const PAINTS: [Paint; 9] = [
    Paint { class: "bg", fill: Some(("bg", 1.0)), stroke: None },
    Paint { class: "grid", fill: None, stroke: Some(("grid", 1.0, 1.0)) },
    Paint { class: "frame", fill: None, stroke: Some(("frame", 1.0, 1.0)) },
    Paint { class: "ref", fill: None, stroke: Some(("muted", 1.0, 1.4)) },
    Paint { class: "line", fill: None, stroke: Some((CURRENT, 1.0, 2.2)) },
    Paint { class: "area", fill: Some((CURRENT, 0.16)), stroke: Some((CURRENT, 0.7, 1.0)) },
    Paint { class: "hatch", fill: None, stroke: Some((CURRENT, 0.55, 0.9)) },
    // The edge closes the seam between neighbours.
    Paint { class: "cell", fill: Some((CURRENT, 1.0)), stroke: Some((CURRENT, 1.0, 0.6)) },
    Paint { class: "dot", fill: Some((CURRENT, 1.0)), stroke: Some(("bg", 1.0, 0.8)) },
];

/// Patterns by order of appearance, to tell curves apart without colour.
pub(super) const LINES: [&str; 6] = ["", "15 4", "11 3 2.5 3", "2.5 3", "11 3 2.5 3 2.5 3", "7 2"];
/// The same for dashed curves: shorter, to be told from the curves above.
pub(super) const DASHES: [&str; 4] = ["6 4", "4 3 1.5 3", "3.5 2", "1.5 2"];
/// Edges of bands.
pub(super) const BANDS: [&str; 3] = ["", "4 2", "1.5 2"];
/// Reference lines.
pub(super) const REFERENCES: [&str; 3] = ["5 4", "1.5 3", "9 3 1.5 3"];

/// Every rule starts from this class of the root: a style inside an SVG that is put into a page
/// holds for the whole page.
pub(super) const ROOT: &str = "toclip-plot";

/// The style sheet; with the colours of heat maps where there is one.
pub(super) fn style_sheet(theme: Theme, heat: bool) -> String {
    let maps = || heat_colours().filter(|_| heat);
    let colours = || SURFACE.iter().chain(&SERIES).chain(maps());
    let mut css = String::new();
    if theme == Theme::Auto {
        let light: String =
            colours().map(|(name, light, _)| format!("--{name}:{light};")).collect();
        let dark: String = colours().map(|(name, _, dark)| format!("--{name}:{dark};")).collect();
        css.push_str(&format!(".{ROOT}{{{light}}}\n"));
        css.push_str(&format!("@media(prefers-color-scheme:dark){{.{ROOT}{{{dark}}}}}\n"));
    }
    let value = |name: &str| match theme {
        _ if name == CURRENT => CURRENT.to_owned(),
        Theme::Auto => format!("var(--{name})"),
        _ => colour(name, theme).unwrap_or("none").to_owned(),
    };
    let (ink, muted) = (value("ink"), value("muted"));
    css += &format!(include_str!("style.css"), root = ROOT, ink = ink, muted = muted);
    let mut rule = |class: &str, body: &str| {
        css.push_str(&format!(".{ROOT} .{class}{{{body}}}\n"));
    };
    for Paint { class, fill, stroke } in PAINTS.iter().filter(|paint| heat || paint.class != "cell")
    {
        let fill = match fill {
            None => "fill:none".into(),
            Some((name, 1.0)) => format!("fill:{}", value(name)),
            Some((name, opacity)) => format!("fill:{};fill-opacity:{opacity}", value(name)),
        };
        let stroke = stroke.map_or(String::new(), |(name, opacity, width)| {
            format!(";stroke:{};stroke-opacity:{opacity};stroke-width:{width}", value(name))
        });
        rule(class, &(fill + &stroke));
    }
    for colour in SERIES.iter().chain(maps()) {
        rule(colour.0, &format!("color:{}", value(colour.0)));
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contrast of two colours after WCAG 2: 3 is asked of graphics, 4.5 of text.
    fn contrast(a: &str, b: &str) -> f64 {
        let luminance = |hex: &str| {
            let channel = |i: usize| {
                let c = f64::from(u8::from_str_radix(&hex[i..i + 2], 16).unwrap()) / 255.0;
                if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
        };
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_and_curves_stand_out_on_both_grounds() {
        let [bg, ink, muted, ..] = SURFACE;
        for text in [ink, muted] {
            assert!(contrast(text.1, bg.1) >= 4.5 && contrast(text.2, bg.2) >= 4.5);
        }
        for (i, (name, light, dark)) in SERIES.into_iter().enumerate() {
            let (light, dark) = (contrast(light, bg.1), contrast(dark, bg.2));
            assert!(dark >= 3.0, "{name} {dark}");
            // The two pale ones come last, for charts of more than five curves.
            assert!(light >= if i < 5 { 3.0 } else { 2.2 }, "{name} {light}");
        }
    }

    #[test]
    fn no_two_patterns_are_alike() {
        let mut all: Vec<&str> = LINES.iter().chain(&DASHES).copied().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), LINES.len() + DASHES.len());
    }

    #[test]
    fn only_the_automatic_theme_needs_a_browser() {
        assert!(style_sheet(Theme::Auto, false).contains("prefers-color-scheme:dark"));
        for theme in [Theme::Light, Theme::Dark] {
            let css = style_sheet(theme, true);
            assert!(!css.contains("var(") && !css.contains("@media"));
        }
    }
}
