//! The extension module `toclip._toclip`: the crate `toclip` for Python.
//!
//! A thin layer. Arrays are NumPy arrays in both directions, Rust works with the interpreter
//! released, and every error of the core is a `ValueError` with the same message. Broadcasting,
//! result classes and data frames are written in Python, in `python/toclip`.

#![allow(clippy::too_many_arguments, reason = "they are keyword arguments in Python")]

mod args;
mod background;
mod convergence;
mod convert;
mod criteria;
mod experiment;
mod glm;
mod logs;
mod monitor;
mod noise;
mod privacy;
mod problem;
mod schedule;
mod simulate;
mod spectrum;
mod state;
mod stream;
mod sweep;
mod threshold_rule;
mod values;

use pyo3::prelude::*;

/// The Rust part of toclip.
#[pymodule]
mod _toclip {
    #[pymodule_export]
    use crate::{
        args::{as_array, as_integer, as_number, as_threshold},
        convergence::convergence,
        criteria::{best_threshold, factors, fisher_limit, kappa_bounds, verdict},
        experiment::experiment,
        glm::{glm_at, glm_best_clip, glm_best_threshold, glm_fixed_point},
        logs::Log,
        monitor::{Halves, Monitor},
        noise::Noise,
        privacy::{privacy_delta, privacy_epsilon, privacy_noise_multiplier},
        problem::Problem,
        schedule::{Schedule, linear_times, log_times},
        spectrum::Spectrum,
        stream::Stream,
        sweep::Sweep,
        threshold_rule::ThresholdRule,
    };

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::background::remember();
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("INFINITE_VARIANCE", toclip::Error::InfiniteVariance.to_string())
    }
}
