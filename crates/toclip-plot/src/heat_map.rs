//! Heat maps: the cells of a grid in colours, and the scale beside them.

use super::axis_map::to_units;
use super::layout::TICK;
use super::series::Plane;
use super::shapes::{Anchor, Element, Frame, Shape, text};
use super::theme::{DIVERGING, MISSING, SEQUENTIAL};
use super::ticks::value_label;
use super::{Axis, AxisScale, Chart, HeatMap};

/// From the frame to the bar of colours, its width, and from there to its labels.
const BAR: (f64, f64, f64) = (12.0, 15.0, 6.0);
/// Labels of the bar, its ends included.
const LABELS: usize = 5;

/// The edges of cells in axis units: halfway between the centres, and as far beyond the ends.
pub(super) fn edges(scale: AxisScale, centres: &[f64]) -> Option<Vec<f64>> {
    let at: Vec<f64> = centres.iter().map(|x| to_units(scale, *x)).collect::<Option<_>>()?;
    let (&first, &last) = (at.first()?, at.last()?);
    let beyond = |end: f64, next: Option<&f64>| next.map_or(0.5, |next| (end - next) / 2.0);
    let mut edges = vec![first + beyond(first, at.get(1))];
    edges.extend(at.windows(2).map(|pair| f64::midpoint(pair[0], pair[1])));
    let before = at.len().checked_sub(2).map(|k| &at[k]);
    // A cell alone is as wide on one side as on the other.
    edges.push(if at.len() == 1 { last - 0.5 } else { last + beyond(last, before) });
    Some(edges)
}

/// The ends of the edges, lower first.
pub(super) fn extent(axis: &Axis, centres: &[f64]) -> Option<(f64, f64)> {
    let edges = edges(axis.scale, centres)?;
    let (a, b) = (*edges.first()?, *edges.last()?);
    Some((a.min(b), a.max(b)))
}

/// From values to colours.
struct ColourScale {
    scale: AxisScale,
    low: f64,
    high: f64,
    colours: &'static [(&'static str, &'static str, &'static str)],
}

impl ColourScale {
    fn of(map: &HeatMap) -> Self {
        let units = |x: f64| to_units(map.scale, x);
        let known: Vec<f64> = map.values.iter().flatten().copied().filter_map(units).collect();
        let mut low = known.iter().copied().fold(f64::INFINITY, f64::min);
        let mut high = known.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut colours = &SEQUENTIAL[..];
        if let Some(middle) = map.middle.and_then(units) {
            let reach = (high - middle).abs().max((middle - low).abs());
            (low, high, colours) = (middle - reach, middle + reach, &DIVERGING[..]);
        }
        if !(low < high) {
            (low, high) = if low.is_finite() { (low - 0.5, low + 0.5) } else { (0.0, 1.0) };
        }
        ColourScale { scale: map.scale, low, high, colours }
    }

    fn colour(&self, value: f64) -> &'static str {
        let Some(units) = to_units(self.scale, value) else { return MISSING.0 };
        let share = ((units - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        let last = self.colours.len() - 1;
        self.colours[(share * last as f64).round() as usize].0
    }

    /// The value at a share of the bar.
    fn value(&self, share: f64) -> f64 {
        let units = self.low + share * (self.high - self.low);
        if self.scale == AxisScale::Log { 10f64.powf(units) } else { units }
    }

    fn labels(&self) -> Vec<(f64, String)> {
        let share = |k: usize| k as f64 / (LABELS - 1) as f64;
        (0..LABELS).map(|k| (share(k), value_label(three_digits(self.value(share(k)))))).collect()
    }
}

/// The room that the bar needs at the right of the frame.
pub(super) fn bar_width(map: &HeatMap) -> f64 {
    let widest =
        ColourScale::of(map).labels().iter().map(|(_, text)| TICK.width(text)).fold(0.0, f64::max);
    BAR.0 + BAR.1 + BAR.2 + widest
}

/// The cells, each with its value under the pointer.
pub(super) fn cells(chart: &Chart, map: &HeatMap, plane: &Plane) -> Vec<Shape> {
    let (Some(x), Some(y)) = (edges(chart.x.scale, &map.x), edges(chart.y.scale, &map.y)) else {
        return Vec::new();
    };
    let scale = ColourScale::of(map);
    let mut shapes = Vec::new();
    for (j, row) in map.values.iter().enumerate().take(map.y.len()) {
        for (i, &value) in row.iter().enumerate().take(map.x.len()) {
            let frame = Frame {
                left: plane.x.pixel(x[i]),
                right: plane.x.pixel(x[i + 1]),
                top: plane.y.pixel(y[j + 1]),
                bottom: plane.y.pixel(y[j]),
            };
            let at = |axis: &Axis, k: usize, value: f64| match axis.names.get(k) {
                Some(name) => name.clone(),
                None => value_label(value),
            };
            let shown = if value.is_finite() { value_label(value) } else { "none".into() };
            let title = format!(
                "{}: {}\n{}: {}\n{}: {shown}",
                chart.x.label,
                at(&chart.x, i, map.x[i]),
                chart.y.label,
                at(&chart.y, j, map.y[j]),
                map.label
            );
            let colour = scale.colour(value);
            shapes.push(Shape { colour, title, ..Shape::new("cell", vec![frame.outline()]) });
        }
    }
    shapes
}

/// The bar of colours at the right of the frame.
pub(super) fn bar(map: &HeatMap, frame: Frame) -> Vec<Element> {
    let scale = ColourScale::of(map);
    let left = frame.right + BAR.0;
    let height = (frame.bottom - frame.top) / scale.colours.len() as f64;
    let mut items = Vec::new();
    for (k, colour) in scale.colours.iter().enumerate() {
        let bottom = frame.bottom - k as f64 * height;
        let swatch = Frame { left, right: left + BAR.1, top: bottom - height, bottom };
        let shape = Shape { colour: colour.0, ..Shape::new("cell", vec![swatch.outline()]) };
        items.push(Element::Shape(shape));
    }
    let whole = Frame { left, right: left + BAR.1, ..frame };
    items.push(Element::Shape(Shape::new("frame", vec![whole.outline()])));
    for (share, label) in scale.labels() {
        // Centred at its height; at the ends inside that of the frame.
        let y = frame.bottom - share * (frame.bottom - frame.top) + 0.36 * TICK.size;
        let y = y.clamp(frame.top + 0.72 * TICK.size, frame.bottom);
        items.extend(text((left + BAR.1 + BAR.2, y), Anchor::Start, TICK, [&label]));
    }
    items
}

/// A number for a label.
fn three_digits(x: f64) -> f64 {
    format!("{x:.2e}").parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_lie_between_the_centres() {
        assert_eq!(edges(AxisScale::Linear, &[1.0, 2.0, 4.0]), Some(vec![0.5, 1.5, 3.0, 5.0]));
        assert_eq!(edges(AxisScale::Log, &[0.1, 10.0]), Some(vec![-2.0, 0.0, 2.0]));
        assert_eq!(edges(AxisScale::Linear, &[3.0]), Some(vec![3.5, 2.5]));
        assert_eq!(edges(AxisScale::Log, &[0.0, 1.0]), None);
        assert_eq!(edges(AxisScale::Linear, &[]), None);
    }

    #[test]
    fn ratios_are_white_in_the_middle_and_gaps_are_grey() {
        let map = HeatMap {
            values: vec![vec![0.5, 1.0, 2.0, f64::INFINITY, f64::NAN]],
            scale: AxisScale::Log,
            middle: Some(1.0),
            ..HeatMap::default()
        };
        let scale = ColourScale::of(&map);
        let colours = [0.5, 1.0, 2.0, f64::INFINITY, f64::NAN].map(|x| scale.colour(x));
        assert_eq!(colours, ["d0", "d6", "d12", "gap", "gap"]);
        assert_eq!(scale.colour(0.0), "gap", "a logarithmic scale has no zero");
        let plain = HeatMap { values: vec![vec![1.0, 2.0]], ..HeatMap::default() };
        let scale = ColourScale::of(&plain);
        assert_eq!((scale.colour(1.0), scale.colour(2.0)), ("s0", "s11"));
        assert_eq!(scale.labels()[2].1, "1.5");
    }

    #[test]
    fn every_cell_is_drawn_with_its_value() {
        let map = HeatMap {
            label: "risk".into(),
            x: vec![1.0, 10.0],
            y: vec![0.0, 1.0],
            values: vec![vec![0.1, 0.2], vec![0.3, f64::NAN]],
            ..HeatMap::default()
        };
        let rules = vec!["clip".into(), "skip".into()];
        let chart = Chart::new("t").x(Axis::log("c")).y(Axis::named("rule", rules)).heat(map);
        let svg = crate::svg(&chart.into(), crate::Theme::Auto);
        assert!(
            svg.contains("c: 10\nrule: clip\nrisk: 0.2") && svg.contains("rule: skip\nrisk: none")
        );
        assert!(svg.contains(">skip</text>") && svg.contains("--s11:"));
        assert!(!svg.contains("no data"));
    }
}
