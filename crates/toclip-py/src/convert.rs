//! Errors and plain values across the border.

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// An error of the core as a `ValueError` that says the same.
pub fn refuse(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A dictionary, list, text or number as what it describes.
pub fn from_python<T: DeserializeOwned>(value: &Bound<'_, PyAny>) -> PyResult<T> {
    pythonize::depythonize(value).map_err(|error| {
        // What an own check says is the sentence; serde's wrapping of it is not.
        let text = error.to_string();
        PyValueError::new_err(text.strip_prefix("Message: ").unwrap_or(&text).to_owned())
    })
}

/// Anything with a serial form as dictionaries, lists and numbers.
pub fn to_python<'py, T: Serialize>(py: Python<'py>, value: &T) -> PyResult<Bound<'py, PyAny>> {
    pythonize::pythonize(py, value).map_err(refuse)
}

/// Numbers from whatever NumPy can make numbers of: an array of any kind, a list, one number.
pub fn numbers<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArray1<'py, f64>> {
    let numpy = value.py().import("numpy")?;
    let array = numpy
        .call_method1("ascontiguousarray", (value, "float64"))
        .map_err(|error| refuse(format!("{name} must be numbers: {}", error.value(value.py()))))?;
    array.extract().map_err(|_| {
        let shape =
            array.getattr("shape").map_or_else(|_| String::new(), |shape| shape.to_string());
        refuse(format!("{name} must be one number or a list of numbers, not of shape {shape}"))
    })
}
