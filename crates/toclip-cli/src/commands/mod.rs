//! One command, one module: arguments, one call, output. No command uses another.

pub mod advise;
pub mod completions;
pub mod convergence;
pub mod data;
pub mod embed;
pub mod explore;
pub mod factors;
pub mod fit;
pub mod man;
pub mod reproduce;
pub mod residuals;
pub mod run;
pub mod schedule;
pub mod schema;
pub mod sweep;
