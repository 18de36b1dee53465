//! Reads single arguments and names them in errors.
//!
//! PyO3's own errors do not say which argument is wrong, and an integer out of range is an
//! `OverflowError` there. Here `#[pyo3(from_py_with = arg::runs)] runs: u64` reads an argument called
//! `runs`, and every error is a `ValueError` that begins with that name.

use std::path::PathBuf;

use numpy::{PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::convert::{refuse, shown};

/// A type that an argument can have.
pub trait Argument<'py>: Sized {
    /// Reads the argument called `name`.
    fn read(name: &str, value: &Bound<'py, PyAny>) -> PyResult<Self>;
}

/// Extracts the value; `expected` and `range` are what an error says is allowed.
fn extract<'py, T>(
    name: &str,
    value: &Bound<'py, PyAny>,
    expected: &str,
    range: &str,
) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
{
    value.extract::<T>().map_err(|error| {
        let (error, what): (PyErr, _) = (error.into(), shown(value));
        refuse(if error.is_instance_of::<PyOverflowError>(value.py()) {
            format!("{name} = {what} is out of range; expected {expected} {range}")
        } else {
            format!("{name} must be {expected}, not {what}")
        })
    })
}

macro_rules! arguments {
    ($($type:ty: $expected:literal, $range:expr;)*) => {$(
        impl Argument<'_> for $type {
            fn read(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
                extract(name, value, $expected, $range)
            }
        }
    )*};
}

arguments! {
    f64: "a number", "below 1e308";
    u32: "an integer", "from 0 to 2^32 - 1";
    u64: "an integer", "from 0 to 2^64 - 1";
    usize: "an integer", "from 0 to 2^64 - 1";
    bool: "True or False", "";
    String: "a string", "";
    PathBuf: "the path of a file", "";
}

impl<'py, T: Argument<'py>> Argument<'py> for Option<T> {
    fn read(name: &str, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        if value.is_none() { Ok(None) } else { T::read(name, value).map(Some) }
    }
}

/// A threshold; infinite for no clipping, which is also spelled `"none"`, `"inf"` and `None`.
pub struct Threshold(pub f64);

impl Argument<'_> for Threshold {
    fn read(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        const EXPECTED: &str = "a positive number, or \"none\" or inf for no clipping";
        let no_clipping = |word: String| word == "none" || word == "inf";
        if value.is_none() || value.extract().is_ok_and(no_clipping) {
            return Ok(Threshold(f64::INFINITY));
        }
        let threshold: f64 = extract(name, value, EXPECTED, "")?;
        if threshold.is_nan() {
            return Err(refuse(format!("{name} is not a number (NaN); expected {EXPECTED}")));
        }
        Ok(Threshold(threshold))
    }
}

/// Whatever NumPy can turn into numbers: an array of any type, a list, a single number.
impl<'py> Argument<'py> for PyReadonlyArray1<'py, f64> {
    fn read(name: &str, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        let array = as_array(name, value)?;
        let shape = array.shape().to_vec();
        let flat = value.py().import("numpy")?.call_method1("atleast_1d", (array,))?;
        flat.extract().map_err(|_| {
            refuse(format!("{name} must be a number or a list of numbers, not of shape {shape:?}"))
        })
    }
}

/// The same as a copy that needs no interpreter.
impl Argument<'_> for Vec<f64> {
    fn read(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(PyReadonlyArray1::read(name, value)?.as_slice()?.to_vec())
    }
}

/// Numbers of any shape as a contiguous array of `float64`; an error names them.
#[pyfunction]
pub fn as_array<'py>(
    name: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = value.py();
    let wrong = |error: PyErr| refuse(format!("{name} must be numbers: {}", error.value(py)));
    let numpy = py.import("numpy")?;
    let given = numpy.call_method1("asarray", (value,)).map_err(wrong)?;
    let dtype = given.getattr("dtype")?;
    let letter: char = dtype.getattr("kind")?.extract()?;
    // NumPy would read strings as numbers, drop imaginary parts and take None for NaN.
    let not_numbers = match letter {
        'b' | 'i' | 'u' | 'f' => None,
        'O' => first_non_number(&given)?,
        'U' | 'S' => Some(shown(value)),
        _ => Some(format!("{} of type {dtype}", shown(value))),
    };
    if let Some(what) = not_numbers {
        return Err(refuse(format!("{name} must be numbers, not {what}")));
    }
    let array = numpy.call_method1("asarray", (given, "float64", "C")).map_err(wrong)?;
    Ok(array.cast_into::<PyUntypedArray>()?)
}

/// The first item of an array of objects that is not a number, if there is one.
fn first_non_number(array: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    for item in array.call_method0("ravel")?.call_method0("tolist")?.try_iter()? {
        let item = item?;
        let string = item.is_instance_of::<PyString>() || item.is_instance_of::<PyBytes>();
        if string || item.is_none() || !item.hasattr("__float__")? {
            return Ok(Some(shown(&item)));
        }
    }
    Ok(None)
}

/// A number; an error names it.
#[pyfunction]
pub fn as_number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    f64::read(name, value)
}

/// An integer that is not negative; an error names it.
#[pyfunction]
pub fn as_integer(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    u64::read(name, value)
}

/// A threshold, infinite for no clipping; an error names it.
#[pyfunction]
pub fn as_threshold(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    Threshold::read(name, value).map(|threshold| threshold.0)
}

/// Readers of arguments, each named like its argument.
pub mod arg {
    use super::*;

    macro_rules! named {
        ($($name:ident)*) => {$(
            pub fn $name<'py, T: Argument<'py>>(value: &Bound<'py, PyAny>) -> PyResult<T> {
                T::read(stringify!($name), value)
            }
        )*};
    }

    named!(alpha batch_size c cap clip components compress confidence count covariance
        delta dimension end epsilon every features first fixed_scale format framework gradient in_order index inners kappa
        learning_rate loss margin memory method multiple noise_multiplier norm norms optimizer optimum outputs p path per_sample
        percentile q r risks rtol rule runs scale_memory seed shape size start state step target targets threads
        threshold thresholds time times unscale v warmup watched window z);
}
