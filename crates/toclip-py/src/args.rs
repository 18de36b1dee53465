//! Single arguments, refused by name.
//!
//! PyO3's own words do not say which argument is meant, and for numbers out of range they are an
//! `OverflowError`. Here `#[pyo3(from_py_with = whole::runs)]` reads an argument called `runs`.

use std::path::PathBuf;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::convert::{refuse, shown};

fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    value.extract().map_err(|error: PyErr| {
        let what = shown(value);
        refuse(if error.is_instance_of::<PyOverflowError>(value.py()) {
            format!("{name} = {what} is not allowed: give a number below 1e308")
        } else {
            format!("{name} must be a number, not {what}")
        })
    })
}

fn whole<'py, T>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr> + Limit,
{
    value.extract().map_err(|error: PyErr| {
        let what = shown(value);
        refuse(if error.is_instance_of::<PyOverflowError>(value.py()) {
            format!("{name} = {what} is not allowed: give a whole number from 0 to {}", T::MOST)
        } else {
            format!("{name} must be a whole number, not {what}")
        })
    })
}

/// The largest of a kind of whole numbers, in words.
trait Limit {
    const MOST: &'static str;
}

impl Limit for u32 {
    const MOST: &'static str = "2^32 - 1";
}

impl Limit for u64 {
    const MOST: &'static str = "2^64 - 1";
}

impl Limit for usize {
    const MOST: &'static str = "2^64 - 1";
}

fn text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.extract().map_err(|_| refuse(format!("{name} must be a text, not {}", shown(value))))
}

fn flag(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value
        .extract()
        .map_err(|_| refuse(format!("{name} must be True or False, not {}", shown(value))))
}

/// A path, given as a text or as `os.PathLike`.
pub fn path(value: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    value
        .extract()
        .map_err(|_| refuse(format!("path must be the path of a file, not {}", shown(value))))
}

/// A number, or a sentence that names it.
#[pyfunction]
pub fn as_number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    number(name, value)
}

/// A whole number that is not negative, or a sentence that names it.
#[pyfunction]
pub fn as_whole(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    whole(name, value)
}

macro_rules! named {
    ($read:path, $type:ty: $($name:ident)*) => {$(
        pub fn $name(value: &Bound<'_, PyAny>) -> PyResult<$type> {
            $read(stringify!($name), value)
        }
    )*};
    (maybe $read:path, $type:ty: $($name:ident)*) => {$(
        pub fn $name(value: &Bound<'_, PyAny>) -> PyResult<Option<$type>> {
            if value.is_none() { Ok(None) } else { $read(stringify!($name), value).map(Some) }
        }
    )*};
}

pub mod number {
    use super::*;
    named!(number, f64: alpha c components confidence end first kappa margin memory
        percentile rtol scale_memory threshold time z);
}

pub mod maybe_number {
    use super::*;
    named!(maybe number, f64: batch_size cap clip components compress fixed_scale outputs
        target watched);
}

pub mod whole {
    use super::*;
    named!(whole, u64: every index outputs runs seed size);
}

pub mod count {
    use super::*;
    named!(whole, usize: count dimension size window);
    named!(whole, u32: warmup);
}

pub mod maybe_count {
    use super::*;
    named!(maybe whole, usize: memory threads window);
}

pub mod text {
    use super::*;
    named!(super::text, String: compensation method text);
}

pub mod maybe_text {
    use super::*;
    named!(maybe text, String: format learning_rate loss norm optimizer step);
}

pub mod flag {
    use super::*;
    named!(flag, bool: in_order per_sample unscale);
}
