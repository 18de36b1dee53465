//! One command, one file.

pub mod advise;
pub mod convergence;
pub mod data;
pub mod embed;
pub mod factors;
pub mod fit;
pub mod reproduce;
pub mod residuals;
pub mod run;
pub mod schedule;
pub mod schema;
pub mod trial;
