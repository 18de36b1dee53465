//! The theory of clipped SGD.
mod error;
mod gauss;
pub mod spectrum;
mod sum;
pub use error::Error;
