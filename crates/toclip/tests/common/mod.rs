//! The problems of the reference curves, and a closed-loop rule to run them with.

#![allow(dead_code, reason = "each test file uses its part")]

use serde::Deserialize;
use std::sync::Arc;
use toclip::noise::{Gaussian, Noise, Rademacher, StudentT};
use toclip::schedule::{Control, OpenLoop, Policy, Schedule};
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
    pub policy: Box<dyn Policy>,
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
    OpenLoop::new(Schedule::constant(eta).unwrap(), Schedule::constant(c).unwrap())
}

/// How the learning rate makes up for the shrinkage of clipping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Compensation {
    /// $\eta\max(1, 1/\kappa)$.
    Kappa,
    /// $\eta/\mu$.
    Exact,
}

/// $c = \kappa\sqrt{2R + \sigma^2}$, written out here so that the solvers are tested on their own.
#[derive(Debug)]
pub struct Proportional {
    pub eta: f64,
    pub kappa: f64,
    pub compensation: Compensation,
    pub noise: Arc<dyn Noise>,
}

impl Policy for Proportional {
    fn at(&self, _t: f64, r: f64) -> Control {
        let c = self.kappa * (2.0 * r + self.noise.second_moment()).sqrt();
        let factor = match self.compensation {
            Compensation::Kappa => (1.0 / self.kappa).max(1.0),
            Compensation::Exact => 1.0 / self.noise.clipped(r, c).mu,
        };
        Control { eta: self.eta * factor, c }
    }

    fn uses_risk(&self) -> bool {
        true
    }
}

/// $c = \arg\max \mu^2/\nu$ and $\eta/\mu$, by a grid and golden sections.
#[derive(Debug)]
pub struct BestThreshold {
    pub eta: f64,
    pub noise: Arc<dyn Noise>,
}

impl Policy for BestThreshold {
    fn at(&self, _t: f64, r: f64) -> Control {
        let total = 2.0 * r + self.noise.second_moment();
        let ccc = |log_c: f64| {
            let clipped = self.noise.clipped(r, log_c.exp());
            clipped.mu * clipped.mu * total / clipped.m2
        };
        let (lo, hi, cells) = (-6.0, 3.0, 90);
        let width = (hi - lo) / f64::from(cells);
        let best = (0..=cells)
            .map(|k| lo + width * f64::from(k))
            .max_by(|a, b| ccc(*a).total_cmp(&ccc(*b)))
            .unwrap();
        let (mut a, mut b) = (best - width, best + width);
        // The maximum is flat: golden sections find it to about the root of rounding, and what c
        // is off by there moves the right-hand side by as little.
        let golden = 0.5 * (5.0_f64.sqrt() - 1.0);
        while b - a > 1e-9 {
            let (left, right) = (b - golden * (b - a), a + golden * (b - a));
            if ccc(left) > ccc(right) { b = right } else { a = left }
        }
        let c = (0.5 * (a + b)).exp();
        Control { eta: self.eta / self.noise.clipped(r, c).mu, c }
    }

    fn uses_risk(&self) -> bool {
        true
    }
}

/// All reference curves.
pub fn cases() -> Vec<Case> {
    let rademacher: Arc<dyn Noise> = Arc::new(Rademacher::from_sigma(0.8, 0.2).unwrap());
    let wide: Arc<dyn Noise> = Arc::new(Gaussian::new(0.8).unwrap());
    let heuristic = |noise: &Arc<dyn Noise>, compensation| -> Box<dyn Policy> {
        Box::new(Proportional { eta: 0.4, kappa: 0.3, compensation, noise: noise.clone() })
    };
    let unclipped = || -> Box<dyn Policy> { Box::new(constant(0.4, f64::INFINITY)) };
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
            Box::new(constant(0.6, 0.4)),
        ),
        case(
            "gaussian",
            include_str!("../data/ode/case2_powerlaw5_gaussian.csv"),
            0.2,
            &(Arc::new(Gaussian::new(0.5).unwrap()) as Arc<dyn Noise>),
            Box::new(constant(0.7, 0.9)),
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
            heuristic(&rademacher, Compensation::Kappa),
        ),
        case(
            "rademacher, max-CCC",
            include_str!("../data/ode/case3_rademacher_maxccc.csv"),
            sixth,
            &rademacher,
            Box::new(BestThreshold { eta: 0.4, noise: rademacher.clone() }),
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
            heuristic(&wide, Compensation::Kappa),
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
