//! Text: how wide it is, where it breaks, and how it is written into XML.

/// Advance widths of DejaVu Sans for ' ' to '~' in hundredths of an em. It is among the widest
/// of the fonts a browser may choose, so what fits in it fits everywhere.
#[rustfmt::skip]
const ADVANCE: [u8; 95] = [
    32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75,
    79, 60, 79, 69, 63, 61, 73, 68, 99, 69, 61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35,
    63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84,
];

/// Size of a superscript as a share of its text, and how far it is raised in its own em.
pub(super) const RAISED: (f64, f64) = (0.7, 0.5);

/// A face in which text is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Font {
    pub size: f64,
    pub bold: bool,
    /// In the muted colour.
    pub muted: bool,
}

impl Font {
    /// Width of a line in pixels.
    pub fn width(self, text: &str) -> f64 {
        let ems: f64 = text.chars().map(advance).sum();
        // Bold letters are 7 to 20 % wider, by 12 % on average over running text.
        ems * self.size * if self.bold { 1.14 } else { 1.0 }
    }

    /// Distance from line to line.
    pub fn leading(self) -> f64 {
        (self.size * 1.3).round()
    }

    /// Breaks text between words into lines of at most `room` pixels, and inside a word only
    /// where it is wider than a whole line. Empty text has no lines.
    pub fn wrap(self, text: &str, room: f64) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            if let Some(line) = lines.last_mut()
                && self.width(line) + self.width(" ") + self.width(word) <= room
            {
                line.push(' ');
                line.push_str(word);
                continue;
            }
            let mut piece = String::new();
            for c in word.chars() {
                piece.push(c);
                if self.width(&piece) > room && piece.chars().count() > 1 {
                    piece.pop();
                    lines.push(std::mem::replace(&mut piece, c.into()));
                }
            }
            lines.push(piece);
        }
        lines
    }
}

fn advance(c: char) -> f64 {
    match c {
        ' '..='~' => f64::from(ADVANCE[c as usize - ' ' as usize]) / 100.0,
        _ if lowered(c).is_some() => lowered(c).map_or(0.0, advance) * RAISED.0,
        '·' => 0.32,
        '−' | '×' | '≤' | '≥' | '≈' | '∞' | 'ω' => 0.84,
        '\u{300}'..='\u{36f}' => 0.0,
        // Ideographs and most symbols are square; letters of other scripts are not.
        '\u{2e80}'.. => 1.0,
        _ => 0.68,
    }
}

/// Superscripts and their plain form.
#[rustfmt::skip]
pub(super) const SUPERSCRIPTS: [(char, char); 12] = [
    ('⁰', '0'), ('¹', '1'), ('²', '2'), ('³', '3'), ('⁴', '4'), ('⁵', '5'),
    ('⁶', '6'), ('⁷', '7'), ('⁸', '8'), ('⁹', '9'), ('⁻', '−'), ('⁺', '+'),
];

/// The plain form of a superscript digit or sign.
fn lowered(c: char) -> Option<char> {
    SUPERSCRIPTS.iter().find(|(raised, _)| *raised == c).map(|(_, plain)| *plain)
}

/// Text as XML or HTML, also between double quotes. Characters that neither allows become U+FFFD.
///
/// ```
/// assert_eq!(toclip_plot::escape("a < \"b\""), "a &lt; &quot;b&quot;");
/// ```
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' | '\r' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Stretches of superscripts, in their plain form, and of other characters; true for superscripts.
pub(super) fn runs(text: &str) -> Vec<(bool, String)> {
    let raised = |c: &char| lowered(*c).is_some();
    let characters: Vec<char> = text.chars().collect();
    let run =
        |run: &[char]| (raised(&run[0]), run.iter().map(|&c| lowered(c).unwrap_or(c)).collect());
    characters.chunk_by(|a, b| raised(a) == raised(b)).map(run).collect()
}

/// The content of a `<text>`: escaped, and superscripts set as raised ordinary digits, since
/// many fonts have ¹²³ but borrow the other superscripts from a font of another size.
pub(super) fn markup(text: &str) -> String {
    let mut out = String::new();
    for (raised, run) in runs(text) {
        let (size, shift, run) = (RAISED.0 * 100.0, RAISED.1, escape(&run));
        out += &match (raised, out.is_empty()) {
            (true, _) => format!("<tspan dy=\"-{shift}em\" font-size=\"{size}%\">{run}</tspan>"),
            (false, true) => run,
            // An em here is the full size again, so the way down is a smaller number of them.
            (false, false) => format!("<tspan dy=\"{}em\">{run}</tspan>", RAISED.0 * shift),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::shapes::{Anchor, TextLine};
    use super::*;

    const PLAIN: Font = Font { size: 10.0, bold: false, muted: false };

    #[test]
    fn lines_fit_their_room_and_lose_no_word() {
        let text =
            "The risk of clipped SGD under heavy-tailed noise, with a Supercalifragilistic word";
        for room in [20.0, 60.0, 100.0, 300.0] {
            let lines = PLAIN.wrap(text, room);
            assert!(lines.iter().all(|line| PLAIN.width(line) <= room));
            assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
        }
        assert!(PLAIN.wrap("  \n ", 50.0).is_empty());
        assert_eq!(PLAIN.wrap("ab", 1.0), ["a", "b"]);
    }

    #[test]
    fn markup_is_well_formed_and_keeps_the_text() {
        for (text, read) in [
            ("a < b & \"c\" > 'd'", "a < b & \"c\" > 'd'"),
            ("10⁻³", "10−3"),
            ("μ²/ν ≥ 10⁴ x", "μ2/ν ≥ 104 x"),
            ("\u{0}\u{1b}[31m]]>", "\u{fffd}\u{fffd}[31m]]>"),
            ("²³ ²", "23 2"),
        ] {
            let xml = format!("<text>{}</text>", markup(text));
            let tree = roxmltree::Document::parse(&xml).unwrap();
            let found: String =
                tree.descendants().filter_map(|n| n.text().filter(|_| n.is_text())).collect();
            assert_eq!(found, read);
        }
    }

    #[test]
    fn widths_agree_with_the_font() {
        let faces = super::super::font_outlines::Faces::new().unwrap();
        for bold in [false, true] {
            for text in
                ["Threshold c", "C-SGD, 80 % band", "R(t) = 0.25", "WikiText-2 llama", "10⁻³"]
            {
                let font = Font { size: 20.0, bold, muted: false };
                let ink = |content: String| {
                    let (at, anchor) = ((0.0, 0.0), Anchor::Start);
                    let text = TextLine { at, anchor, font, turned: false, content };
                    f64::from(faces.outline(&text).0.unwrap().bounds().width())
                };
                // Bars on both sides, so that the ink spans the advances between.
                let measured = ink(format!("|{text}|")) - ink("||".into());
                let ratio = font.width(text) / measured;
                assert!((0.97..1.12).contains(&ratio), "{text:?} bold {bold}: {ratio}");
            }
        }
    }
}
