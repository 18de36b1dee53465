//! Training logs and advice from them.

use std::fmt::Write;
use std::io;
use std::path::PathBuf;

use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use serde_json::{Value, json};
use toclip_logs::{
    AdviceOptions, Error, Format, Framework, LogPoint, ReadOptions, advise, find_logs, load_files,
};

use crate::args::{Argument, Threshold, arg};
use crate::convert::{refuse, to_python};

/// A training log in the order of its steps.
#[pyclass(frozen, module = "toclip._toclip")]
#[derive(Debug)]
pub struct Log {
    inner: toclip_logs::Log,
}

fn column<'py, T>(
    py: Python<'py>,
    rows: &[T],
    of: impl Fn(&T) -> f64,
) -> Bound<'py, PyArray1<f64>> {
    rows.iter().map(of).collect::<Vec<f64>>().to_pyarray(py)
}

/// The loss; NaN if there is none.
fn loss(point: &LogPoint) -> f64 {
    point.loss.unwrap_or(f64::NAN)
}

#[pymethods]
impl Log {
    /// Reads the whole log.
    #[new]
    #[pyo3(signature = (path, *, format = None, norm = None, step = None, loss = None,
                        learning_rate = None, unscale = false))]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = arg::path)] path: PathBuf,
        #[pyo3(from_py_with = arg::format)] format: Option<String>,
        #[pyo3(from_py_with = arg::norm)] norm: Option<String>,
        #[pyo3(from_py_with = arg::step)] step: Option<String>,
        #[pyo3(from_py_with = arg::loss)] loss: Option<String>,
        #[pyo3(from_py_with = arg::learning_rate)] learning_rate: Option<String>,
        #[pyo3(from_py_with = arg::unscale)] unscale: bool,
    ) -> PyResult<Self> {
        let format = format.map(|format| format.parse()).transpose().map_err(refuse)?;
        let options = ReadOptions { format, norm, step, loss, learning_rate, unscale };
        let refuse_path = |error| match error {
            Error::Io(error) => {
                let text = format!("cannot read {}: {error}", path.display());
                io::Error::new(error.kind(), text).into()
            }
            error => refuse(format!("{}: {error}", path.display())),
        };
        let found = py.detach(|| find_logs(&path, &options)).map_err(refuse_path)?;
        let [log] = &found[..] else {
            let names: Vec<&str> = found.iter().map(|log| log.name.as_str()).take(20).collect();
            let (path, count, names) = (path.display(), found.len(), names.join(", "));
            return Err(refuse(format!("{path} has {count} logs; give one of them: {names}")));
        };
        let inner = py.detach(|| load_files(log, &options, &mut |_| {})).map_err(refuse_path)?;
        Ok(Log { inner })
    }

    /// A log of numbers in memory: `(argument, column, numbers)` for each array, the norms first.
    #[staticmethod]
    fn from_arrays(
        py: Python<'_>,
        arrays: Vec<(String, String, Bound<'_, PyAny>)>,
    ) -> PyResult<Self> {
        let mut columns: Vec<(String, Vec<Option<f64>>)> = Vec::new();
        for (argument, name, array) in arrays {
            let numbers = numbers_of(&argument, &array)?;
            let count = columns.first().map_or(numbers.len(), |(_, norms)| norms.len());
            if count == 0 {
                return Err(refuse("norms is empty; expected one number for each step"));
            }
            if numbers.len() != count {
                return Err(refuse(format!(
                    "norms has {count} numbers but {argument} has {}; expected one for each step",
                    numbers.len()
                )));
            }
            columns.push((name, numbers));
        }
        // As JSON lines, so that arrays are treated exactly as a file is.
        let options = ReadOptions { format: Some(Format::Jsonl), ..ReadOptions::default() };
        let inner = py.detach(|| toclip_logs::load(json_lines(&columns).as_bytes(), &options));
        Ok(Log { inner: inner.map_err(refuse)? })
    }

    /// Everything in the log, by the names of the attributes of `toclip.Log`.
    fn contents<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let toclip_logs::Log { points, non_finite, layers, findings, summary, .. } = &self.inner;
        let columns = [
            ("steps", column(py, points, |p| p.step)),
            ("norms", column(py, points, |p| p.norm)),
            ("losses", column(py, points, loss)),
            ("learning_rates", column(py, points, |p| p.learning_rate)),
            ("layer_steps", column(py, &layers.rows, |(step, _)| *step)),
        ];
        let non_finite = [
            ("step", column(py, non_finite, |p| p.step)),
            ("norm", column(py, non_finite, |p| p.norm)),
            ("loss", column(py, non_finite, loss)),
        ];
        let names = layers.names.iter().enumerate();
        let layers = names.map(|(i, name)| (name, column(py, &layers.rows, |(_, norms)| norms[i])));
        let findings: Vec<String> = findings.iter().map(|finding| finding.sentence()).collect();
        let dict = columns.into_py_dict(py)?;
        dict.set_item("non_finite", non_finite.into_py_dict(py)?)?;
        dict.set_item("layers", layers.into_py_dict(py)?)?;
        dict.set_item("findings", findings)?;
        dict.set_item("reading", to_python(py, summary)?)?;
        Ok(dict)
    }

    /// The advice as a dictionary, with the names and values of the command's JSON, and the estimates
    /// at every threshold.
    fn advise<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arg::clip)] clip: Option<Threshold>,
        #[pyo3(from_py_with = arg::batch_size)] batch_size: Option<f64>,
        #[pyo3(from_py_with = arg::outputs)] outputs: Option<f64>,
        #[pyo3(from_py_with = arg::optimizer)] optimizer: Option<String>,
        #[pyo3(from_py_with = arg::framework)] framework: Option<String>,
        #[pyo3(from_py_with = arg::confidence)] confidence: f64,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let optimizer = optimizer.map(|name| name.parse()).transpose().map_err(refuse)?;
        let framework = framework.map(|name| name.parse()).transpose().map_err(refuse)?;
        let clip = clip.map(|threshold| threshold.0);
        let options = AdviceOptions { clip, batch_size, outputs, optimizer, confidence };
        let advice = py.detach(|| advise(&self.inner, &options)).map_err(refuse)?;
        let verdict = advice.verdict(framework.unwrap_or_else(|| Framework::of(&self.inner)));
        // By way of JSON, so that NaN and infinity are written as in the output of the command.
        let mut numbers = advice.to_json(&self.inner, &verdict);
        numbers["hints"] = json!(advice.hints());
        let framework = verdict.code.as_ref().map(|code| code.framework.name());
        // The name for people.
        numbers["_framework"] = framework.into();
        Ok((to_python(py, &numbers)?, to_python(py, &advice.analysis.curve)?))
    }
}

/// The numbers of an array; `None` for those that a masked array leaves out.
fn numbers_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<Option<f64>>> {
    let numbers = Vec::<f64>::read(name, value)?.into_iter();
    let masked = value.py().import("numpy")?.getattr("ma")?;
    if !value.is_instance(&masked.getattr("MaskedArray")?)? {
        return Ok(numbers.map(Some).collect());
    }
    let mask = masked.call_method1("getmaskarray", (value,))?;
    let mask: Vec<bool> = mask.call_method0("ravel")?.call_method0("tolist")?.extract()?;
    Ok(numbers.zip(mask).map(|(number, masked)| (!masked).then_some(number)).collect())
}

/// One object a line, with NaN and Infinity as Python writes them.
fn json_lines(columns: &[(String, Vec<Option<f64>>)]) -> String {
    let mut text = String::new();
    let names: Vec<String> =
        columns.iter().map(|(name, _)| Value::from(name.as_str()).to_string()).collect();
    let rows = columns.first().map_or(0, |(_, numbers)| numbers.len());
    for row in 0..rows {
        let mut before = '{';
        for (name, (_, numbers)) in names.iter().zip(columns) {
            let Some(number) = numbers[row] else { continue };
            let _ = match number {
                x if x.is_nan() => write!(text, "{before}{name}: NaN"),
                x if x == f64::INFINITY => write!(text, "{before}{name}: Infinity"),
                x if x == f64::NEG_INFINITY => write!(text, "{before}{name}: -Infinity"),
                x => write!(text, "{before}{name}: {x:e}"),
            };
            before = ',';
        }
        if before == '{' {
            text.push(before);
        }
        text.push_str("}\n");
    }
    text
}
