//! Where everything stands: every margin is as wide as the text in it, and the frames of charts
//! in a row or a column line up.

use super::axis_map::{AxisMap, Window, to_units};
use super::font::Font;
use super::heat_map::bar_width;
use super::label_spacing::space_labels;
use super::legend::{Legend, LegendSample};
use super::series::{Plane, Style, styles};
use super::theme::REFERENCES;
use super::ticks::{Ticks, ticks};
use super::{Chart, Direction, Figure, RefLine};

pub(super) const TITLE: Font = Font { size: 17.0, bold: true, muted: false };
pub(super) const HEADING: Font = Font { size: 15.5, ..TITLE };
pub(super) const LABEL: Font = Font { size: 15.0, bold: false, muted: false };
pub(super) const TICK: Font = Font { size: 14.0, ..LABEL };
pub(super) const LEGEND: Font = TICK;
pub(super) const NO_DATA: Font = Font { muted: true, ..LABEL };
pub(super) const SUBTITLE: Font = Font { muted: true, ..TICK };
/// Names of reference lines.
pub(super) const TAG: Font = SUBTITLE;
pub(super) const NOTE: Font = Font { size: 12.5, ..SUBTITLE };

/// Width of a chart with its margins: at this width, fourteen-pixel text is still ten pixels
/// high on a phone, and seven points in a column of a paper.
pub(super) const CHART: f64 = 480.0;
const FRAME: f64 = 290.0;
const MARGIN: f64 = 14.0;
const GUTTER: f64 = 26.0;
/// From frame to tick label.
pub(super) const OFF: f64 = 9.0;
/// Names of horizontal lines stand at their ends if they are no wider than this and no more than
/// that; otherwise they go to the legend.
const SIDE: (f64, usize) = (72.0, 12);

/// A name beside or above the frame.
#[derive(Clone, Debug)]
pub(super) struct Tag {
    pub x: f64,
    pub y: f64,
    pub text: String,
    /// Above the frame, centred; or at its side.
    pub above: bool,
}

/// One chart in its place.
pub(super) struct PlacedChart<'a> {
    pub chart: &'a Chart,
    pub plane: Plane,
    pub empty: bool,
    pub x_ticks: Ticks,
    pub y_ticks: Ticks,
    pub styles: Vec<Style>,
    /// Empty where the figure has one for all.
    pub legend: Legend,
    pub heading: Vec<String>,
    pub subtitle: Vec<String>,
    pub note: Vec<String>,
    pub x_label: Vec<String>,
    pub y_label: Vec<String>,
    /// Width of the tick labels of y.
    pub y_labels: f64,
    pub tags: Vec<Tag>,
    /// Upper left corner, margins of the frame included.
    pub corner: (f64, f64),
    left: f64,
    right: f64,
}

/// A figure in its place.
pub(super) struct Layout<'a> {
    pub width: f64,
    pub height: f64,
    pub title: Vec<String>,
    pub legend: Legend,
    pub panels: Vec<PlacedChart<'a>>,
}

impl Layout<'_> {
    /// Width between the outer margins.
    pub fn inner(&self) -> f64 {
        self.width - 2.0 * MARGIN
    }

    /// Left end and first baseline of the title, and upper left corner of the common legend.
    pub fn head(&self) -> ((f64, f64), (f64, f64)) {
        let title = block(TITLE, &self.title, 8.0);
        ((MARGIN, MARGIN + TITLE.size), (MARGIN, MARGIN + title))
    }
}

/// Height of some lines of text and of the air below them, if there are any.
fn block(font: Font, lines: &[String], air: f64) -> f64 {
    if lines.is_empty() { 0.0 } else { lines.len() as f64 * font.leading() + air }
}

impl<'a> Layout<'a> {
    pub fn of(figure: &'a Figure) -> Self {
        let many = figure.charts.len() > 1;
        let columns = match figure.columns {
            0 => figure.charts.len().min(2),
            columns => columns.min(figure.charts.len()),
        }
        .max(1);
        let mut panels: Vec<PlacedChart> = figure
            .charts
            .iter()
            .enumerate()
            .map(|(i, chart)| PlacedChart::new(chart, if many { letter(i) } else { String::new() }))
            .collect();

        let width = columns as f64 * (CHART + GUTTER) - GUTTER + 2.0 * MARGIN;
        for column in 0..columns {
            let widest = |side: fn(&PlacedChart) -> f64| {
                panels.iter().skip(column).step_by(columns).map(side).fold(0.0, f64::max)
            };
            let (left, right) = (widest(|p| p.left), widest(|p| p.right));
            let x = MARGIN + column as f64 * (CHART + GUTTER);
            for panel in panels.iter_mut().skip(column).step_by(columns) {
                panel.corner.0 = x;
                panel.place_x(x + left, x + CHART - right);
            }
        }

        let common = many && panels.windows(2).all(|pair| pair[0].legend == pair[1].legend);
        let legend = match panels.first() {
            Some(first) if common => first.legend.clone(),
            _ => Legend::default(),
        };
        if common {
            panels.iter_mut().for_each(|panel| panel.legend.entries.clear());
        }

        let title = TITLE.wrap(&figure.title, width - 2.0 * MARGIN);
        let mut layout = Self { width, height: 0.0, title, legend, panels: Vec::new() };
        let mut y = layout.head().1.1;
        if !layout.legend.entries.is_empty() {
            y += layout.legend.height(layout.inner()) + 14.0;
        }
        for row in panels.chunks_mut(columns) {
            let head = row.iter().map(PlacedChart::above).fold(0.0, f64::max);
            let foot = row.iter().map(PlacedChart::below).fold(0.0, f64::max);
            for panel in &mut *row {
                panel.corner.1 = y;
                panel.place_y(y + head + FRAME, y + head);
            }
            y += head + FRAME + foot + GUTTER;
        }
        layout.panels = panels;
        layout.height = (y - if figure.charts.is_empty() { 0.0 } else { GUTTER }) + MARGIN;
        layout
    }
}

/// (a), (b), … and numbers after (z).
fn letter(i: usize) -> String {
    match u8::try_from(i) {
        Ok(i @ 0..26) => format!("({}) ", char::from(b'a' + i)),
        _ => format!("({}) ", i + 1),
    }
}

impl<'a> PlacedChart<'a> {
    fn new(chart: &'a Chart, letter: String) -> Self {
        let window = Window::of(chart);
        let shown = |axis: &super::Axis, (lo, hi): (f64, f64), known: bool, target: usize| {
            // Ticks of a made-up range would be taken for data.
            match known {
                true if !axis.names.is_empty() => Ticks::named(&axis.names),
                true => ticks(axis.scale, lo, hi, target),
                false => Ticks::default(),
            }
        };
        let y_ticks = shown(&chart.y, window.y, window.known.1, 7);
        let y_label = LABEL.wrap(&chart.y.label, FRAME);
        let labels = y_ticks.major.iter().map(|tick| TICK.width(&tick.label)).fold(0.0, f64::max);
        let y_labels = labels + OFF;
        let left = (block(LABEL, &y_label, 6.0) + y_labels).max(20.0);

        let styles = styles(chart);
        let mut entries: Vec<(String, LegendSample)> = Vec::new();
        for (series, style) in chart.series.iter().zip(&styles) {
            let entry = (series.label.clone(), LegendSample::of(series, *style));
            if !series.label.is_empty() && !entries.contains(&entry) {
                entries.push(entry);
            }
        }
        let aside = aside(chart);
        let mut right = chart.heat.as_ref().map_or(12.0, bar_width);
        for (line, dash) in references(chart) {
            let inside = to_units(chart.y.scale, line.at).is_some_and(|at| within(at, window.y));
            if line.direction == Direction::Vertical || !inside || line.label.is_empty() {
                continue;
            }
            match aside(line) {
                true => right = right.max(TICK.width(&line.label) + 8.0),
                false => entries.push((line.label.clone(), LegendSample::Reference(dash))),
            }
        }

        let map = |scale, units| AxisMap { scale, units, pixels: (0.0, 1.0) };
        let plane = Plane { x: map(chart.x.scale, window.x), y: map(chart.y.scale, window.y) };
        Self {
            chart,
            plane,
            empty: window.empty,
            x_ticks: shown(&chart.x, window.x, window.known.0, 8),
            y_ticks,
            styles,
            legend: Legend { entries },
            heading: HEADING.wrap(&format!("{letter}{}", chart.title), CHART),
            subtitle: SUBTITLE.wrap(&chart.subtitle, CHART),
            note: NOTE.wrap(chart.note.as_deref().unwrap_or(""), CHART),
            x_label: Vec::new(),
            y_label,
            y_labels,
            tags: Vec::new(),
            corner: (0.0, 0.0),
            left,
            right,
        }
    }

    /// Fixes the frame sideways, and with it the ticks that have room and the names above.
    fn place_x(&mut self, left: f64, right: f64) {
        self.plane.x.pixels = (left, right);
        self.x_label = LABEL.wrap(&self.chart.x.label, right - left);
        let map = self.plane.x;
        let crowded = |ticks: &Ticks| {
            ticks.major.windows(2).any(|pair| {
                let half = |i: usize| TICK.width(&pair[i].label) / 2.0;
                map.pixel(pair[1].at) - map.pixel(pair[0].at) < half(0) + half(1) + 10.0
            })
        };
        for target in (2..8).rev() {
            if !crowded(&self.x_ticks) || !self.chart.x.names.is_empty() {
                break;
            }
            self.x_ticks = ticks(map.scale, map.units.0, map.units.1, target);
        }
        // Labels of very many digits may not fit even then, or reach beyond the picture.
        let mut free = self.corner.0 - MARGIN + 2.0;
        let end = self.corner.0 + CHART + MARGIN - 2.0;
        self.x_ticks.major.retain(|tick| {
            let (at, half) = (map.pixel(tick.at), TICK.width(&tick.label) / 2.0);
            let fits = at - half >= free && at + half <= end;
            free = if fits { at + half + 10.0 } else { free };
            fits
        });

        let mut names = self.reference_lines(Direction::Vertical);
        names.retain(|name| !name.1.label.is_empty());
        let wanted: Vec<f64> = names.iter().map(|name| name.0).collect();
        let sizes: Vec<f64> = names.iter().map(|name| TICK.width(&name.1.label) + 12.0).collect();
        let room = (self.corner.0 - 6.0, self.corner.0 + CHART + 6.0);
        let places = space_labels(&wanted, &sizes, room);
        // Beside its line a name would be taken for that of another.
        let over = |i: usize| (places[i] - wanted[i]).abs() <= sizes[i] / 2.0;
        let fits = sizes.iter().sum::<f64>() <= CHART && (0..names.len()).all(over);
        for ((_, line, dash), x) in names.into_iter().zip(places) {
            let text = line.label.clone();
            match fits {
                true => self.tags.push(Tag { x, y: 0.0, text, above: true }),
                false => self.legend.entries.push((text, LegendSample::Reference(dash))),
            }
        }
    }

    /// The reference lines inside the frame with their pixels and dashes, in the order of the pixels.
    pub fn reference_lines(&self, direction: Direction) -> Vec<(f64, &'a RefLine, &'static str)> {
        let map = match direction {
            Direction::Horizontal => self.plane.y,
            Direction::Vertical => self.plane.x,
        };
        let place = |(line, dash): (&'a RefLine, _)| {
            let units = to_units(map.scale, line.at).filter(|at| within(*at, map.units))?;
            (line.direction == direction).then_some((map.pixel(units), line, dash))
        };
        let mut placed: Vec<_> = references(self.chart).filter_map(place).collect();
        placed.sort_by(|a, b| a.0.total_cmp(&b.0));
        placed
    }

    /// Height from the corner to the frame.
    fn above(&self) -> f64 {
        let legend = match self.legend.entries.len() {
            0 => 0.0,
            _ => self.legend.height(CHART) + 8.0,
        };
        let names = if self.tags.is_empty() { 4.0 } else { TICK.leading() + 5.0 };
        self.legend_offset() + legend + names
    }

    /// Height from the corner to the legend.
    pub fn legend_offset(&self) -> f64 {
        block(HEADING, &self.heading, 3.0) + block(SUBTITLE, &self.subtitle, 3.0) + 4.0
    }

    /// Height from the frame to the end of the small print.
    fn below(&self) -> f64 {
        match self.note.is_empty() {
            true => self.label_offset() + block(LABEL, &self.x_label, 0.0),
            false => self.note_offset() + block(NOTE, &self.note, 0.0),
        }
    }

    /// Height from the frame to the small print.
    pub fn note_offset(&self) -> f64 {
        self.label_offset() + block(LABEL, &self.x_label, 8.0)
    }

    /// Height from the frame to the name of the horizontal axis.
    pub fn label_offset(&self) -> f64 {
        if self.x_ticks.major.is_empty() { 8.0 } else { OFF + TICK.leading() + 4.0 }
    }

    /// Fixes the frame in height, and with it the names at its side.
    fn place_y(&mut self, bottom: f64, top: f64) {
        self.plane.y.pixels = (bottom, top);
        self.tags.iter_mut().for_each(|tag| tag.y = top - 7.0);
        let aside = aside(self.chart);
        let mut names = self.reference_lines(Direction::Horizontal);
        names.retain(|name| !name.1.label.is_empty() && aside(name.1));
        let wanted: Vec<f64> = names.iter().map(|name| name.0).collect();
        let sizes = vec![TICK.leading(); names.len()];
        let x = self.plane.x.pixels.1 + 8.0;
        for ((_, line, _), y) in names.into_iter().zip(space_labels(&wanted, &sizes, (top, bottom)))
        {
            let (y, text) = (y + 0.35 * TICK.size, line.label.clone());
            self.tags.push(Tag { x, y, text, above: false });
        }
    }
}

/// The reference lines with their dashes.
fn references(chart: &Chart) -> impl Iterator<Item = (&RefLine, &'static str)> {
    chart.lines.iter().zip(REFERENCES.into_iter().cycle())
}

fn within(at: f64, (lo, hi): (f64, f64)) -> bool {
    (lo..=hi).contains(&at)
}

/// Whether a horizontal line of the chart is named at its end.
fn aside(chart: &Chart) -> impl Fn(&RefLine) -> bool {
    let horizontal = |line: &&RefLine| line.direction == Direction::Horizontal;
    let few = chart.lines.iter().filter(horizontal).count() <= SIDE.1;
    move |line| few && TICK.width(&line.label) <= SIDE.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_line_up_and_a_common_legend_is_drawn_once() {
        let v = [1.0, 2.0];
        let chart = |unit: &str| {
            Chart::new("t").y(super::super::Axis::linear(unit)).line("a", &v, &v).line("b", &v, &v)
        };
        let figure = Figure::new("").chart(chart("y")).chart(chart("")).chart(chart("").note("n"));
        let layout = Layout::of(&figure);
        assert_eq!(layout.legend.entries.len(), 2);
        let [a, b, c] = &layout.panels[..] else { panic!() };
        assert_eq!(a.plane.y.pixels, b.plane.y.pixels);
        assert_eq!(a.plane.x.pixels, c.plane.x.pixels);
        assert!(b.corner.0 > a.plane.x.pixels.1 && c.corner.1 > a.plane.y.pixels.0);
        let figure = figure.chart(chart("").dashed("c", &v, &v));
        let layout = Layout::of(&figure);
        assert!(layout.legend.entries.is_empty() && layout.panels[0].legend.entries.len() == 2);
    }

    #[test]
    fn letters_go_on_past_z() {
        assert_eq!(
            (letter(0), letter(25), letter(26)),
            ("(a) ".into(), "(z) ".into(), "(27) ".into())
        );
    }
}
