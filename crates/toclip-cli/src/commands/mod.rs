//! One command, one file.

pub mod advise;
pub mod convergence;
pub mod factors;
pub mod reproduce;
pub mod run;
pub mod schedule;
pub mod schema;
