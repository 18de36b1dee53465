//! The experiment that a question is about, built once and kept while the page asks about it.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Value;
use toclip::spectrum::Modes;
use toclip_experiment::{Clip, Experiment, Origin, Problem, of_values};

use crate::dropped::quantiles;
use crate::glm;

/// An experiment as the page describes it: the keys of a file for `toclip run`.
pub type Description = serde_json::Map<String, Value>;

/// An experiment with the problem that it describes.
#[derive(Debug)]
pub struct Setting {
    /// What was asked for.
    pub experiment: Experiment,
    /// What it describes.
    pub problem: Problem,
    /// The modes for the ODE: few enough to solve it within a frame.
    pub nodes: Rc<Modes>,
}

/// Above so many modes they are compressed, and the error that leaves: below the tolerance of the ODE.
const COMPRESS_ABOVE: usize = 40;
const COMPRESSED: f64 = 1e-10;

/// The page compares two settings, and asks for each of them clipped its own way and the best.
const KEPT: usize = 4;

/// Values by the key that they were made from, the latest first.
pub type Kept<T> = RefCell<Vec<(String, Rc<T>)>>;

thread_local! {
    static RECENT: Kept<Setting> = const { RefCell::new(Vec::new()) };
    static NODES: Kept<Modes> = const { RefCell::new(Vec::new()) };
}

impl Setting {
    /// The setting, built unless it is one of the last few.
    pub fn of(description: &Description) -> Result<Rc<Self>, String> {
        Self::kept(description, "own", |_| {})
    }

    /// The same with the threshold of the largest CCC at every moment.
    pub fn best_of(description: &Description) -> Result<Rc<Self>, String> {
        Self::kept(description, "best", |experiment| experiment.clip = Clip::MaxCcc)
    }

    fn kept(
        description: &Description,
        name: &str,
        change: impl Fn(&mut Experiment),
    ) -> Result<Rc<Self>, String> {
        let key = format!("{name} {}", to_json_text(description));
        recall(&RECENT, key, || {
            let (mut experiment, origin) = parse(description)?;
            change(&mut experiment);
            let problem = Problem::new(&experiment, &origin).map_err(|error| error.sentence())?;
            let nodes = nodes(&experiment, &problem)?;
            Ok(Setting { experiment, problem, nodes })
        })
    }

    /// A threshold of the user in the coordinates of the theory.
    pub fn threshold(&self, c: f64) -> f64 {
        self.problem.rescaling().threshold(c)
    }

    /// A threshold of the theory in the coordinates of the user.
    pub fn user_threshold(&self, c: f64) -> f64 {
        self.problem.rescaling().inverse().threshold(c)
    }
}

/// Modes that give the same curves, kept while only noise, step and schedule change.
fn nodes(experiment: &Experiment, problem: &Problem) -> Result<Rc<Modes>, String> {
    let modes = &problem.few_modes;
    let key = format!("{:?} {:?} {:?}", experiment.spectrum, experiment.start, experiment.groups);
    // The bound on the error is that of the equations of radial rules; the noise of private SGD goes
    // into every direction, of which compressed modes keep no count.
    let step = &problem.step;
    let compress =
        modes.modes().len() > COMPRESS_ABOVE && step.rule().is_radial() && step.privacy().is_none();
    recall(&NODES, format!("{compress} {key}"), || {
        if compress {
            modes.compress(COMPRESSED).map_err(|error| error.to_string())
        } else {
            Ok(modes.clone())
        }
    })
}

/// What was kept under a key, or else is made and kept.
pub fn recall<T>(
    store: &'static std::thread::LocalKey<Kept<T>>,
    key: String,
    make: impl FnOnce() -> Result<T, String>,
) -> Result<Rc<T>, String> {
    let found =
        store.with_borrow(|kept| kept.iter().find(|(k, _)| *k == key).map(|(_, v)| v.clone()));
    if let Some(found) = found {
        return Ok(found);
    }
    let made = Rc::new(make()?);
    store.with_borrow_mut(|kept| {
        kept.truncate(KEPT - 1);
        kept.insert(0, (key, made.clone()));
    });
    Ok(made)
}

fn to_json_text(description: &Description) -> String {
    serde_json::to_string(description).unwrap_or_default()
}

/// An experiment of the page as values of a file.
pub fn toml_values(description: &Description) -> Result<toml::Table, String> {
    let mut values: toml::Table =
        serde_json::from_value(Value::Object(description.clone())).map_err(|e| e.to_string())?;
    // The page decides itself what it computes; checks of methods that it does not use would cost
    // time at every move of a slider.
    values.insert("methods".into(), vec!["ode"].into());
    values.remove("criteria");
    Ok(values)
}

fn parse(description: &Description) -> Result<(Experiment, Origin), String> {
    let values = toml_values(description)?;
    let (file, origin) = of_values(&values).map_err(|error| error.sentence())?;
    let experiment = file.into_trajectories(&origin).map_err(|error| error.sentence())?;
    Ok((experiment, origin))
}

/// The experiment of a TOML text as the page describes it, once it is known to be one.
pub fn read(text: &str) -> Result<Value, String> {
    let (file, origin) = toclip_experiment::parse_file(text, std::path::Path::new("experiment"))
        .map_err(|error| error.sentence())?;
    if let Some(model) = &file.glm {
        glm::check(model, &origin)?;
    } else {
        let experiment = file.into_trajectories(&origin).map_err(|error| error.sentence())?;
        Problem::new(&experiment, &origin).map_err(|error| error.sentence())?;
    }
    let mut table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    if let Some(toml::Value::Array(values)) =
        table.get_mut("noise").and_then(|n| n.get_mut("values"))
    {
        let numbers =
            values.iter().filter_map(|v| v.as_float().or(v.as_integer().map(|n| n as f64)));
        *values = quantiles(numbers.collect()).into_iter().map(toml::Value::Float).collect();
    }
    Ok(to_json(toml::Value::Table(table)))
}

/// JSON has no infinity: it becomes the string that experiments accept for it.
fn to_json(value: toml::Value) -> Value {
    match value {
        toml::Value::Float(x) if x.is_infinite() => "inf".into(),
        toml::Value::Float(x) => x.into(),
        toml::Value::Integer(n) => n.into(),
        toml::Value::Boolean(yes) => yes.into(),
        toml::Value::String(text) => text.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => items.into_iter().map(to_json).collect(),
        toml::Value::Table(table) => {
            table.into_iter().map(|(key, value)| (key, to_json(value))).collect()
        }
    }
}
