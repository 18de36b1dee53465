//! The numbers of a selection as a figure.

use toclip_sweep::{KeyValues, Sweep, text};

use super::select::Selection;
use crate::output::numbers::short;
use crate::plot::{Axis, AxisScale, Chart, Figure, HeatMap};

/// A range this many times its start is drawn on a logarithmic scale: of an axis, and of values.
const WIDE: (f64, f64) = (20.0, 3.0);

/// A heat map, or lines.
pub fn figure(sweep: &Sweep, selection: &Selection, values: &[Vec<f64>]) -> Figure {
    let value = value_name(selection);
    let (x, places) = axis(&selection.x);
    let mut chart = Chart::new(&sweep.name).x(x).subtitle(&subtitle(selection, &value));
    let known: Vec<f64> = values.iter().flatten().copied().filter(|x| x.is_finite()).collect();
    // A ratio of 0 is that to a risk which diverged.
    let scale = scale_of(&known, if selection.relative_to.is_some() { 0.0 } else { WIDE.1 });
    match (&selection.by, selection.map) {
        (Some(by), true) => {
            let (y, rows) = axis(by);
            let middle = selection.relative_to.is_some().then_some(1.0);
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
                    Some(by) => format!("{} = {}", by.key, shown(&by.values[j])),
                    None => String::new(),
                };
                chart = chart.line(&label, &places, row);
            }
            if selection.relative_to.is_some() {
                chart = chart.hline(1.0, "");
            }
        }
    }
    let mut grey = Vec::new();
    if let (Some((key, value)), true) = (&selection.relative_to, known.contains(&0.0)) {
        grey.push(format!("every cell with {key} = {} diverges", shown(value)));
    }
    if known.len() < values.iter().map(Vec::len).sum() {
        grey.push("diverged, failed or not finished".into());
    }
    if !grey.is_empty() {
        let what = if selection.map { "Grey" } else { "Not drawn" };
        chart = chart.note(&format!("{what}: {}.", grey.join(", or ")));
    }
    chart.into()
}

fn value_name(selection: &Selection) -> String {
    match &selection.relative_to {
        None => selection.value.clone(),
        Some((key, value)) => format!("{} relative to {key} = {}", selection.value, shown(value)),
    }
}

fn subtitle(selection: &Selection, value: &str) -> String {
    let mut parts = vec![value.to_owned()];
    if !selection.minimized.is_empty() {
        parts.push(format!("smallest over {}", selection.minimized.join(", ")));
    }
    parts.extend(selection.fixed.iter().map(|(key, value)| format!("{key} = {}", shown(value))));
    parts.join("; ")
}

/// A value of a key for people.
fn shown(value: &toml::Value) -> String {
    value.as_float().map_or_else(|| text(value), short)
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
    let least = numbers.iter().copied().filter(|x| *x != 0.0).fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(0.0, f64::max);
    match least > 0.0 && most >= wide * least {
        true => AxisScale::Log,
        false => AxisScale::Linear,
    }
}
