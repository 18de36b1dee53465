//! Compares clipping rules on problems whose solution is known.
//!
//! Every [`Contender`] trains on every [`Problem`] for the same number of steps, with a learning
//! rate $\eta(1 - k/n)$ whose $\eta$ is tuned in the same way for each rule, on separate runs. The
//! result is the exact excess risk at the end of fresh runs ([`Measurement`]), and its ratio to that
//! of unclipped SGD on the same data, run by run.
//!
//! The gradients of batches are drawn exactly in distribution, at a cost that hardly depends on the
//! batch size; a run is a function of the seed, the problem and its index.

mod contender;
mod held_out;
mod logistic;
mod measurement;
mod prediction;
mod problem;
mod sgd_run;
mod statistics;
#[cfg(test)]
mod tests;
mod train;

pub use contender::Contender;
pub use measurement::{Effort, Measurement, measure_all};
pub use prediction::predicted_risk;
pub use problem::Problem;
pub use statistics::MeanInterval;
