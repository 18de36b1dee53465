//! Plots: a description of curves and bands, written as SVG or PNG.
//!
//! The SVG writer is our own because one small file has to carry a light and a dark theme by
//! CSS, values under the pointer, log axes and quantile bands, and because the same description
//! serialises to JSON for an interactive report. No plotting crate gives these together.
//!
//! ```
//! use toclip_plot::{Axis, Chart, Theme, svg};
//!
//! let t = [0.0, 1.0, 2.0];
//! let chart = Chart::new("Clipping under Cauchy noise")
//!     .x(Axis::linear("time t"))
//!     .y(Axis::log("risk R(t)"))
//!     .band("C-SGD, 80% of runs", &t, &[0.9, 0.4, 0.2], &[1.1, 0.6, 0.3])
//!     .line("ODE", &t, &[1.0, 0.5, 0.25])
//!     .hline(0.1, "target");
//! assert!(svg(&chart.into(), Theme::Auto).starts_with("<svg"));
//! ```
//!
//! Values that cannot be drawn are left out, never an error: a value that is not finite (or above 1e300
//! in size, where differences overflow) or not positive on a log axis breaks the line; with
//! nothing to draw the axes say "no data"; of columns of unequal length the shortest decides.

mod axis_map;
mod compose;
mod font;
#[cfg(any(feature = "png", test))]
mod font_outlines;
mod hatch;
mod heat_map;
mod label_spacing;
mod layout;
mod legend;
#[cfg(any(feature = "png", test))]
mod png;
mod series;
mod shapes;
mod simplify;
mod svg;
mod theme;
mod ticks;
mod tooltips;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Deserializer, Serialize};

pub use font::escape;
#[cfg(any(feature = "png", test))]
pub use png::render as png;
pub use svg::render as svg;
pub use theme::Theme;

/// One picture: charts side by side under a common title.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// Above all the charts; empty for none.
    pub title: String,
    /// Charts in a row; 0 chooses: one chart alone, else two.
    pub columns: usize,
    /// Read row by row; two or more are lettered (a), (b), …
    pub charts: Vec<Chart>,
}

/// Curves over a common pair of axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Chart {
    /// Empty for none.
    pub title: String,
    /// A quieter line below the title, say the parameters; empty for none.
    pub subtitle: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Drawn in this order: bands below lines below points.
    pub series: Vec<Series>,
    /// Reference lines.
    pub lines: Vec<RefLine>,
    /// A map below the series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heat: Option<HeatMap>,
    /// Small print below the chart.
    pub note: Option<String>,
}

/// One axis of a chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Axis {
    /// Name and, in brackets, unit.
    pub label: String,
    /// Linear or logarithmic.
    pub scale: AxisScale,
    /// Ends of the axis; an end that is not finite is taken from the data.
    pub range: Option<(f64, f64)>,
    /// Names at 0, 1, 2, … instead of numbers; empty for numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// A number for each cell of a grid, drawn in colours with their scale beside the frame.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeatMap {
    /// The name of the quantity.
    pub label: String,
    /// Centres of the columns, in order.
    pub x: Vec<f64>,
    /// Centres of the rows, in order.
    pub y: Vec<f64>,
    /// The rows, each with a number for every column; cells that are not finite are grey.
    #[serde(deserialize_with = "rows_with_gaps")]
    pub values: Vec<Vec<f64>>,
    /// How numbers are laid along the scale.
    pub scale: AxisScale,
    /// The number between two colours, such as 1 for ratios; `None` for one colour from dark to light.
    pub middle: Option<f64>,
}

/// How values are laid along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AxisScale {
    /// Equal differences, equal lengths.
    #[default]
    Linear,
    /// Equal ratios, equal lengths.
    Log,
}

/// One curve, band or cloud of points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its name in the legend; empty keeps it out of the legend.
    pub label: String,
    /// Abscissae.
    #[serde(deserialize_with = "with_gaps")]
    pub x: Vec<f64>,
    /// Ordinates; for a band its middle line, or empty.
    #[serde(deserialize_with = "with_gaps")]
    pub y: Vec<f64>,
    /// How it is drawn.
    pub kind: SeriesKind,
    /// Number of its colour. Series that belong together (a band and its curve) share one;
    /// `None` takes the next that is free.
    pub slot: Option<usize>,
}

/// How a series is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesKind {
    /// A curve: the first solid, further ones in patterns of long dashes.
    Line,
    /// A curve in short dashes, for comparison.
    Dashed,
    /// The area between two curves.
    Band {
        /// Lower edge; not positive on a log axis, the band goes down to the axis.
        #[serde(deserialize_with = "with_gaps")]
        low: Vec<f64>,
        /// Upper edge.
        #[serde(deserialize_with = "with_gaps")]
        high: Vec<f64>,
    },
    /// Unconnected marks.
    Points,
}

/// JSON has null for a number that is not finite.
fn with_gaps<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let values = Vec::<Option<f64>>::deserialize(from)?;
    Ok(values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect())
}

/// The same for the rows of a table.
fn rows_with_gaps<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Vec<f64>>, D::Error> {
    let rows = Vec::<Vec<Option<f64>>>::deserialize(from)?;
    let filled = |row: Vec<Option<f64>>| row.into_iter().map(|x| x.unwrap_or(f64::NAN)).collect();
    Ok(rows.into_iter().map(filled).collect())
}

/// A line across the whole chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefLine {
    /// Which coordinate it holds fixed.
    pub direction: Direction,
    /// At which value.
    pub at: f64,
    /// Written at its end; empty for none.
    pub label: String,
}

/// Direction of a reference line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Constant y.
    Horizontal,
    /// Constant x.
    Vertical,
}

impl Figure {
    /// An empty figure; add charts with [`Figure::chart`].
    pub fn new(title: &str) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Adds a chart.
    pub fn chart(mut self, chart: Chart) -> Self {
        self.charts.push(chart);
        self
    }

    /// Sets how many charts stand in a row.
    pub fn columns(mut self, columns: usize) -> Self {
        self.columns = columns;
        self
    }
}

impl From<Chart> for Figure {
    fn from(chart: Chart) -> Self {
        Self::default().chart(chart)
    }
}

impl Axis {
    /// A linear axis over the range of the data.
    pub fn linear(label: &str) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// A logarithmic axis over the range of the data.
    pub fn log(label: &str) -> Self {
        Self { label: label.into(), scale: AxisScale::Log, ..Self::default() }
    }

    /// A linear axis with these names at 0, 1, 2, …
    pub fn named(label: &str, names: Vec<String>) -> Self {
        Self { label: label.into(), names, ..Self::default() }
    }

    /// Fixes the ends; an end that is not finite is taken from the data.
    pub fn range(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }
}

impl Chart {
    /// An empty chart with linear axes.
    pub fn new(title: &str) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Sets the line below the title.
    pub fn subtitle(mut self, subtitle: &str) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// Sets the horizontal axis.
    pub fn x(mut self, axis: Axis) -> Self {
        self.x = axis;
        self
    }

    /// Sets the vertical axis.
    pub fn y(mut self, axis: Axis) -> Self {
        self.y = axis;
        self
    }

    /// Adds a series made by hand, say with a colour of its choice.
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a curve.
    pub fn line(self, label: &str, x: &[f64], y: &[f64]) -> Self {
        self.series(Series::line(label, x, y))
    }

    /// Adds a curve in short dashes.
    pub fn dashed(self, label: &str, x: &[f64], y: &[f64]) -> Self {
        self.series(Series::dashed(label, x, y))
    }

    /// Adds a band.
    pub fn band(self, label: &str, x: &[f64], low: &[f64], high: &[f64]) -> Self {
        self.series(Series::band(label, x, low, high))
    }

    /// Adds unconnected marks.
    pub fn points(self, label: &str, x: &[f64], y: &[f64]) -> Self {
        self.series(Series::points(label, x, y))
    }

    /// Adds a horizontal reference line.
    pub fn hline(self, at: f64, label: &str) -> Self {
        self.reference(Direction::Horizontal, at, label)
    }

    /// Adds a vertical reference line.
    pub fn vline(self, at: f64, label: &str) -> Self {
        self.reference(Direction::Vertical, at, label)
    }

    /// Sets the map below the series.
    pub fn heat(mut self, map: HeatMap) -> Self {
        self.heat = Some(map);
        self
    }

    /// Sets the small print.
    pub fn note(mut self, note: &str) -> Self {
        self.note = Some(note.into());
        self
    }

    fn reference(mut self, direction: Direction, at: f64, label: &str) -> Self {
        self.lines.push(RefLine { direction, at, label: label.into() });
        self
    }
}

impl Series {
    fn new(label: &str, x: &[f64], y: &[f64], kind: SeriesKind) -> Self {
        Self { label: label.into(), x: x.to_vec(), y: y.to_vec(), kind, slot: None }
    }

    /// A curve.
    pub fn line(label: &str, x: &[f64], y: &[f64]) -> Self {
        Self::new(label, x, y, SeriesKind::Line)
    }

    /// A curve in short dashes.
    pub fn dashed(label: &str, x: &[f64], y: &[f64]) -> Self {
        Self::new(label, x, y, SeriesKind::Dashed)
    }

    /// A band between two curves.
    pub fn band(label: &str, x: &[f64], low: &[f64], high: &[f64]) -> Self {
        Self::new(label, x, &[], SeriesKind::Band { low: low.to_vec(), high: high.to_vec() })
    }

    /// Unconnected marks.
    pub fn points(label: &str, x: &[f64], y: &[f64]) -> Self {
        Self::new(label, x, y, SeriesKind::Points)
    }

    /// A histogram: the area between zero and one height for each pair of neighbouring edges.
    pub fn histogram(label: &str, edges: &[f64], heights: &[f64]) -> Self {
        // A band that goes up and down in steps, with two points at every edge.
        let sides = |i: usize| [edges[i], edges[i + 1]];
        let bins = heights.len().min(edges.len().saturating_sub(1));
        let x: Vec<f64> = (0..bins).flat_map(sides).collect();
        let high: Vec<f64> = heights[..bins].iter().flat_map(|&h| [h, h]).collect();
        Self::band(label, &x, &vec![0.0; x.len()], &high)
    }

    /// Draws a line through a band, say the median of its ensemble.
    pub fn middle(mut self, y: &[f64]) -> Self {
        self.y = y.to_vec();
        self
    }

    /// Chooses the colour by number.
    pub fn slot(mut self, slot: usize) -> Self {
        self.slot = Some(slot);
        self
    }
}
