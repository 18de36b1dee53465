//! Classification and other generalised linear models.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

mod agreement;
mod bias;
mod coefficients;
mod dynamics;
mod tuning;
