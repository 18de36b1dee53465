//! The setting that a question is about: an experiment, built once and kept while the page asks about it.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::thread::LocalKey;

use serde_json::Value;
use toclip_experiment::{GlmProblem, Problem, of_values, parse_file};

use crate::answers::{DensityCurve, FactorCurves, JudgedMoment, MapColumn};
use crate::dropped::quantiles;
use crate::glm::ExploredGlm;
use crate::least_squares::ExploredLeastSquares;

/// An experiment as the page describes it: the keys of a file for `toclip run`.
pub type Description = serde_json::Map<String, Value>;

/// The answers that the page needs about an experiment. Risks are losses for generalised linear models,
/// whose questions about a moment need its time. Thresholds and rates are in the units of the experiment.
pub trait Explored {
    /// The risk over time: clipped as the experiment says, and unclipped.
    fn paths(&self) -> Result<Value, String>;
    /// The risk over time with the threshold of the largest CCC at every moment.
    fn best_path(&self) -> Result<Value, String>;
    /// One run of C-SGD.
    fn run(&self, seed: u64, index: u64) -> Result<Value, String>;
    /// The factors at a moment against the threshold.
    fn factors(&self, risk: f64, time: f64, thresholds: &[f64]) -> Result<FactorCurves, String>;
    /// Whether to clip at a moment.
    fn verdict(&self, risk: f64, time: f64) -> Result<JudgedMoment, String>;
    /// The density of the residual of one sample at a risk; `reach` is in the picture.
    fn density(&self, risk: f64, reach: f64) -> Result<DensityCurve, String>;
    /// The final risk at one threshold and several rates, each the largest rate of the schedule.
    fn map_column(&self, threshold: f64, rates: &[f64]) -> Result<MapColumn, String>;
}

/// The page compares two settings, and a control moves back as often as forth.
const KEPT: usize = 4;

/// Values by the key that they were made from, the latest first.
pub type Kept<T> = RefCell<Vec<(String, Rc<T>)>>;

thread_local! {
    static RECENT: Kept<dyn Explored> = const { RefCell::new(Vec::new()) };
}

/// The setting, built unless it is one of the last few.
pub fn of(description: &Description) -> Result<Rc<dyn Explored>, String> {
    let key = serde_json::to_string(description).unwrap_or_default();
    recall(&RECENT, key, || {
        let values = toml_values(description)?;
        let (file, origin) = of_values(&values, Path::new("")).map_err(|e| e.sentence())?;
        if let Some(experiment) = file.glm {
            return Ok(Rc::new(ExploredGlm::new(experiment, &origin)?));
        }
        let experiment = file.into_trajectories(&origin).map_err(|e| e.sentence())?;
        Ok(Rc::new(ExploredLeastSquares::new(experiment, &origin)?))
    })
}

/// The value kept under a key, or else the one that is made and kept.
pub fn recall<T: ?Sized>(
    store: &'static LocalKey<Kept<T>>,
    key: String,
    make: impl FnOnce() -> Result<Rc<T>, String>,
) -> Result<Rc<T>, String> {
    let found =
        store.with_borrow(|kept| kept.iter().find(|(k, _)| *k == key).map(|(_, v)| v.clone()));
    if let Some(found) = found {
        return Ok(found);
    }
    let made = make()?;
    store.with_borrow_mut(|kept| {
        kept.truncate(KEPT - 1);
        kept.insert(0, (key, made.clone()));
    });
    Ok(made)
}

/// An experiment of the page as values of a file.
fn toml_values(description: &Description) -> Result<toml::Table, String> {
    let mut values: toml::Table =
        serde_json::from_value(Value::Object(description.clone())).map_err(|e| e.to_string())?;
    // The page decides itself what it computes; checks of methods that it does not use would cost
    // time at every move of a slider.
    values.insert("methods".into(), vec!["ode"].into());
    values.remove("criteria");
    Ok(values)
}

/// The experiment of a TOML text as the page describes it, once it is known to be one.
pub fn read(text: &str) -> Result<Value, String> {
    let (file, origin) = parse_file(text, Path::new("experiment")).map_err(|e| e.sentence())?;
    match &file.glm {
        Some(experiment) => GlmProblem::new(experiment, &origin).map(|_| ()),
        None => file.into_trajectories(&origin).and_then(|e| Problem::new(&e, &origin)).map(|_| ()),
    }
    .map_err(|e| e.sentence())?;
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
