//! What people read: numbers, percentages, intervals, durations, suggestions and verdicts in words.
//!
//! The other crates return data. Where a number or a [verdict] becomes part of a sentence, the words
//! come from here, so that they are the same in the command, the reports, the explorer and Python.

mod names;
mod numbers;
#[cfg(feature = "verdict")]
pub mod verdict;

pub use names::{did_you_mean, did_you_mean_or_list, unknown};
pub use numbers::{
    bounds, counted, duration, exact, interval, interval_at, percent, percent_interval_at, rounded,
    short, signed_percent, significant,
};
