//! The numbers of a selection as a figure.

use anyhow::{Result, bail};
use toclip_sweep::{KeyValues, Sweep};

use super::select::{PictureValues, Selection, shown};
use crate::plot::{Axis, AxisScale, Chart, Figure, HeatMap};

/// A range this many times its start is drawn on a logarithmic scale: of an axis, and of values.
const WIDE: (f64, f64) = (20.0, 3.0);

/// A heat map, lines, or points.
pub fn figure(sweep: &Sweep, selection: &Selection, drawn: &PictureValues) -> Result<Figure> {
    let (value, PictureValues { values, reasons }) = (value_name(selection), drawn);
    let (x, places) = axis(&selection.x.shown);
    let mut chart = Chart::new(&sweep.name).x(x).subtitle(&subtitle(selection, &value));
    let ratios = selection.relative_to.is_some();
    // A ratio of 0 is that to a risk which diverged.
    let known = |x: &f64| x.is_finite() && !(ratios && *x == 0.0);
    let known: Vec<f64> = values.iter().flatten().copied().filter(known).collect();
    let reasons = either(reasons);
    if known.is_empty() {
        bail!("nothing to draw: no cell has a value of {value} ({reasons})");
    }
    let scale = scale_of(&known, if ratios { 0.0 } else { WIDE.1 });
    match (&selection.by, selection.map) {
        (Some(by), true) => {
            let (y, rows) = axis(&by.shown);
            let middle = ratios.then_some(1.0);
            let map = HeatMap {
                label: value,
                x: places,
                y: rows,
                values: values.to_vec(),
                scale,
                middle,
            };
            chart = chart.y(y).heat(map);
        }
        (by, _) => {
            chart = chart.y(Axis { label: value, scale, ..Axis::default() });
            for (j, row) in values.iter().enumerate() {
                let label = match by {
                    Some(by) => format!("{} = {}", by.shown.key, shown(&by.shown.values[j])),
                    None => String::new(),
                };
                chart = match selection.points {
                    true => chart.points(&label, &places, row),
                    false => chart.line(&label, &places, row),
                };
            }
            if ratios {
                chart = chart.hline(1.0, "");
            }
        }
    }
    if !reasons.is_empty() {
        let what = if selection.map { "Grey" } else { "Not drawn" };
        chart = chart.note(&format!("{what}: {reasons}."));
    }
    Ok(chart.into())
}

/// `a, b or c`.
fn either(reasons: &[String]) -> String {
    match reasons {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => reasons.concat(),
    }
}

fn value_name(selection: &Selection) -> String {
    match &selection.relative_to {
        None => selection.value.clone(),
        Some(setting) => format!("{} relative to {setting}", selection.value),
    }
}

fn subtitle(selection: &Selection, value: &str) -> String {
    let mut parts = vec![value.to_owned()];
    if !selection.minimized.is_empty() {
        parts.push(format!("smallest over {}", selection.minimized.join(", ")));
    }
    parts.extend(selection.fixed.iter().map(ToString::to_string));
    parts.join("; ")
}

/// A name that has room on an axis.
fn shorten(name: &str) -> String {
    match name.chars().count() {
        0..=14 => name.to_owned(),
        _ => name.chars().take(13).chain(['…']).collect(),
    }
}

/// The axis of a key and the place of each of its values: numbers, or names where they are none.
fn axis(key: &KeyValues) -> (Axis, Vec<f64>) {
    match key.numbers().filter(|numbers| numbers.iter().all(|x| x.is_finite())) {
        Some(numbers) => {
            let scale = scale_of(&numbers, WIDE.0);
            (Axis { label: key.key.clone(), scale, ..Axis::default() }, numbers)
        }
        None => {
            let names: Vec<String> =
                key.values.iter().map(|value| shorten(&shown(value))).collect();
            let places = (0..names.len()).map(|k| k as f64).collect();
            (Axis::named(&key.key, names), places)
        }
    }
}

/// Logarithmic for positive numbers of which the largest is so many times the smallest.
fn scale_of(numbers: &[f64], wide: f64) -> AxisScale {
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(0.0, f64::max);
    match least > 0.0 && most >= wide * least {
        true => AxisScale::Log,
        false => AxisScale::Linear,
    }
}
