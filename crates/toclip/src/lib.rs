//! The theory of clipped SGD.
mod error;
mod gauss;
pub mod spectrum;
pub use error::Error;
