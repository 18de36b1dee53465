//! The mean of many runs against the ODE, on the problems that every rule is tried on.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

use std::sync::Arc;
use toclip::Problem;
use toclip::dynamics::{Ode, Simulator};
use toclip::noise::{Gaussian, Laplace, Noise, Rademacher, StudentT};
use toclip::policy::OpenLoop;
use toclip::spectrum::{Spectrum, Start};

/// Comparisons are of R and D at two times each, so four a problem; at four standard errors the
/// false alarm of one is 6e-5, of the eight problems of a rule 0.2%. Seeds are fixed.
pub const ERRORS: f64 = 4.0;

pub fn noises() -> Vec<(&'static str, Arc<dyn Noise>)> {
    vec![
        ("gaussian", Arc::new(Gaussian::new(0.5).unwrap())),
        ("laplace", Arc::new(Laplace::new(0.6).unwrap())),
        ("student-t 2.5", Arc::new(StudentT::new(2.5, 0.3).unwrap())),
        ("rademacher-like", Arc::new(Rademacher::new(1.0, 0.3).unwrap())),
    ]
}

/// Isotropic and power law, both with d of about `dim`.
pub fn spectra(dim: u64) -> Vec<(&'static str, Spectrum)> {
    // Σ j^(-0.2) ≈ n^0.8/0.8.
    let n = (0.8 * dim as f64).powf(1.25).ceil() as u64;
    vec![
        ("isotropic", Spectrum::isotropic(dim).unwrap()),
        ("power law", Spectrum::power_law(n, 0.2).unwrap()),
    ]
}

pub fn start() -> Start {
    Start::Uniform { norm: 1.0 }
}

pub fn constant(eta: f64, c: f64) -> OpenLoop {
    OpenLoop::constant(eta, c).unwrap()
}

/// What was found: how far the mean of the runs is from the ODE, in standard errors and as a share
/// of it, the worst of R and D at all times.
#[derive(Debug, Clone, Copy)]
pub struct Gap {
    pub errors: f64,
    pub share: f64,
}

pub fn gap(simulator: &dyn Simulator, problem: &Problem, times: &[f64], runs: u64) -> Gap {
    let theory = Ode::new(problem).unwrap().solve(times).unwrap();
    let paths: Vec<_> = (0..runs).map(|index| simulator.run(2026, index, times)).collect();
    let mut worst = Gap { errors: 0.0, share: 0.0 };
    for k in 0..times.len() {
        let risk: Vec<f64> = paths.iter().map(|p| p.risk[k]).collect();
        let distance: Vec<f64> = paths.iter().map(|p| p.distance[k]).collect();
        for (values, exact) in [(risk, theory.risk[k]), (distance, theory.distance[k])] {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
            let off = (mean - exact).abs();
            worst.errors = worst.errors.max(off / (variance / n).sqrt());
            worst.share = worst.share.max(off / exact);
        }
    }
    worst
}
