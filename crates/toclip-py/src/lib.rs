//! The extension module `toclip._toclip`: the crate `toclip` in Python's words.
//!
//! A thin skin. Arrays come in as NumPy and go out as NumPy, Rust works with the interpreter
//! released, and whatever the core refuses is a `ValueError` with the core's own sentence. What is
//! pleasant to use (broadcasting, results with names, frames) is Python, in `python/toclip`.

mod args;
mod convergence;
mod convert;
mod criteria;
mod experiment;
mod factors;
mod halves;
mod logs;
mod monitor;
mod noise;
mod pool;
mod problem;
mod rules;
mod schedule;
mod simulate;
mod spectrum;
mod stream;
mod values;
mod watch;

use pyo3::prelude::*;

/// The Rust part of toclip.
#[pymodule]
mod _toclip {
    #[pymodule_export]
    use crate::args::{as_number, as_whole};
    #[pymodule_export]
    use crate::convergence::convergence;
    #[pymodule_export]
    use crate::convert::as_array;
    #[pymodule_export]
    use crate::criteria::{best_threshold, fisher_limit, kappa_bounds};
    #[pymodule_export]
    use crate::experiment::experiment;
    #[pymodule_export]
    use crate::factors::factors;
    #[pymodule_export]
    use crate::halves::Halves;
    #[pymodule_export]
    use crate::logs::Log;
    #[pymodule_export]
    use crate::monitor::Monitor;
    #[pymodule_export]
    use crate::noise::Noise;
    #[pymodule_export]
    use crate::problem::Problem;
    #[pymodule_export]
    use crate::rules::Rule;
    #[pymodule_export]
    use crate::schedule::{Schedule, linear_times, log_times};
    #[pymodule_export]
    use crate::spectrum::Spectrum;
    #[pymodule_export]
    use crate::stream::Stream;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::pool::remember();
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("INFINITE_VARIANCE", toclip::Error::InfiniteVariance.to_string())
    }
}
