//! One command, one file.

pub mod factors;
