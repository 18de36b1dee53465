//! Dictionaries, lists and numbers as what they describe, by the words that files use.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use serde::de::DeserializeOwned;
use toclip_experiment::words;
use toml::Value;

use crate::convert::{kind, refuse, shown};
use crate::noise::Noise;
use crate::schedule::Schedule;
use crate::spectrum::Spectrum;

/// Nothing that is described is nested deeper; a list that holds itself is.
const DEEPEST: usize = 16;

/// What a dictionary, list, text or number describes; `name` is what it is called in a refusal.
pub fn from_python<T: DeserializeOwned>(name: &str, value: &Bound<'_, PyAny>) -> PyResult<T> {
    T::deserialize(plain(name, value)?)
        .map_err(|error| refuse(words::about(name, &words::plain(error.message()))))
}

/// The same of what is described by a dictionary only.
pub fn from_dict<T: DeserializeOwned>(
    name: &str,
    value: &Bound<'_, PyAny>,
    example: &str,
) -> PyResult<T> {
    if is_dict(value) || ours(name, value)?.is_some() {
        return from_python(name, value);
    }
    let what = shown(value);
    Err(refuse(format!("{name} must be a dictionary such as {example}, not {what}")))
}

/// A dictionary as the table of a file.
pub fn table(name: &str, value: &Bound<'_, PyAny>) -> PyResult<toml::Table> {
    match plain(name, value)? {
        Value::Table(table) => Ok(table),
        _ => Err(refuse(format!("{name} must be a dictionary, not {}", shown(value)))),
    }
}

fn plain(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    read(name, value, DEEPEST)
}

fn read(name: &str, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth == 0 {
        return Err(refuse(format!("{name} is nested too deep")));
    }
    if let Some(known) = ours(name, value)? {
        return Ok(known);
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::Boolean(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        // What is no whole number of the file may still be a number.
        return match value.extract::<i64>() {
            Ok(number) => Ok(Value::Integer(number)),
            Err(_) => value
                .extract()
                .map(Value::Float)
                .map_err(|_| refuse(format!("{name}: {} is too large for a number", shown(value)))),
        };
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Value::Float(value.extract()?));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::String(text.to_cow().map_err(|_| unwritable(name))?.into_owned()));
    }
    if let Ok(mapping) = value.cast::<PyMapping>() {
        return read_dict(name, mapping, depth);
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| read(name, &item?, depth - 1));
        return items.collect::<PyResult<_>>().map(Value::Array);
    }
    // NumPy's arrays and numbers, and those of others that do as NumPy does.
    if let Ok(list) = value.call_method0("tolist") {
        return read(name, &list, depth - 1);
    }
    if let Ok(path) = value.call_method0("__fspath__") {
        return read(name, &path, depth - 1);
    }
    Err(refuse(if value.is_none() {
        format!("{name} is None: leave it out, or give a value")
    } else {
        format!(
            "{name}: {} is not allowed: give a number, a text, a list or a dictionary, not a {}",
            shown(value),
            kind(value)
        )
    }))
}

fn read_dict(name: &str, mapping: &Bound<'_, PyMapping>, depth: usize) -> PyResult<Value> {
    let mut table = toml::Table::new();
    for item in mapping.items()?.iter() {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let Ok(key) = key.cast::<PyString>() else {
            return Err(refuse(format!("{name}: the key {} must be a text", shown(&key))));
        };
        let key = key.to_cow().map_err(|_| unwritable(name))?.into_owned();
        // Of an experiment the key alone; of its parts both.
        let inner = if name == EXPERIMENT { key.clone() } else { format!("{name}: {key}") };
        table.insert(key, read(&inner, &value, depth - 1)?);
    }
    Ok(Value::Table(table))
}

/// The name under which a whole experiment is read.
pub const EXPERIMENT: &str = "the experiment";

/// What is already one of our own things, as the words it was made from.
fn ours(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    let words = if let Ok(noise) = value.cast::<Noise>() {
        let family = noise.get().single().ok_or_else(|| {
            refuse(format!("{name}: give the noise of one sample, and its batch as `batch`"))
        })?;
        Value::try_from(family)
    } else if let Ok(spectrum) = value.cast::<Spectrum>() {
        Value::try_from(&spectrum.get().spec)
    } else if let Ok(schedule) = value.cast::<Schedule>() {
        Value::try_from(schedule.get().inner.shape())
    } else {
        return Ok(None);
    };
    words.map(Some).map_err(refuse)
}

fn unwritable(name: &str) -> PyErr {
    refuse(format!("{name}: a text with characters that cannot be written as UTF-8"))
}

/// Whether it is a dictionary, or does as one.
pub fn is_dict(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyDict>() || value.cast::<PyMapping>().is_ok()
}
