//! The theory of clipped SGD.
mod error;
pub use error::Error;
