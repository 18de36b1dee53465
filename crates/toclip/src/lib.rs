//! The theory of clipped SGD.
mod error;
mod gauss;
pub use error::Error;
