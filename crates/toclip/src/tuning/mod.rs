//! The learning rate, the threshold or κ with the lowest predicted risk or loss.
//!
//! | question | function |
//! |---|---|
//! | which rate goes with this threshold? | [`tune_rate`] |
//! | which threshold and rate? | [`tune_clip`] |
//! | which κ in $c = \kappa\sqrt{2R+\sigma^2}$? | [`tune_kappa`] |
//! | which constant rate and threshold of private SGD? | [`tune_private`] |
//!
//! All take a [`Problem`](crate::Problem), whose policy they replace, and follow its
//! [ODE](crate::dynamics::Ode).

mod kappa;
mod private;
mod rate;
mod search;

pub use kappa::{TunedKappa, tune_kappa};
pub use private::{TunedPrivate, tune_private};
pub use rate::{RateShape, Tuned, tune_clip, tune_rate};
