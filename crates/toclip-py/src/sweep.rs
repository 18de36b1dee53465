//! Sweeps, read and run by the same crate as `toclip sweep`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use numpy::ToPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use rayon::prelude::*;
use toclip_sweep::{Error, KeyKind, Row, number, text};

use crate::args::Argument;
use crate::background::{in_background, in_pool};
use crate::convert::{refuse, to_python};
use crate::values::{from_python, is_dict};

/// An experiment for many values of its keys.
#[pyclass(frozen, module = "toclip._toclip")]
pub struct Sweep(toclip_sweep::Sweep);

#[pymethods]
impl Sweep {
    /// From a dictionary or the path of a TOML file.
    #[new]
    fn new(spec: &Bound<'_, PyAny>) -> PyResult<Self> {
        let sweep = if is_dict(spec) {
            let folder = std::env::current_dir().unwrap_or_default();
            toclip_sweep::Sweep::of_values(from_python("the sweep", spec)?, &folder)
        } else {
            let file = PathBuf::read("spec", spec)?;
            toclip_sweep::Sweep::read(&std::path::absolute(&file).unwrap_or(file))
        };
        sweep.map(Sweep).map_err(python_error)
    }

    /// From its own [`Sweep::toml`], in another process.
    #[staticmethod]
    fn from_toml(toml: &str, folder: PathBuf) -> PyResult<Self> {
        let values = toml::from_str(toml).map_err(|error| refuse(error.message()))?;
        toclip_sweep::Sweep::of_values(values, &folder).map(Sweep).map_err(python_error)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String, PathBuf))> {
        let make = py.get_type::<Sweep>().getattr("from_toml")?;
        Ok((make, (self.toml(), self.folder().into())))
    }

    /// The file as TOML.
    #[getter]
    fn toml(&self) -> String {
        self.0.to_toml()
    }

    /// Where the files that it names are.
    #[getter]
    fn folder(&self) -> &Path {
        self.0.folder()
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn cells(&self) -> u64 {
        self.0.cells()
    }

    /// The names of the numbers that are kept of each cell.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.columns()
    }

    /// The keys that vary.
    #[getter]
    fn keys(&self) -> Vec<String> {
        self.0.axes().iter().flat_map(|axis| &axis.keys).map(|key| key.key.clone()).collect()
    }

    /// Whether the values of curves are losses and not risks.
    #[getter]
    fn model(&self) -> bool {
        self.0.model
    }

    /// Refuses cells that cannot be run, before any is.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| in_pool(|| self.0.check(&|| {})))?.map_err(python_error)
    }

    /// The keys that vary, each with its value in a cell.
    fn settings<'py>(&self, py: Python<'py>, cell: u64) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (key, value) in self.0.settings(self.known(cell)?) {
            dict.set_item(key, to_python(py, value)?)?;
        }
        Ok(dict)
    }

    /// A cell as a dictionary for `experiment`.
    fn experiment<'py>(&self, py: Python<'py>, cell: u64) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.values(self.known(cell)?))
    }

    /// The columns of the keys for these cells, as `toclip sweep` writes them.
    fn key_columns<'py>(&self, py: Python<'py>, cells: Vec<u64>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let keys = self.0.axes().iter().flat_map(|axis| &axis.keys);
        for (at, key) in keys.enumerate() {
            let values = cells
                .iter()
                .map(|cell| Ok(self.0.settings(self.known(*cell)?)[at].1))
                .collect::<PyResult<Vec<_>>>()?;
            let values = values.into_iter();
            let column = match key.kind() {
                KeyKind::Counts => {
                    let counts = values.map(|v| v.as_integer().unwrap_or_default());
                    counts.collect::<Vec<i64>>().to_pyarray(py).into_any()
                }
                KeyKind::Numbers => {
                    let numbers = values.map(|v| number(v).unwrap_or(f64::NAN));
                    numbers.collect::<Vec<f64>>().to_pyarray(py).into_any()
                }
                KeyKind::Text => PyList::new(py, values.map(text))?.into_any(),
            };
            dict.set_item(&key.key, column)?;
        }
        Ok(dict)
    }

    /// Runs cells: for each `(cell, values, error, curves)`. On all cores, or on this thread alone.
    #[pyo3(signature = (cells, *, parallel = true, progress = None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        cells: Vec<u64>,
        parallel: bool,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        for cell in &cells {
            self.known(*cell)?;
        }
        if !parallel {
            // A worker of an executor: nobody watches, and it has one thread.
            let cancel = AtomicBool::new(false);
            let run = || cells.iter().filter_map(|cell| self.0.run(*cell, &cancel)).collect();
            let rows: Vec<Row> = py.detach(|| in_pool(run))?;
            return to_list(py, &rows);
        }
        let rows: Option<Vec<Row>> = in_background(py, progress, cells.len() as u64, |shared| {
            let run = |cell: &u64| {
                if shared.cancel.load(Ordering::Relaxed) {
                    return None;
                }
                let row = self.0.run(*cell, &shared.cancel);
                shared.done.fetch_add(1, Ordering::Relaxed);
                row
            };
            cells.par_iter().map(run).collect()
        })?;
        to_list(py, &rows.unwrap_or_default())
    }
}

impl Sweep {
    fn known(&self, cell: u64) -> PyResult<u64> {
        let last = self.0.cells() - 1;
        match cell <= last {
            true => Ok(cell),
            false => {
                Err(refuse(format!("cell {cell} is not there; expected a number from 0 to {last}")))
            }
        }
    }
}

fn to_list<'py>(py: Python<'py>, rows: &[Row]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, rows.iter().map(|row| to_tuple(py, row)).collect::<PyResult<Vec<_>>>()?)
}

fn to_tuple<'py>(py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyTuple>> {
    let curves = row.curves.iter().map(|curve| {
        let dict = PyDict::new(py);
        dict.set_item("method", curve.method.key())?;
        dict.set_item("time", curve.times.to_pyarray(py))?;
        dict.set_item("value", curve.value.to_pyarray(py))?;
        dict.set_item("low", curve.low.to_pyarray(py))?;
        dict.set_item("high", curve.high.to_pyarray(py))?;
        Ok(dict)
    });
    let curves = PyList::new(py, curves.collect::<PyResult<Vec<_>>>()?)?;
    (row.cell, row.values.clone(), row.error.clone(), curves).into_pyobject(py)
}

/// The message of the command; an `OSError` if the file cannot be read.
fn python_error(error: Error) -> PyErr {
    match error {
        Error::Read { ref source, .. } if source.kind() != io::ErrorKind::InvalidData => {
            io::Error::new(source.kind(), format!("{error}: {source}")).into()
        }
        Error::Read { ref source, .. } => refuse(format!("{error}: {source}")),
        _ => refuse(error.to_string()),
    }
}
