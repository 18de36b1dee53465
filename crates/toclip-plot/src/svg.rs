//! A figure as SVG.

use super::layout::{
    CHART, HEADING, LABEL, LEGEND, Layout, NOTE, OFF, Panel, SUBTITLE, TICK, TITLE,
};
use super::series_svg::{num, path, shape};
use super::text::{Font, escape, markup};
use super::theme::{ROOT, style_sheet};
use super::{Direction, Figure, Theme, hover};

/// The figure as one SVG element with its style; values show under the pointer.
pub fn render(figure: &Figure, theme: Theme) -> String {
    draw(figure, theme, true)
}

/// `live` adds what only a pointer finds.
pub(super) fn draw(figure: &Figure, theme: Theme, live: bool) -> String {
    let layout = Layout::of(figure);
    let (width, height) = (layout.width.ceil(), layout.height.ceil());
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{ROOT}\" role=\"img\" \
         width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n"
    );
    svg.push_str(&format!("<title>{}</title>\n", escape(&name(figure))));
    svg.push_str(&format!("<desc>{}</desc>\n", escape(&description(figure))));
    svg.push_str(&format!("<style>\n{}</style>\n", style_sheet(theme)));
    svg.push_str(&format!("<rect class=\"bg\" width=\"{width}\" height=\"{height}\"/>\n"));
    let (title, legend) = layout.head();
    svg.push_str(&lines(title.0, title.1, TITLE, "", &layout.title));
    svg.push_str(&layout.legend.draw(LEGEND, layout.inner(), legend.0, legend.1));
    for panel in &layout.panels {
        svg.push_str(&format!("<g>\n{}</g>\n", draw_panel(panel, live)));
    }
    svg.push_str("</svg>\n");
    svg
}

/// What a reader who does not see the picture hears first.
fn name(figure: &Figure) -> String {
    let titles = figure.charts.iter().map(|chart| chart.title.as_str());
    let all: Vec<&str> =
        std::iter::once(figure.title.as_str()).chain(titles).filter(|t| !t.is_empty()).collect();
    if all.is_empty() { "Plot".into() } else { all.join(": ") }
}

fn description(figure: &Figure) -> String {
    let describe = |chart: &super::Chart| {
        let names: Vec<&str> = chart
            .series
            .iter()
            .map(|series| series.label.as_str())
            .chain(chart.lines.iter().map(|line| line.label.as_str()))
            .filter(|name| !name.is_empty())
            .collect();
        format!("{} against {}: {}.", chart.y.label, chart.x.label, names.join(", "))
    };
    figure.charts.iter().map(describe).collect::<Vec<_>>().join(" ")
}

fn draw_panel(panel: &Panel, live: bool) -> String {
    let (chart, plane) = (panel.chart, &panel.plane);
    let ((left, right), (bottom, top)) = (plane.x.pixels, plane.y.pixels);
    let (x, y) = panel.corner;
    let mut svg = String::new();

    svg.push_str(&lines(x, y + HEADING.size, HEADING, "", &panel.heading));
    let below = y + panel.legend_offset() - 7.0 - SUBTITLE.leading() * panel.subtitle.len() as f64;
    svg.push_str(&lines(x, below + SUBTITLE.size, SUBTITLE, "q", &panel.subtitle));
    svg.push_str(&panel.legend.draw(LEGEND, CHART, x, y + panel.legend_offset()));
    svg.push_str(&axes(panel));

    // An inner svg clips to the frame without an id, which might be taken in a page.
    svg.push_str(&format!(
        "<svg x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" viewBox=\"{0} {1} {2} {3}\">\n",
        num(left),
        num(top),
        num(right - left),
        num(bottom - top)
    ));
    let series = || chart.series.iter().zip(panel.styles.iter().copied());
    series().for_each(|(series, style)| svg.push_str(&plane.areas(series, style)));
    for line in &panel.reference_lines {
        let ends = match line.direction {
            Direction::Horizontal => [(left, line.at), (right, line.at)],
            Direction::Vertical => [(line.at, bottom), (line.at, top)],
        };
        svg.push_str(&shape("ref", line.dash, &path(&ends)));
    }
    series().for_each(|(series, style)| svg.push_str(&plane.lines(series, style)));
    if live {
        svg.push_str(&hover::strips(chart, plane));
    }
    series().for_each(|(series, style)| svg.push_str(&plane.points(series, style, live)));
    svg.push_str("</svg>\n");

    svg.push_str(&format!(
        "<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
        num(left),
        num(top),
        num(right - left),
        num(bottom - top)
    ));
    if panel.empty {
        // Above the middle, where a lone reference line stands.
        let (x, y) = ((left + right) / 2.0, top + (bottom - top) / 4.0);
        svg.push_str(&text(x, y, LABEL, "q mid", "no data"));
    }
    for tag in &panel.tags {
        let class = if tag.above { "q mid" } else { "q" };
        svg.push_str(&text(tag.x, tag.y, TICK, class, &tag.text));
    }
    let small = bottom + panel.note_offset() + NOTE.size;
    svg.push_str(&lines(x, small, NOTE, "q", &panel.note));
    svg
}

/// Grid, ticks and the names of the axes.
fn axes(panel: &Panel) -> String {
    let plane = &panel.plane;
    let ((left, right), (bottom, top)) = (plane.x.pixels, plane.y.pixels);
    let (mut grid, mut marks, mut labels) = (String::new(), String::new(), String::new());
    for tick in &panel.x_ticks.major {
        let x = plane.x.pixel(tick.at);
        grid.push_str(&path(&[(x, bottom), (x, top)]));
        marks.push_str(&path(&[(x, bottom), (x, bottom + 5.0)]));
        labels.push_str(&text(x, bottom + OFF + TICK.size, TICK, "mid", &tick.label));
    }
    for tick in &panel.y_ticks.major {
        let y = plane.y.pixel(tick.at);
        grid.push_str(&path(&[(left, y), (right, y)]));
        marks.push_str(&path(&[(left - 5.0, y), (left, y)]));
        labels.push_str(&text(left - OFF, y + 0.36 * TICK.size, TICK, "end", &tick.label));
    }
    for x in panel.x_ticks.minor.iter().map(|&at| plane.x.pixel(at)) {
        marks.push_str(&path(&[(x, bottom), (x, bottom + 3.0)]));
    }
    for y in panel.y_ticks.minor.iter().map(|&at| plane.y.pixel(at)) {
        marks.push_str(&path(&[(left - 3.0, y), (left, y)]));
    }
    let (middle, first) = ((left + right) / 2.0, bottom + panel.label_offset() + LABEL.size);
    labels.push_str(&lines(middle, first, LABEL, "mid", &panel.x_label));
    for (i, line) in panel.y_label.iter().enumerate() {
        let lines = (panel.y_label.len() - 1 - i) as f64;
        let x = left - panel.y_labels - 11.0 - lines * LABEL.leading();
        let (x, y) = (num(x), num((bottom + top) / 2.0));
        labels.push_str(&format!(
            "<text x=\"{x}\" y=\"{y}\" class=\"mid\" font-size=\"{}\" \
             transform=\"rotate(-90 {x} {y})\">{}</text>\n",
            LABEL.size,
            markup(line)
        ));
    }
    shape("grid", "", &grid) + &shape("frame", "", &marks) + "\n" + &labels
}

/// One line of text.
pub(super) fn text(x: f64, y: f64, font: Font, class: &str, content: &str) -> String {
    let weight = if font.bold { " b" } else { "" };
    let class = match format!("{class}{weight}").trim() {
        "" => String::new(),
        class => format!(" class=\"{class}\""),
    };
    let (x, y) = (num(x), num(y));
    format!(
        "<text x=\"{x}\" y=\"{y}\"{class} font-size=\"{}\">{}</text>\n",
        font.size,
        markup(content)
    )
}

/// Lines of text from a first baseline downwards.
fn lines(x: f64, y: f64, font: Font, class: &str, lines: &[String]) -> String {
    let line =
        |(i, line): (usize, &String)| text(x, y + i as f64 * font.leading(), font, class, line);
    lines.iter().enumerate().map(line).collect()
}
