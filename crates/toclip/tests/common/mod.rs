//! The problems of the reference curves.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

use serde::Deserialize;
use std::sync::Arc;
use toclip::noise::{Gaussian, Noise, Rademacher, StudentT};
use toclip::policy::{Compensation, MaxCcc, OpenLoop, Policy, Proportional, Schedule};
use toclip::spectrum::{Modes, Spectrum, Start};

/// A row of a reference curve.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Row {
    pub t: f64,
    #[serde(rename = "R")]
    pub risk: f64,
    #[serde(rename = "D")]
    pub distance: f64,
    pub c: f64,
    pub eta: f64,
    pub mu: f64,
    pub m2: f64,
}

/// A reference curve and its problem.
#[derive(Debug)]
pub struct Case {
    pub name: &'static str,
    pub modes: Modes,
    pub noise: Arc<dyn Noise>,
    pub policy: Arc<dyn Policy>,
    pub rows: Vec<Row>,
}

impl Case {
    pub fn times(&self) -> Vec<f64> {
        self.rows.iter().map(|row| row.t).collect()
    }
}

pub fn power_law(dim: u64, exponent: f64) -> Modes {
    let spectrum = Spectrum::power_law(dim, exponent).unwrap();
    Modes::new(&spectrum, &Start::Uniform { norm: 1.0 }).unwrap()
}

pub fn constant(eta: f64, c: f64) -> OpenLoop {
    OpenLoop::constant(eta, c).unwrap()
}

/// All reference curves.
pub fn cases() -> Vec<Case> {
    let rademacher: Arc<dyn Noise> = Arc::new(Rademacher::from_sigma(0.8, 0.2).unwrap());
    let wide: Arc<dyn Noise> = Arc::new(Gaussian::new(0.8).unwrap());
    let heuristic = |noise: &Arc<dyn Noise>, compensation| -> Arc<dyn Policy> {
        let eta = Schedule::constant(0.4).unwrap();
        Arc::new(Proportional::new(0.3, eta, noise.clone(), compensation).unwrap())
    };
    let unclipped = || -> Arc<dyn Policy> { Arc::new(constant(0.4, f64::INFINITY)) };
    let case = |name, text: &str, exponent, noise: &Arc<dyn Noise>, policy| Case {
        name,
        modes: power_law(500, exponent),
        noise: noise.clone(),
        policy,
        rows: csv::Reader::from_reader(text.as_bytes()).deserialize().map(Result::unwrap).collect(),
    };
    let sixth = 1.0 / 6.0;
    vec![
        case(
            "cauchy",
            include_str!("../data/ode/case1_powerlaw5_cauchy.csv"),
            0.2,
            &(Arc::new(StudentT::new(1.0, 0.5).unwrap()) as Arc<dyn Noise>),
            Arc::new(constant(0.6, 0.4)),
        ),
        case(
            "gaussian",
            include_str!("../data/ode/case2_powerlaw5_gaussian.csv"),
            0.2,
            &(Arc::new(Gaussian::new(0.5).unwrap()) as Arc<dyn Noise>),
            Arc::new(constant(0.7, 0.9)),
        ),
        case(
            "rademacher, proportional, exact compensation",
            include_str!("../data/ode/case3_rademacher_heuristic_exactcomp_k0.3.csv"),
            sixth,
            &rademacher,
            heuristic(&rademacher, Compensation::Exact),
        ),
        case(
            "rademacher, proportional",
            include_str!("../data/ode/case3_rademacher_heuristic_k0.3.csv"),
            sixth,
            &rademacher,
            heuristic(&rademacher, Compensation::Printed),
        ),
        case(
            "rademacher, max-CCC",
            include_str!("../data/ode/case3_rademacher_maxccc.csv"),
            sixth,
            &rademacher,
            Arc::new(MaxCcc::new(Schedule::constant(0.4).unwrap(), rademacher.clone())),
        ),
        case(
            "rademacher, unclipped",
            include_str!("../data/ode/case3_rademacher_unclipped.csv"),
            sixth,
            &rademacher,
            unclipped(),
        ),
        case(
            "gaussian, proportional",
            include_str!("../data/ode/case4_gaussian_heuristic_k0.3.csv"),
            sixth,
            &wide,
            heuristic(&wide, Compensation::Printed),
        ),
        case(
            "gaussian, unclipped",
            include_str!("../data/ode/case4_gaussian_unclipped.csv"),
            sixth,
            &wide,
            unclipped(),
        ),
    ]
}

/// The largest relative error of $R$ and $D$ against the rows.
pub fn worst(case: &Case, path: &toclip::dynamics::Trajectory) -> f64 {
    assert_eq!(path.times, case.times());
    let off = |got: f64, want: f64| (got / want - 1.0).abs();
    case.rows.iter().enumerate().fold(0.0, |worst: f64, (k, row)| {
        worst.max(off(path.risk[k], row.risk)).max(off(path.distance[k], row.distance))
    })
}
