//! A chart of the page as SVG, drawn as `toclip run` draws its own.

use serde::Deserialize;
use toclip_plot::{Axis, Chart as Drawn, Series as Curve, Theme};

/// A chart as the page describes it: that of `toclip-plot`, with null for numbers that are not finite.
#[derive(Debug, Deserialize)]
pub struct Chart {
    title: String,
    #[serde(default)]
    subtitle: String,
    x: Side,
    y: Side,
    series: Vec<Series>,
    #[serde(default)]
    lines: Vec<Line>,
}

#[derive(Debug, Deserialize)]
struct Side {
    label: String,
    #[serde(default)]
    log: bool,
    range: Option<(f64, f64)>,
}

#[derive(Debug, Deserialize)]
struct Series {
    label: String,
    x: Vec<Option<f64>>,
    #[serde(default)]
    y: Vec<Option<f64>>,
    #[serde(default)]
    low: Vec<Option<f64>>,
    #[serde(default)]
    high: Vec<Option<f64>>,
    #[serde(default)]
    dashed: bool,
    slot: Option<usize>,
}

/// A reference line: at an x upright, at a y level.
#[derive(Debug, Deserialize)]
#[serde(tag = "axis", rename_all = "snake_case")]
enum Line {
    X { at: f64, label: String },
    Y { at: f64, label: String },
}

fn numbers(values: &[Option<f64>]) -> Vec<f64> {
    values.iter().map(|value| value.unwrap_or(f64::NAN)).collect()
}

impl Side {
    fn axis(&self) -> Axis {
        let axis = if self.log { Axis::log(&self.label) } else { Axis::linear(&self.label) };
        match self.range {
            Some((low, high)) => axis.range(low, high),
            None => axis,
        }
    }
}

impl Series {
    fn curve(&self) -> Curve {
        let (x, y) = (numbers(&self.x), numbers(&self.y));
        let curve = if !self.high.is_empty() {
            let band = Curve::band(&self.label, &x, &numbers(&self.low), &numbers(&self.high));
            if y.is_empty() { band } else { band.middle(&y) }
        } else if self.dashed {
            Curve::dashed(&self.label, &x, &y)
        } else {
            Curve::line(&self.label, &x, &y)
        };
        match self.slot {
            Some(slot) => curve.slot(slot),
            None => curve,
        }
    }
}

impl Chart {
    /// The picture.
    pub fn svg(&self, dark: bool) -> String {
        let chart = Drawn::new(&self.title).subtitle(&self.subtitle);
        let chart = chart.x(self.x.axis()).y(self.y.axis());
        let chart = self.series.iter().fold(chart, |chart, series| chart.series(series.curve()));
        let chart = self.lines.iter().fold(chart, |chart, line| match line {
            Line::X { at, label } => chart.vline(*at, label),
            Line::Y { at, label } => chart.hline(*at, label),
        });
        toclip_plot::svg(&chart.into(), if dark { Theme::Dark } else { Theme::Light })
    }
}
