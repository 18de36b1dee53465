//! Eigenvalues of the covariance.

use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;
use toclip::spectrum::SpectrumSpec;

use crate::convert::{refuse, to_python};
use crate::values::from_dict;

const EXAMPLE: &str = "{\"kind\": \"power_law\", \"dim\": 500, \"exponent\": 0.2}";

/// The eigenvalues of the features' covariance K.
#[pyclass(frozen, eq, module = "toclip._toclip")]
#[derive(Debug, PartialEq)]
pub struct Spectrum {
    pub spec: SpectrumSpec,
    pub inner: toclip::spectrum::Spectrum,
}

#[pymethods]
impl Spectrum {
    /// From a dictionary such as `{"kind": "power_law", "dim": 500, "exponent": 0.2}`.
    #[new]
    fn new(spec: &Bound<'_, PyAny>) -> PyResult<Self> {
        let spec: SpectrumSpec = from_dict("spectrum", spec, EXAMPLE)?;
        let inner = spec.build().map_err(refuse)?;
        Ok(Spectrum { spec, inner })
    }

    /// The specification as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.spec)
    }

    /// Tr K / ‖K‖: the d of the theory.
    #[getter]
    fn intrinsic_dim(&self) -> f64 {
        self.inner.intrinsic_dim()
    }

    /// The number of eigenvalues, zeros included.
    #[getter]
    fn ambient_dim(&self) -> u64 {
        self.inner.ambient_dim()
    }

    /// Tr K.
    #[getter]
    fn trace(&self) -> f64 {
        self.inner.trace()
    }

    /// Tr K².
    #[getter]
    fn trace_sq(&self) -> f64 {
        self.inner.trace_sq()
    }

    /// ‖K‖, the largest eigenvalue.
    #[getter]
    fn norm(&self) -> f64 {
        self.inner.norm()
    }

    /// The distinct eigenvalues.
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.inner.blocks().iter().map(|b| b.value).collect::<Vec<f64>>().to_pyarray(py)
    }

    /// The multiplicity of each distinct eigenvalue.
    #[getter]
    fn multiplicities<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        self.inner.blocks().iter().map(|b| b.multiplicity).collect::<Vec<u64>>().to_pyarray(py)
    }

    fn __repr__(&self) -> String {
        format!(
            "<toclip.Spectrum: {} eigenvalues, intrinsic dimension {:.4}>",
            self.inner.ambient_dim(),
            self.inner.intrinsic_dim()
        )
    }
}
