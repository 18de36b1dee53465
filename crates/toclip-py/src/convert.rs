//! Errors and results for Python.

use std::io::{self, ErrorKind};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;

/// An error as a `ValueError` with the same message.
pub fn refuse(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// An `OSError` for a file that cannot be read; a `ValueError` if its contents are not text.
pub fn unreadable(error: &io::Error, message: String) -> PyErr {
    match error.kind() {
        ErrorKind::InvalidData => refuse(message),
        kind => io::Error::new(kind, message).into(),
    }
}

/// A value as dictionaries, lists and numbers.
pub fn to_python<'py, T: Serialize>(py: Python<'py>, value: &T) -> PyResult<Bound<'py, PyAny>> {
    pythonize::pythonize(py, value).map_err(refuse)
}

/// The `repr` of a value, cut off if it is long.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    const LONGEST: usize = 60;
    let Ok(text) = value.repr().map(|text| text.to_string_lossy().into_owned()) else {
        // Python does not print very long integers.
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

/// A dictionary of arrays, one for each named field of the rows.
macro_rules! columns {
    ($py:expr, $rows:expr, $($field:ident)*) => {
        [$((
            stringify!($field),
            numpy::ToPyArray::to_pyarray(
                &*$rows.iter().map(|row| row.$field).collect::<Vec<_>>(),
                $py,
            ),
        )),*]
        .into_py_dict($py)
    };
}
pub(crate) use columns;
