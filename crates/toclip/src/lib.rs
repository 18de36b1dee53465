#![doc = include_str!("../README.md")]

pub mod convergence;
pub mod criteria;
pub mod dynamics;
pub mod ensemble;
pub mod noise;
pub mod schedule;
pub mod spectrum;

mod error;
mod factors;
mod gauss;
mod kernel;
mod quad;
mod sim;
mod special;
mod sum;

pub use error::{Error, Result};
pub use factors::Factors;
pub use kernel::{Clipped, clipped_normal};
