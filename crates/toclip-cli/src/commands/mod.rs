//! One command, one file.

pub mod convergence;
pub mod factors;
pub mod run;
pub mod schema;
