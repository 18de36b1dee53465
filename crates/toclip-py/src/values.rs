//! Reads dictionaries, lists and numbers by the grammar of experiment files.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyMapping, PyString, PyTuple};
use serde::de::DeserializeOwned;
use toclip_experiment::from_value;
use toml::Value;

use crate::convert::{kind, refuse, shown};
use crate::noise::Noise;
use crate::schedule::Schedule;
use crate::spectrum::Spectrum;

/// No value of the grammar is nested deeper; a list that contains itself is.
const DEEPEST: usize = 16;

/// Reads a dictionary, list, string or number; errors call it `name`.
pub fn from_python<T: DeserializeOwned>(name: &str, value: &Bound<'_, PyAny>) -> PyResult<T> {
    from_value(read(name, value, DEEPEST)?).map_err(|error| refuse(error.whole().about(name)))
}

/// The values of a whole experiment; errors name its keys.
pub fn experiment_values(mapping: &Bound<'_, PyMapping>) -> PyResult<toml::Table> {
    read_dict("the experiment", mapping, DEEPEST, str::to_owned)
}

/// The same for an argument that may be left out.
pub fn optional<T: DeserializeOwned>(
    name: &str,
    value: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<T>> {
    value.map(|value| from_python(name, value)).transpose()
}

/// The same for an argument that must be a dictionary, or an object made from one.
pub fn from_dict<T: DeserializeOwned>(
    name: &str,
    value: &Bound<'_, PyAny>,
    example: &str,
) -> PyResult<T> {
    if is_dict(value) || specification(name, value)?.is_some() {
        return from_python(name, value);
    }
    let what = shown(value);
    Err(refuse(format!("{name} must be a dictionary such as {example}, not {what}")))
}

/// Whether it is a dictionary, or behaves like one.
pub fn is_dict(value: &Bound<'_, PyAny>) -> bool {
    value.cast::<PyMapping>().is_ok()
}

fn read(name: &str, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth == 0 {
        return Err(refuse(format!("{name} is nested too deeply")));
    }
    if let Some(known) = specification(name, value)? {
        return Ok(known);
    }
    if let Ok(string) = value.cast::<PyString>() {
        return read_string(name, string).map(Value::String);
    }
    if let Ok(mapping) = value.cast::<PyMapping>() {
        return read_dict(name, mapping, depth, |key| format!("{name}: {key}")).map(Value::Table);
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| read(name, &item?, depth - 1));
        return items.collect::<PyResult<_>>().map(Value::Array);
    }
    // NumPy arrays and scalars, what behaves like them, and paths.
    for method in ["tolist", "__fspath__"] {
        if let Ok(plain) = value.call_method0(method) {
            return read(name, &plain, depth - 1);
        }
    }
    let number = (value.extract().map(Value::Boolean))
        .or_else(|_| value.extract().map(Value::Integer))
        .or_else(|_| value.extract().map(Value::Float));
    number.map_err(|error: PyErr| {
        let what = shown(value);
        refuse(if value.is_none() {
            format!("{name} is None; leave it out or give a value")
        } else if error.is_instance_of::<PyOverflowError>(value.py()) {
            format!("{name}: {what} is out of range; expected a number below 1e308")
        } else {
            let kind = kind(value);
            format!(
                "{name}: unexpected {kind} {what}; expected a number, a string, a list or a \
                 dictionary"
            )
        })
    })
}

/// The values of a dictionary; `inner` gives the name of a value by its key.
fn read_dict(
    name: &str,
    mapping: &Bound<'_, PyMapping>,
    depth: usize,
    inner: impl Fn(&str) -> String,
) -> PyResult<toml::Table> {
    let mut table = toml::Table::new();
    for item in mapping.items()?.iter() {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let Ok(key) = key.cast::<PyString>() else {
            return Err(refuse(format!("{name}: the key {} must be a string", shown(&key))));
        };
        let key = read_string(name, key)?;
        let value = read(&inner(&key), &value, depth - 1)?;
        table.insert(key, value);
    }
    Ok(table)
}

fn read_string(name: &str, string: &Bound<'_, PyString>) -> PyResult<String> {
    let invalid = |_| refuse(format!("{name}: the string {} is not valid Unicode", shown(string)));
    string.to_cow().map(|string| string.into_owned()).map_err(invalid)
}

/// The specification that a noise, a spectrum or a schedule was made from.
fn specification(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    let found = if let Ok(noise) = value.cast::<Noise>() {
        let family = noise.get().single().ok_or_else(|| {
            refuse(format!(
                "{name}: give the noise of one sample, its batch as `batch` and its rule as `rule`"
            ))
        })?;
        Value::try_from(family)
    } else if let Ok(spectrum) = value.cast::<Spectrum>() {
        Value::try_from(&spectrum.get().spec)
    } else if let Ok(schedule) = value.cast::<Schedule>() {
        Value::try_from(schedule.get().inner.shape())
    } else {
        return Ok(None);
    };
    found.map(Some).map_err(refuse)
}
