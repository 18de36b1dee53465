//! Momentum: the ODE, and the simulations against it.
//!
//! Seeds are fixed. Every statistical test says how often it would fail by chance if its seed were
//! not.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a helper that fails fails the test")]

#[path = "../methods/mod.rs"]
mod methods;
mod ode;
mod simulations;

use toclip::policy::OpenLoop;
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::{Memory, Momentum};

fn average(delta: f64) -> Momentum {
    Momentum::average(Memory::Delta(delta)).unwrap()
}

fn torch(beta: f64) -> Momentum {
    Momentum::heavy_ball(Memory::Beta(beta)).unwrap()
}

fn power_law(n: u64, exponent: f64) -> Modes {
    Modes::new(&Spectrum::power_law(n, exponent).unwrap(), &Start::Uniform { norm: 1.0 }).unwrap()
}

fn isotropic(n: u64) -> Modes {
    power_law(n, 0.0)
}

fn constant(eta: f64, c: f64) -> OpenLoop {
    OpenLoop::constant(eta, c).unwrap()
}
