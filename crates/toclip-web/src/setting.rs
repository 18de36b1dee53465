//! The setting that a question is about: an experiment, built once and kept while the page asks about it.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use serde_json::Value;
use toclip_experiment::{Prepared, of_values, parse};

use crate::dropped::quantiles;
use crate::explored::Explored;
use crate::kept::{Kept, recall};

thread_local! {
    static RECENT: Kept<toml::Table, Rc<Explored>> = const { RefCell::new(Vec::new()) };
}

/// The setting that the page describes by the keys of a file for `toclip run`; built unless it is one of the
/// last few.
pub fn of(mut values: toml::Table) -> Result<Rc<Explored>, String> {
    // The page decides itself what it computes; checks of methods that it does not use would cost
    // time at every move of a slider.
    values.insert("methods".into(), vec!["ode"].into());
    values.remove("criteria");
    let build = |values: &toml::Table| {
        let (file, origin) = of_values(values, Path::new("")).map_err(|e| e.sentence())?;
        let experiment = file.into_trajectories(&origin).map_err(|e| e.sentence())?;
        Explored::new(experiment, &origin).map(Rc::new)
    };
    recall(&RECENT, values, build)
}

/// The experiment of a TOML text as the page describes it, once it is known to be one.
pub fn read(text: &str) -> Result<Value, String> {
    let (experiment, origin) = parse(text, Path::new("experiment")).map_err(|e| e.sentence())?;
    Prepared::new(&experiment, &origin).map_err(|e| e.sentence())?;
    let mut table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    if let Some(toml::Value::Array(values)) =
        table.get_mut("noise").and_then(|n| n.get_mut("values"))
    {
        let numbers =
            values.iter().filter_map(|v| v.as_float().or(v.as_integer().map(|n| n as f64)));
        *values = quantiles(numbers.collect()).into_iter().map(toml::Value::Float).collect();
    }
    let mut value = toml::Value::Table(table);
    name_infinities(&mut value);
    serde_json::to_value(value).map_err(|error| error.to_string())
}

/// JSON has no infinity: it becomes the string that experiments accept for it.
fn name_infinities(value: &mut toml::Value) {
    match value {
        toml::Value::Float(x) if x.is_infinite() => *value = "inf".into(),
        toml::Value::Array(items) => items.iter_mut().for_each(name_infinities),
        toml::Value::Table(table) => {
            table.iter_mut().for_each(|(_, value)| name_infinities(value));
        }
        _ => {}
    }
}
