//! Curves of the criteria as a table, a plot and a summary.

use std::fmt;

use serde::Serialize;

use super::{Criteria, CriteriaCurves, Criterion};
use crate::output::Table;
use crate::output::terminal::columns;
use crate::plot::{Axis, Chart, Figure};
use toclip_words::short;

/// The abscissae, and a column such as `CSC Gaussian` for each curve.
pub fn criteria_table(found: &CriteriaCurves) -> Table {
    let table = Table::default().numbers(found.against, found.x.iter().copied());
    found.curves.iter().fold(table, |table, curve| {
        let name = format!("{} {}", curve.criterion.title(), curve.label);
        table.numbers(name, curve.y.iter().copied())
    })
}

/// The curves of one criterion.
pub fn criteria_chart(found: &CriteriaCurves, criterion: Criterion, title: &str) -> Chart {
    let x = if found.against == "c" { "threshold c" } else { "risk R" };
    let y = match criterion {
        Criterion::Csc => Axis::log("CSC = μ/ν"),
        Criterion::MaxCcc => Axis::log("max CCC over c"),
        _ => Axis::linear("CCC = μ²/ν"),
    };
    let chart = Chart::new(title).x(Axis::linear(x)).y(y);
    let of = found.of(criterion);
    let draw =
        |chart: Chart, curve: &super::CriterionCurve| chart.line(&curve.label, &of.x, &curve.y);
    of.curves.iter().fold(chart, draw).hline(1.0, "1")
}

/// All curves, a chart for each criterion.
pub fn criteria_figure(name: &str, criteria: &Criteria, found: &CriteriaCurves) -> Figure {
    let chart = |&criterion: &Criterion| {
        let title = if criteria.curves.len() == 1 { name } else { criterion.title() };
        criteria_chart(found, criterion, title).subtitle(&settings(criteria))
    };
    let columns = criteria.curves.len().min(2);
    let figure = Figure::new(if columns == 1 { "" } else { name });
    criteria.curves.iter().map(chart).fold(figure, Figure::chart).columns(columns)
}

/// "R = 3; c from 0.1 to 30".
pub fn settings(criteria: &Criteria) -> String {
    let threshold = criteria.threshold.map_or(String::new(), |c| format!("; c {c}"));
    format!("R {}{threshold}", criteria.risk)
}

/// Where each curve is lowest and highest.
#[derive(Debug, Clone, Serialize)]
pub struct CriteriaReport {
    name: String,
    settings: String,
    against: &'static str,
    curves: Vec<CurveReport>,
}

#[derive(Debug, Clone, Serialize)]
struct CurveReport {
    criterion: Criterion,
    noise: String,
    lowest: Extremum,
    highest: Extremum,
}

/// A point of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Extremum {
    /// R or c.
    pub at: f64,
    /// The criterion.
    pub value: f64,
}

/// The lowest and the highest point of a curve; NaN where it has none.
pub fn extremes(x: &[f64], y: &[f64]) -> [Extremum; 2] {
    let all = || x.iter().zip(y).map(|(&at, &value)| Extremum { at, value });
    let none = Extremum { at: f64::NAN, value: f64::NAN };
    [
        all().min_by(|a, b| a.value.total_cmp(&b.value)).unwrap_or(none),
        all().max_by(|a, b| a.value.total_cmp(&b.value)).unwrap_or(none),
    ]
}

impl CriteriaReport {
    pub fn new(name: &str, criteria: &Criteria, found: &CriteriaCurves) -> Self {
        let curves = found.curves.iter().map(|curve| {
            let [lowest, highest] = extremes(&found.x, &curve.y);
            let noise = curve.label.clone();
            CurveReport { criterion: curve.criterion, noise, lowest, highest }
        });
        CriteriaReport {
            name: name.into(),
            settings: settings(criteria),
            against: found.against,
            curves: curves.collect(),
        }
    }
}

impl fmt::Display for CriteriaReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n  {}\n", self.name, self.settings)?;
        let at = format!("at {}", self.against);
        let rows = self.curves.iter().map(|curve| {
            let Extremum { at: low, value: lowest } = curve.lowest;
            let Extremum { at: high, value: highest } = curve.highest;
            let name = format!("{} {}", curve.criterion.title(), curve.noise);
            [name, short(lowest), short(low), short(highest), short(high)]
        });
        f.write_str(&columns("lrrrr", ["curve", "lowest", &at, "highest", &at], rows))
    }
}
