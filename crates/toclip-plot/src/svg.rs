//! A figure as SVG.

use super::compose::compose;
use super::font::{escape, markup};
use super::shapes::{Anchor, Element, Frame, Outline, RADIUS, Shape, TextLine};
use super::simplify::Point;
use super::theme::{ROOT, style_sheet};
use super::{Figure, Theme};

/// The figure as one SVG element with its style; values show under the pointer.
pub fn render(figure: &Figure, theme: Theme) -> String {
    let drawing = compose(figure);
    let (width, height) = (drawing.width, drawing.height);
    let heat = figure.charts.iter().any(|chart| chart.heat.is_some());
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{ROOT}\" role=\"img\" \
         width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n"
    );
    svg.push_str(&format!("<title>{}</title>\n", escape(&name(figure))));
    svg.push_str(&format!("<desc>{}</desc>\n", escape(&description(figure))));
    svg.push_str(&format!("<style>\n{}</style>\n", style_sheet(theme, heat)));
    for item in &drawing.items {
        match item {
            Element::Shape(shape) => svg.push_str(&path(shape)),
            Element::TextLine(line) => svg.push_str(&text(line)),
            Element::Clipped(Frame { left, top, right, bottom }, shapes) => {
                // An inner svg clips to the frame without an id, which might be taken in a page.
                let [x, y, w, h] = [*left, *top, right - left, bottom - top].map(num);
                let inside: String = shapes.iter().map(path).collect();
                svg.push_str(&format!(
                    "<svg x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" \
                     viewBox=\"{x} {y} {w} {h}\">\n{inside}</svg>\n"
                ));
            }
        }
    }
    svg + "</svg>\n"
}

/// The name that a screen reader says first.
fn name(figure: &Figure) -> String {
    let titles = figure.charts.iter().map(|chart| chart.title.as_str());
    let all: Vec<&str> =
        std::iter::once(figure.title.as_str()).chain(titles).filter(|t| !t.is_empty()).collect();
    if all.is_empty() { "Plot".into() } else { all.join(": ") }
}

fn description(figure: &Figure) -> String {
    let describe = |chart: &super::Chart| {
        let series = chart.series.iter().map(|series| series.label.as_str());
        let lines = chart.lines.iter().map(|line| line.label.as_str());
        let map = chart.heat.iter().map(|map| map.label.as_str());
        let names: Vec<&str> =
            series.chain(lines).chain(map).filter(|name| !name.is_empty()).collect();
        format!("{} against {}: {}.", chart.y.label, chart.x.label, names.join(", "))
    };
    figure.charts.iter().map(describe).collect::<Vec<_>>().join(" ")
}

/// One line of text.
fn text(TextLine { at: (x, y), anchor, font, turned, content }: &TextLine) -> String {
    let classes = [
        (font.bold, " b"),
        (font.muted, " q"),
        (*anchor == Anchor::Middle, " mid"),
        (*anchor == Anchor::End, " end"),
    ];
    let classes: String = classes.iter().filter(|(has, _)| *has).map(|(_, class)| *class).collect();
    let mut attributes = attribute("class", classes.trim_start());
    let (x, y) = (num(*x), num(*y));
    if *turned {
        attributes += &attribute("transform", &format!("rotate(-90 {x} {y})"));
    }
    let (size, content) = (font.size, markup(content));
    format!("<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{attributes}>{content}</text>\n")
}

/// One path element; nothing for nothing.
fn path(shape: &Shape) -> String {
    if shape.outlines.is_empty() {
        return String::new();
    }
    let class = format!("{} {}", shape.class, shape.colour);
    let attributes =
        attribute("class", class.trim_end()) + &attribute("stroke-dasharray", shape.dash);
    let d: String = shape.outlines.iter().map(path_data).collect();
    match &*shape.title {
        "" => format!("<path{attributes} d=\"{d}\"/>\n"),
        title => format!("<path{attributes} d=\"{d}\"><title>{}</title></path>\n", escape(title)),
    }
}

/// An attribute, unless it is empty.
fn attribute(name: &str, value: &str) -> String {
    if value.is_empty() { String::new() } else { format!(" {name}=\"{value}\"") }
}

fn path_data(outline: &Outline) -> String {
    match outline {
        Outline::Line(points) => steps(points),
        Outline::Polygon(corners) => steps(corners) + "Z",
        &Outline::Circle((x, y)) => {
            let (r, across) = (RADIUS, 2.0 * RADIUS);
            let start = steps(&[(x - r, y)]);
            format!("{start}a{r} {r} 0 1 0 {across} 0a{r} {r} 0 1 0-{across} 0Z")
        }
    }
}

/// Path data through points: to a tenth of a pixel and as steps, a third of the length.
fn steps(points: &[Point]) -> String {
    let tenths = |v: f64| (within_reach(v) * 10.0).round() as i64;
    let mut d = String::new();
    let mut last = (0, 0);
    for (i, &(x, y)) in points.iter().enumerate() {
        let here = (tenths(x), tenths(y));
        for (j, step) in [here.0 - last.0, here.1 - last.1].into_iter().enumerate() {
            match (i, j) {
                (0, 0) => d.push('M'),
                (1, 0) => d.push('l'),
                // A minus sign separates too.
                _ if step >= 0 => d.push(' '),
                _ => {}
            }
            d.push_str(&tenth(step));
        }
        last = here;
    }
    d
}

/// A number of tenths, without a leading zero.
fn tenth(n: i64) -> String {
    let sign = if n < 0 { "-" } else { "" };
    match (n.abs() / 10, n.abs() % 10) {
        (whole, 0) => format!("{sign}{whole}"),
        (0, tenths) => format!("{sign}.{tenths}"),
        (whole, tenths) => format!("{sign}{whole}.{tenths}"),
    }
}

/// A coordinate to a hundredth of a pixel.
fn num(v: f64) -> String {
    let rounded = (within_reach(v) * 100.0).round() / 100.0;
    // Adding zero turns −0 into 0.
    format!("{}", rounded + 0.0)
}

/// Brings a coordinate far outside the frame nearer, to where single-precision renderers still have
/// digits.
pub(super) fn within_reach(v: f64) -> f64 {
    v.clamp(-1e5, 1e5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_never_wild() {
        assert_eq!(num(1.0 / 3.0), "0.33");
        assert_eq!(num(-0.001), "0");
        assert_eq!(num(1e300), "100000");
        assert_eq!(steps(&[(1.0, 2.04), (1.26, 2.0), (-1e300, 2.5)]), "M1 2l.3 0-100001.3 .5");
        let circle = path_data(&Outline::Circle((10.0, 5.0)));
        assert_eq!(circle, "M6.6 5a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0Z");
    }

    #[test]
    fn steps_do_not_drift_from_the_points() {
        let points: Vec<Point> = (0..500)
            .map(|i| f64::from(i) * 0.77)
            .map(|x| (200.0 + x * (x / 9.0).cos(), 200.0 + x * (x / 7.0).sin()))
            .collect();
        let numbers = steps(&points).replace(['M', 'l'], " ").replace('-', " -");
        let numbers: Vec<f64> = numbers.split_whitespace().map(|n| n.parse().unwrap()).collect();
        assert_eq!(numbers.len(), 2 * points.len());
        let (mut x, mut y) = (0.0, 0.0);
        for (step, point) in numbers.chunks_exact(2).zip(&points) {
            (x, y) = (x + step[0], y + step[1]);
            assert!((x - point.0).abs() < 0.051 && (y - point.1).abs() < 0.051, "{point:?}");
        }
    }
}
