//! Errors, arrays and plain values across the border.

use numpy::{PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use serde::Serialize;

/// An error of the core as a `ValueError` that says the same.
pub fn refuse(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Anything with a serial form as dictionaries, lists and numbers.
pub fn to_python<'py, T: Serialize>(py: Python<'py>, value: &T) -> PyResult<Bound<'py, PyAny>> {
    pythonize::pythonize(py, value).map_err(refuse)
}

/// A value as Python writes it, cut off where it is long.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    const LONGEST: usize = 60;
    let Ok(text) = value.repr().map(|text| text.to_string_lossy().into_owned()) else {
        // Python refuses to write very long whole numbers.
        return format!("this {}", kind(value));
    };
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The name of a value's type.
pub fn kind(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "value".into(), |name| name.to_string())
}

/// Numbers from whatever NumPy can make numbers of: an array of any kind, a list, one number.
pub fn numbers<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArray1<'py, f64>> {
    let array = array(name, value)?;
    let shape = array.shape().to_vec();
    array.into_any().extract().map_err(|_| {
        refuse(format!("{name} must be one number or a list of numbers, not of shape {shape:?}"))
    })
}

/// The same in any shape, contiguous; one number has one axis.
pub fn array<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = value.py();
    let wrong = |error: PyErr| refuse(format!("{name} must be numbers: {}", error.value(py)));
    let numpy = py.import("numpy")?;
    let given = numpy.call_method1("asarray", (value,)).map_err(wrong)?;
    let dtype = given.getattr("dtype")?;
    let letter: char = dtype.getattr("kind")?.extract()?;
    // NumPy would read texts as numbers, drop imaginary parts and take None for NaN.
    let strange = match letter {
        'b' | 'i' | 'u' | 'f' => None,
        'O' => strange_object(&given)?,
        _ => Some(format!("{} of type {dtype}", shown(value))),
    };
    if let Some(what) = strange {
        return Err(refuse(format!("{name} must be numbers, not {what}")));
    }
    let array = numpy.call_method1("ascontiguousarray", (given, "float64")).map_err(wrong)?;
    Ok(array.cast_into::<PyUntypedArray>()?)
}

/// What in an array of objects is no number, if anything.
fn strange_object(array: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    for item in array.call_method0("ravel")?.call_method0("tolist")?.try_iter()? {
        let item = item?;
        let text = item.is_instance_of::<PyString>() || item.is_instance_of::<PyBytes>();
        if text || item.is_none() || !item.hasattr("__float__")? {
            return Ok(Some(shown(&item)));
        }
    }
    Ok(None)
}

/// `array` for Python: numbers of any shape as an array of `float64`, or a sentence that names them.
#[pyfunction]
pub fn as_array<'py>(name: &str, values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // One number is made a list of one on the way.
    let single = values.getattr("ndim").map_or_else(
        |_| !values.hasattr("__len__").unwrap_or(false),
        |ndim| ndim.extract::<usize>().is_ok_and(|ndim| ndim == 0),
    );
    let array = array(name, values)?.into_any();
    if single { array.call_method1("reshape", ((),)) } else { Ok(array) }
}
