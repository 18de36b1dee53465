//! The parts of a file that may be said in several ways: the learning rate, the threshold, the
//! noise, the points.
//!
//! They are told apart by hand. Serde's own way (untagged enums) can only say that none of the ways
//! fits, not which key of which one is wrong.

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use toclip::dynamics::Covariates;
use toclip::noise::Family;
use toclip::schedule::{Compensation, Proportional, Schedule, Shape};
use toml::Spanned;
use toml::de::{DeValue, Error, ValueDeserializer};

use crate::Points;

/// A value of the file with its place.
pub(crate) type Value<'a> = Spanned<DeValue<'a>>;

/// A value that is read as its type says.
pub(crate) fn plain<'a, T: Deserialize<'a>>(value: Value<'a>) -> Result<T, Error> {
    T::deserialize(ValueDeserializer::from(value))
}

/// The kinds of a schedule, as [`Shape`] knows them.
pub(crate) const SHAPES: [&str; 6] =
    ["constant", "cosine", "warmup", "step", "polynomial", "table"];

fn is_number(value: &Value<'_>) -> bool {
    value.get_ref().is_float() || value.get_ref().is_integer()
}

/// The text of a key of a table.
fn text<'a>(value: &'a Value<'_>, key: &str) -> Option<&'a str> {
    value.get_ref().get(key).and_then(|v| v.get_ref().as_str())
}

/// Refuses further keys in a table whose kind takes none: there, serde overlooks them.
fn alone(value: &Value<'_>, kinds: &[&str]) -> Result<(), Error> {
    let (Some(kind), Some(table)) = (text(value, "kind"), value.get_ref().as_table()) else {
        return Ok(());
    };
    match table.iter().map(|(key, _)| key.get_ref()).find(|key| *key != "kind") {
        Some(key) if kinds.contains(&kind) => {
            Err(Error::custom(format!("unknown field `{key}`: \"{kind}\" takes no parameters")))
        }
        _ => Ok(()),
    }
}

/// The law of the data.
pub(crate) fn covariates(value: Value<'_>) -> Result<Covariates, Error> {
    alone(&value, &["gaussian", "rademacher", "uniform", "laplace"])?;
    plain(value)
}

/// A number or a table with a kind.
pub(crate) fn schedule(value: Value<'_>) -> Result<Schedule, Error> {
    if is_number(&value) {
        return Schedule::constant(plain(value)?).map_err(Error::custom);
    }
    if !value.get_ref().is_table() {
        return Err(Error::custom(format!(
            "give a number, or a table such as {{ kind = \"cosine\", from = 0.7, over = 15.0 }}, \
             not a {}",
            value.get_ref().type_str()
        )));
    }
    Schedule::new(plain::<Shape>(value)?).map_err(Error::custom)
}

/// As [`schedule`], and finite.
pub(crate) fn learning_rate(value: Value<'_>) -> Result<Schedule, Error> {
    let schedule = schedule(value)?;
    match schedule.shape() {
        Shape::Constant { value } if !value.is_finite() => {
            Err(Error::custom(format!("{value} is not allowed: a learning rate is finite")))
        }
        _ => Ok(schedule),
    }
}

/// How gradients are clipped.
#[derive(Debug, Clone, PartialEq)]
pub enum Clip {
    /// Not at all.
    None,
    /// At a threshold that only looks at the clock.
    Schedule(Schedule),
    /// Where CCC is largest.
    MaxCcc,
    /// At κ standard deviations of the residual.
    Proportional {
        /// κ.
        kappa: f64,
        /// What the learning rate does about it.
        compensation: Compensation,
    },
}

impl Clip {
    pub(crate) const KINDS: [&'static str; 2] = ["max_ccc", "proportional"];

    /// Whether anything is clipped at all.
    pub fn clips(&self) -> bool {
        *self != Clip::None
    }
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Rule {
    MaxCcc,
    Proportional {
        #[serde(default = "huber")]
        kappa: f64,
        #[serde(default)]
        compensation: Compensation,
    },
}

fn huber() -> f64 {
    Proportional::HUBER
}

/// A number, `"none"`, or a table with a kind.
pub(crate) fn clip(value: Value<'_>) -> Result<Clip, Error> {
    if let Some(word) = value.get_ref().as_str() {
        return match word {
            "none" => Ok(Clip::None),
            _ => Err(Error::custom(format!(
                "\"{word}\" is not known: give a threshold such as 0.9, \"none\", or a table such \
                 as {{ kind = \"proportional\", kappa = 1.345 }}"
            ))),
        };
    }
    if let Some(kind) = text(&value, "kind") {
        if Clip::KINDS.contains(&kind) {
            alone(&value, &["max_ccc"])?;
            return Ok(match plain(value)? {
                Rule::MaxCcc => Clip::MaxCcc,
                Rule::Proportional { kappa, compensation } => {
                    if !(kappa > 0.0 && kappa.is_finite()) {
                        return Err(Error::custom(format!(
                            "kappa = {kappa} is not allowed: must be positive and finite"
                        )));
                    }
                    Clip::Proportional { kappa, compensation }
                }
            });
        }
        if !SHAPES.contains(&kind) {
            let kinds = [&Clip::KINDS[..], &SHAPES[..]].concat().join("`, `");
            return Err(Error::custom(format!("unknown kind `{kind}`, expected one of `{kinds}`")));
        }
    }
    let schedule = schedule(value)?;
    match schedule.shape() {
        Shape::Constant { value } if *value == f64::INFINITY => Ok(Clip::None),
        Shape::Constant { value } if *value <= 0.0 => Err(Error::custom(format!(
            "{value} is not allowed: a threshold is positive; \"none\" is for no clipping"
        ))),
        _ => Ok(Clip::Schedule(schedule)),
    }
}

impl Serialize for Clip {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Clip::None => serializer.serialize_str("none"),
            Clip::Schedule(schedule) => schedule.serialize(serializer),
            Clip::MaxCcc => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("kind", "max_ccc")?;
                map.end()
            }
            Clip::Proportional { kappa, compensation } => {
                let mut map = serializer.serialize_map(Some(3))?;
                map.serialize_entry("kind", "proportional")?;
                map.serialize_entry("kappa", kappa)?;
                map.serialize_entry("compensation", compensation)?;
                map.end()
            }
        }
    }
}

/// The noise: a family with its parameters, or residuals in a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum NoiseChoice {
    /// A family with its parameters.
    Family(Family),
    /// Residuals in a file.
    File(Residuals),
}

/// `{ family = "empirical", file = "residuals.csv" }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Residuals {
    /// Always `empirical`.
    pub family: String,
    /// The file, from the folder of the experiment.
    pub file: String,
}

pub(crate) fn noise(value: Value<'_>) -> Result<NoiseChoice, Error> {
    if text(&value, "family") == Some("empirical") && value.get_ref().get("values").is_none() {
        if value.get_ref().get("file").is_none() {
            return Err(Error::custom(
                "empirical noise needs `values`, a list of residuals, or `file`, a CSV or NPY file \
                 of them",
            ));
        }
        return Ok(NoiseChoice::File(plain(value)?));
    }
    Ok(NoiseChoice::Family(plain(value)?))
}

/// A number of points, or a table.
pub(crate) fn points(value: Value<'_>) -> Result<Points, Error> {
    let points = if value.get_ref().is_integer() {
        Points { count: plain(value)?, ..Points::default() }
    } else {
        plain(value)?
    };
    if points.count < 2 {
        return Err(Error::custom(format!("{} is too few: give at least 2", points.count)));
    }
    Ok(points)
}
