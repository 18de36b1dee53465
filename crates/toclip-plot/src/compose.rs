//! From the layout of a figure to its shapes and lines of text.

use super::layout::{
    CHART, HEADING, LABEL, Layout, NO_DATA, NOTE, OFF, PlacedChart, SUBTITLE, TAG, TICK, TITLE,
};
use super::shapes::{Anchor, Drawing, Element, Frame, Outline, Shape, TextLine, text};
use super::{Direction, Figure, heat_map, tooltips};

pub(super) fn compose(figure: &Figure) -> Drawing {
    let layout = Layout::of(figure);
    let (width, height) = (layout.width.ceil(), layout.height.ceil());
    let whole = Frame { left: 0.0, top: 0.0, right: width, bottom: height };
    let (title, legend) = layout.head();
    let mut items = vec![Element::Shape(Shape::new("bg", vec![whole.outline()]))];
    items.extend(text(title, Anchor::Start, TITLE, &layout.title));
    items.extend(layout.legend.draw(layout.inner(), legend));
    items.extend(layout.panels.iter().flat_map(compose_chart));
    Drawing { width, height, items }
}

fn compose_chart(panel: &PlacedChart) -> Vec<Element> {
    let (chart, plane) = (panel.chart, &panel.plane);
    let (frame, (x, y)) = (plane.frame(), panel.corner);
    let Frame { left, top, right, bottom } = frame;
    let mut items = Vec::new();

    items.extend(text((x, y + HEADING.size), Anchor::Start, HEADING, &panel.heading));
    let below = y + panel.legend_offset() - 7.0 - SUBTITLE.leading() * panel.subtitle.len() as f64;
    items.extend(text((x, below + SUBTITLE.size), Anchor::Start, SUBTITLE, &panel.subtitle));
    items.extend(panel.legend.draw(CHART, (x, y + panel.legend_offset())));
    axes(panel, &mut items);

    let series = || chart.series.iter().zip(panel.styles.iter().copied());
    let across = |(at, _, dash)| Shape {
        dash,
        ..Shape::new("ref", vec![Outline::Line(vec![(left, at), (right, at)])])
    };
    let up = |(at, _, dash)| Shape {
        dash,
        ..Shape::new("ref", vec![Outline::Line(vec![(at, bottom), (at, top)])])
    };
    let mut inside: Vec<Shape> =
        chart.heat.iter().flat_map(|map| heat_map::cells(chart, map, plane)).collect();
    inside.extend(series().flat_map(|(series, style)| plane.area(series, style)));
    inside.extend(panel.reference_lines(Direction::Horizontal).into_iter().map(across));
    inside.extend(panel.reference_lines(Direction::Vertical).into_iter().map(up));
    inside.extend(series().flat_map(|(series, style)| plane.lines(series, style)));
    inside.extend(tooltips::strips(chart, plane));
    inside.extend(series().flat_map(|(series, style)| plane.points(series, style)));
    items.push(Element::Clipped(frame, inside));

    items.push(Element::Shape(Shape::new("frame", vec![frame.outline()])));
    items.extend(chart.heat.iter().flat_map(|map| heat_map::bar(map, frame)));
    if panel.empty {
        // Above the middle, where a lone reference line stands.
        let middle = ((left + right) / 2.0, top + (bottom - top) / 4.0);
        items.extend(text(middle, Anchor::Middle, NO_DATA, &["no data".to_owned()]));
    }
    for tag in &panel.tags {
        let anchor = if tag.above { Anchor::Middle } else { Anchor::Start };
        items.extend(text((tag.x, tag.y), anchor, TAG, [&tag.text]));
    }
    let small = bottom + panel.note_offset() + NOTE.size;
    items.extend(text((x, small), Anchor::Start, NOTE, &panel.note));
    items
}

/// Grid, ticks and the names of the axes.
fn axes(panel: &PlacedChart, items: &mut Vec<Element>) {
    let plane = &panel.plane;
    let Frame { left, top, right, bottom } = plane.frame();
    let (mut grid, mut marks, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    let line = |from, to| Outline::Line(vec![from, to]);
    for tick in &panel.x_ticks.major {
        let x = plane.x.pixel(tick.at);
        grid.push(line((x, bottom), (x, top)));
        marks.push(line((x, bottom), (x, bottom + 5.0)));
        let at = (x, bottom + OFF + TICK.size);
        labels.extend(text(at, Anchor::Middle, TICK, [&tick.label]));
    }
    for tick in &panel.y_ticks.major {
        let y = plane.y.pixel(tick.at);
        grid.push(line((left, y), (right, y)));
        marks.push(line((left - 5.0, y), (left, y)));
        let at = (left - OFF, y + 0.36 * TICK.size);
        labels.extend(text(at, Anchor::End, TICK, [&tick.label]));
    }
    let upright = |x| line((x, bottom), (x, bottom + 3.0));
    marks.extend(panel.x_ticks.minor.iter().map(|&at| upright(plane.x.pixel(at))));
    let level = |y| line((left - 3.0, y), (left, y));
    marks.extend(panel.y_ticks.minor.iter().map(|&at| level(plane.y.pixel(at))));
    let below = ((left + right) / 2.0, bottom + panel.label_offset() + LABEL.size);
    labels.extend(text(below, Anchor::Middle, LABEL, &panel.x_label));
    for (i, content) in panel.y_label.iter().rev().enumerate() {
        let x = left - panel.y_labels - 11.0 - i as f64 * LABEL.leading();
        let (at, content) = ((x, (bottom + top) / 2.0), content.clone());
        let (anchor, font) = (Anchor::Middle, LABEL);
        labels.push(Element::TextLine(TextLine { at, anchor, font, turned: true, content }));
    }
    items.push(Element::Shape(Shape::new("grid", grid)));
    items.push(Element::Shape(Shape::new("frame", marks)));
    items.extend(labels);
}
