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

use toclip::Problem;
use toclip::dynamics::{Ode, Sgd};
use toclip::model::Model;
use toclip::policy::OpenLoop;
use toclip::spectrum::{Modes, Spectrum, Start};

const OPEN: f64 = f64::INFINITY;

fn constant(eta: f64, c: f64) -> OpenLoop {
    OpenLoop::constant(eta, c).unwrap()
}

/// A uniform teacher of this norm, and a start at zero.
fn taught(spectrum: &Spectrum, norm: f64) -> Modes {
    let start = Start::Uniform { norm: 0.0 };
    Modes::with_teacher(spectrum, &Start::Uniform { norm }, &start).unwrap()
}

fn problem<M: Model + Clone + 'static>(modes: &Modes, model: &M, policy: &OpenLoop) -> Problem {
    Problem::of_model(modes.clone(), model.clone(), policy.clone()).unwrap()
}

fn ode<M: Model + Clone + 'static>(modes: &Modes, model: &M, policy: &OpenLoop) -> Ode {
    Ode::new(&problem(modes, model, policy)).unwrap()
}

fn sgd<M: Model + Clone + 'static>(modes: &Modes, model: &M, policy: &OpenLoop) -> Sgd {
    Sgd::new(&problem(modes, model, policy)).unwrap()
}
