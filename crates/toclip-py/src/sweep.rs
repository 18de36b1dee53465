//! Sweeps, read and run by the same crate as `toclip sweep`.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use numpy::ToPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList};
use rayon::prelude::*;
use toclip_sweep::{Error, KeyKind, Row, number, text};

use crate::args::Argument;
use crate::background::{in_background, in_pool};
use crate::convert::{refuse, shown, to_python, unreadable};
use crate::values::{from_python, is_dict};

/// An experiment for many values of its keys.
#[pyclass(frozen, subclass, module = "toclip._toclip")]
pub struct Sweep(toclip_sweep::Sweep);

#[pymethods]
impl Sweep {
    /// From a dictionary or the path of a TOML file; with `folder` from its own [`Sweep::toml`], in
    /// another process.
    #[new]
    #[pyo3(signature = (spec, folder = None))]
    fn new(spec: &Bound<'_, PyAny>, folder: Option<PathBuf>) -> PyResult<Self> {
        let sweep = if let Some(folder) = folder {
            let values = toml::from_str(&String::read("spec", spec)?);
            toclip_sweep::Sweep::of_values(values.map_err(|e| refuse(e.message()))?, &folder)
        } else if is_dict(spec) {
            let folder = std::env::current_dir().unwrap_or_default();
            toclip_sweep::Sweep::of_values(from_python("the sweep", spec)?, &folder)
        } else {
            let file = PathBuf::read("spec", spec)?;
            toclip_sweep::Sweep::read(&std::path::absolute(&file).unwrap_or(file))
        };
        sweep.map(Sweep).map_err(python_error)
    }

    /// The file as TOML.
    #[getter]
    fn toml(&self) -> String {
        self.0.to_toml()
    }

    /// The folder of the files that it names.
    #[getter]
    fn folder(&self) -> &Path {
        self.0.folder()
    }

    /// The title.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The number of cells.
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

    /// Raises a `ValueError` for cells that cannot be run, without running any.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| in_pool(|| self.0.check(&|| {})))?.map_err(python_error)
    }

    /// The keys that vary, each with its value in a cell.
    fn settings<'py>(&self, cell: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let py = cell.py();
        let dict = PyDict::new(py);
        for (key, value) in self.0.settings(self.known(cell)?) {
            dict.set_item(key, to_python(py, value)?)?;
        }
        Ok(dict)
    }

    /// A cell as a dictionary for `toclip.experiment`.
    fn experiment<'py>(&self, cell: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        to_python(cell.py(), &self.0.values(self.known(cell)?))
    }

    /// The columns of the keys for these cells, as `toclip sweep` writes them.
    fn key_columns<'py>(
        &self,
        py: Python<'py>,
        cells: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let cells = self.all_known(&cells)?;
        let dict = PyDict::new(py);
        let keys = self.0.axes().iter().flat_map(|axis| &axis.keys);
        for (at, key) in keys.enumerate() {
            let values = cells.iter().map(|cell| self.0.settings(*cell)[at].1);
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

    /// Runs cells, on all cores or one after the other.
    fn run_cells<'py>(
        &self,
        py: Python<'py>,
        cells: Vec<Bound<'py, PyAny>>,
        parallel: bool,
    ) -> PyResult<Vec<CellRow<'py>>> {
        let cells = self.all_known(&cells)?;
        let rows: Option<Vec<Row>> = in_background(py, None, cells.len() as u64, |shared| {
            let run = |cell: &u64| {
                if shared.cancel.load(Ordering::Relaxed) {
                    return None;
                }
                self.0.run(*cell, &shared.cancel)
            };
            if parallel {
                cells.par_iter().map(run).collect()
            } else {
                cells.iter().map(run).collect()
            }
        })?;
        rows.unwrap_or_default().into_iter().map(|row| to_python_row(py, row)).collect()
    }
}

impl Sweep {
    fn all_known(&self, cells: &[Bound<'_, PyAny>]) -> PyResult<Vec<u64>> {
        cells.iter().map(|cell| self.known(cell)).collect()
    }

    /// The number of a cell, if there is such a cell.
    fn known(&self, cell: &Bound<'_, PyAny>) -> PyResult<u64> {
        let number = cell.extract().ok().filter(|number| *number < self.0.cells());
        number.filter(|_| !cell.is_instance_of::<PyBool>()).ok_or_else(|| {
            let last = self.0.cells() - 1;
            refuse(format!("unknown cell {}; expected a number from 0 to {last}", shown(cell)))
        })
    }
}

/// The number of a cell, its values, why it failed, and its curves.
type CellRow<'py> = (u64, Vec<f64>, Option<String>, Vec<Bound<'py, PyDict>>);

fn to_python_row<'py>(py: Python<'py>, row: Row) -> PyResult<CellRow<'py>> {
    let curves = row.curves.iter().map(|curve| {
        let dict = PyDict::new(py);
        dict.set_item("method", curve.method.key())?;
        dict.set_item("time", curve.times.to_pyarray(py))?;
        dict.set_item("value", curve.value.to_pyarray(py))?;
        dict.set_item("low", curve.low.to_pyarray(py))?;
        dict.set_item("high", curve.high.to_pyarray(py))?;
        Ok(dict)
    });
    let curves = curves.collect::<PyResult<Vec<_>>>()?;
    Ok((row.cell, row.values, row.error, curves))
}

fn python_error(error: Error) -> PyErr {
    match &error {
        Error::Read { source, .. } => unreadable(source, format!("{error}: {source}")),
        _ => refuse(error),
    }
}
