//! Noise families, of single samples or of batches.

use std::path::Path;
use std::sync::Arc;

use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use toclip::noise::{Family, Noise as _};
use toclip::{Batch, Rule, Step};
use toclip_experiment::{NoiseChoice, RuleChoice, TrainingChoice};

use crate::args::arg;
use crate::convert::{refuse, to_python};
use crate::values::{from_dict, optional};

const EXAMPLE: &str = "{\"family\": \"laplace\", \"sigma\": 0.5}";

/// The distribution of the noise in the targets, of single samples or of batches.
#[pyclass(frozen, module = "toclip._toclip")]
#[derive(Debug)]
pub struct Noise {
    family: Family,
    pub inner: Step<'static>,
}

impl Noise {
    fn with(family: Family, batch: Batch, rule: Rule) -> toclip::Result<Self> {
        let step = Step::new(Arc::new(family.clone()));
        Ok(Noise { family, inner: step.with_batch(batch)?.with_rule(rule)? })
    }

    /// The step with the same noise and batch that clips.
    pub fn clipped(&self) -> PyResult<Step<'static>> {
        self.inner.clone().with_rule(Rule::Clip).map_err(refuse)
    }

    /// The rule and the groups that an argument gives; else the rule of the noise and no groups.
    pub fn training(
        &self,
        rule: Option<&Bound<'_, PyAny>>,
        groups: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<TrainingChoice> {
        let own = || RuleChoice(self.inner.rule().clone());
        Ok(TrainingChoice {
            rule: optional("rule", rule)?.unwrap_or_else(own),
            groups: optional("groups", groups)?.unwrap_or_default(),
            ..TrainingChoice::default()
        })
    }

    /// The family, if it is the noise of single samples that are clipped.
    pub fn single(&self) -> Option<&Family> {
        let plain = self.inner.batch().is_single() && *self.inner.rule() == Rule::Clip;
        plain.then_some(&self.family)
    }
}

#[pymethods]
impl Noise {
    /// From a dictionary such as `{"family": "laplace", "sigma": 0.5}`.
    #[new]
    fn new(family: &Bound<'_, PyAny>) -> PyResult<Self> {
        let choice: NoiseChoice = from_dict("noise", family, EXAMPLE)?;
        let family = choice.family(Path::new("")).map_err(|e| refuse(format!("noise: {e}")))?;
        Noise::with(family, Batch::single(), Rule::Clip).map_err(refuse)
    }

    /// The family and its parameters as a dictionary, without the batch.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.family)
    }

    /// The same noise in batches of `size`.
    #[pyo3(signature = (size, *, outputs = 1, per_sample = false))]
    fn batched(
        &self,
        #[pyo3(from_py_with = arg::size)] size: u64,
        #[pyo3(from_py_with = arg::outputs)] outputs: u64,
        #[pyo3(from_py_with = arg::per_sample)] per_sample: bool,
    ) -> PyResult<Self> {
        let batch = if per_sample { Batch::per_sample(size) } else { Batch::mean(size) };
        let batch = batch.and_then(|batch| batch.outputs(outputs)).map_err(refuse)?;
        Noise::with(self.family.clone(), batch, self.inner.rule().clone()).map_err(refuse)
    }

    /// The same noise with another rule than clipping: `"skip"`, `"normalise"`, `"tanh"`, `"root"`,
    /// `"optimal"` or `"by_value"`.
    fn with_rule(&self, #[pyo3(from_py_with = arg::rule)] rule: String) -> PyResult<Self> {
        let rule = RuleChoice::named(&rule).map_err(refuse)?;
        Noise::with(self.family.clone(), self.inner.batch(), rule.0).map_err(refuse)
    }

    /// The rule that changes the gradient.
    #[getter]
    fn rule(&self) -> &'static str {
        self.inner.rule().name()
    }

    /// Samples per step.
    #[getter]
    fn batch_size(&self) -> u64 {
        self.inner.batch().size()
    }

    /// Outputs of the model.
    #[getter]
    fn outputs(&self) -> u64 {
        self.inner.batch().output_count()
    }

    /// Whether each sample is clipped, rather than their mean.
    #[getter]
    fn per_sample(&self) -> bool {
        self.inner.batch().is_per_sample()
    }

    /// The mean of one sample; `None` if it does not exist.
    #[getter]
    fn mean(&self) -> Option<f64> {
        self.family.mean()
    }

    /// The variance of one sample; infinite for heavy tails.
    #[getter]
    fn variance(&self) -> f64 {
        self.family.variance()
    }

    /// The second moment of one sample.
    #[getter]
    fn second_moment(&self) -> f64 {
        self.family.second_moment()
    }

    /// `size` draws, the same for the same seed.
    #[pyo3(signature = (size, seed = 0))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arg::size)] size: usize,
        #[pyo3(from_py_with = arg::seed)] seed: u64,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut draws = Vec::new();
        draws
            .try_reserve_exact(size)
            .map_err(|_| refuse(format!("size = {size} samples do not fit in memory")))?;
        py.detach(|| {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            draws.extend((0..size).map(|_| self.family.sample(&mut rng)));
        });
        Ok(draws.to_pyarray(py))
    }

    fn __str__(&self) -> String {
        self.inner.describe()
    }

    fn __repr__(&self) -> String {
        format!("<toclip.Noise: {}>", self.inner.describe())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Noise>().is_ok_and(|other| {
            let other = other.get();
            self.family == other.family
                && self.inner.batch() == other.inner.batch()
                && self.inner.rule() == other.inner.rule()
        })
    }
}
