//! Statistical tests: what holds for the simulations in distribution, or as the dimension grows.
//!
//! Seeds are fixed. Every test says how often it would fail by chance if its seed were not.

#![allow(clippy::unwrap_used)]

mod methods;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use std::sync::Arc;
use toclip::convergence::Convergence;
use toclip::dynamics::Simulator;
use toclip::ensemble::Ensemble;
use toclip::noise::{Gaussian, Laplace, Noise, Rademacher, StudentT};
use toclip::policy::OpenLoop;
use toclip::spectrum::{Block, Modes, Spectrum, Start};
use toclip::{Memory, Momentum, Optimizer, Problem, Rule, Step};

/// Blocks of one, two, three and more directions: each has its own way of drawing $\chi^2$.
const BLOCKS: [(f64, u64); 5] = [(1.0, 5), (0.5, 4), (0.25, 2), (0.1, 1), (0.05, 3)];

fn modes(blocks: &[(f64, u64)], norm: f64) -> Modes {
    let block = |&(value, multiplicity): &(f64, u64)| Block { value, multiplicity };
    let spectrum = Spectrum::from_blocks(&blocks.iter().map(block).collect::<Vec<_>>()).unwrap();
    Modes::new(&spectrum, &Start::Uniform { norm }).unwrap()
}

fn isotropic(d: u64) -> toclip::Result<Modes> {
    Modes::new(&Spectrum::isotropic(d)?, &Start::Uniform { norm: 1.0 })
}

fn constant(eta: f64, c: f64) -> OpenLoop {
    OpenLoop::constant(eta, c).unwrap()
}

/// Risk and distance at each of some times.
type Path = Vec<(f64, f64)>;

fn eigenvalues() -> Vec<f64> {
    BLOCKS.iter().flat_map(|&(value, n)| std::iter::repeat_n(value, n as usize)).collect()
}

fn risk_and_distance(lambda: &[f64], theta: &[f64]) -> (f64, f64) {
    let risk = lambda.iter().zip(theta).map(|(l, t)| 0.5 * l * t * t).sum();
    (risk, theta.iter().map(|t| t * t).sum())
}

/// C-SGD as it is written in the paper, with every coordinate of every sample.
fn plain_sgd(noise: &dyn Noise, eta: f64, c: f64, times: &[f64], seed: u64) -> Path {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let lambda = eigenvalues();
    let d: f64 = lambda.iter().sum();
    let mut theta = vec![1.0 / (lambda.len() as f64).sqrt(); lambda.len()];
    let mut path = Vec::new();
    let mut k = 0;
    for t in times {
        while k < (t * d).round() as u64 {
            let x: Vec<f64> = lambda
                .iter()
                .map(|l| l.sqrt() * Distribution::<f64>::sample(&StandardNormal, &mut rng))
                .collect();
            let target = noise.sample(&mut rng);
            let residual = x.iter().zip(&theta).map(|(x, t)| x * t).sum::<f64>() - target;
            let gradient: Vec<f64> = x.iter().map(|x| residual * x).collect();
            let length = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            let scale = (c * d.sqrt() / length).min(1.0);
            for (t, g) in theta.iter_mut().zip(&gradient) {
                *t -= eta / d * scale * g;
            }
            k += 1;
        }
        path.push(risk_and_distance(&lambda, &theta));
    }
    path
}

/// C-HSGD by Euler–Maruyama with every coordinate.
fn plain_hsgd(noise: &dyn Noise, eta: f64, c: f64, times: &[f64], seed: u64) -> Path {
    const DT: f64 = 0.01;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let lambda = eigenvalues();
    let d: f64 = lambda.iter().sum();
    let mut theta = vec![1.0 / (lambda.len() as f64).sqrt(); lambda.len()];
    let mut path = Vec::new();
    let mut k = 0;
    for t in times {
        while k < (t / DT).round() as u64 {
            let factors = noise.clipped(risk_and_distance(&lambda, &theta).0, c);
            for (t, l) in theta.iter_mut().zip(&lambda) {
                let z: f64 = StandardNormal.sample(&mut rng);
                *t -= eta * factors.mu * l * *t * DT;
                *t += eta * (l * factors.m2 / d * DT).sqrt() * z;
            }
            k += 1;
        }
        path.push(risk_and_distance(&lambda, &theta));
    }
    path
}

fn simulated(simulator: &dyn Simulator, times: &[f64], runs: u64) -> Vec<Path> {
    let path = |index| {
        let run = simulator.run(77, index, times);
        assert_eq!(run.risk.len(), times.len());
        run.risk.into_iter().zip(run.distance).collect()
    };
    (0..runs).into_par_iter().map(path).collect()
}

/// The largest distance of two empirical distribution functions.
fn kolmogorov_smirnov(mut a: Vec<f64>, mut b: Vec<f64>) -> f64 {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let (mut i, mut j, mut largest) = (0, 0, 0.0_f64);
    while i < a.len() && j < b.len() {
        if a[i] <= b[j] {
            i += 1
        } else {
            j += 1
        }
        let gap = i as f64 / a.len() as f64 - j as f64 / b.len() as f64;
        largest = largest.max(gap.abs());
    }
    largest
}

/// What two samples of `n` from one distribution exceed with probability `alarm` (asymptotically).
fn critical(n: u64, alarm: f64) -> f64 {
    ((2.0 / alarm).ln() / n as f64).sqrt()
}

/// The largest of the statistics over times, for $R$ and $D$.
fn largest_statistic(a: &[Path], b: &[Path]) -> f64 {
    let column = |paths: &[Path], k: usize, risk: bool| -> Vec<f64> {
        paths.iter().map(|p| if risk { p[k].0 } else { p[k].1 }).collect()
    };
    let times = 0..a[0].len();
    let both = times.flat_map(|k| [(k, true), (k, false)]);
    both.map(|(k, risk)| kolmogorov_smirnov(column(a, k, risk), column(b, k, risk)))
        .fold(0.0, f64::max)
}

#[test]
fn collapsed_sgd_has_the_distribution_of_the_full_iteration() {
    // 3 settings × 3 times × (R, D) = 18 comparisons at 5e-8 each: false alarm 1e-6.
    let runs = 40_000;
    let times = [0.5, 1.5, 4.0];
    let settings: [(Arc<dyn Noise>, f64, f64); 3] = [
        (Arc::new(Gaussian::new(0.5).unwrap()), 0.7, 0.9),
        (Arc::new(StudentT::new(1.0, 0.5).unwrap()), 0.6, 0.4),
        (Arc::new(Rademacher::from_sigma(0.8, 0.2).unwrap()), 0.4, f64::INFINITY),
    ];
    for (noise, eta, c) in settings {
        let plain: Vec<Path> = (0..runs)
            .into_par_iter()
            .map(|seed| plain_sgd(&*noise, eta, c, &times, seed))
            .collect();
        let collapsed = |blocks: &[(f64, u64)]| {
            methods::collapsed(&modes(blocks, 1.0), &noise, &constant(eta, c))
        };
        let statistic = largest_statistic(&plain, &simulated(&collapsed(&BLOCKS), &times, runs));
        assert!(statistic < critical(runs, 5e-8), "{}: {statistic}", noise.describe());
        // The test can tell: one direction more or less in a block is seen.
        let mut other = BLOCKS;
        other[0].1 += 1;
        let statistic = largest_statistic(&plain, &simulated(&collapsed(&other), &times, runs));
        assert!(statistic > 2.0 * critical(runs, 5e-8), "{}: {statistic}", noise.describe());
    }
}

#[test]
fn collapsed_hsgd_has_the_distribution_of_the_full_equation() {
    // 2 times × (R, D) = 4 comparisons at 2.5e-7 each: false alarm 1e-6. The discretisation of the
    // plain form, of the order 0.01, is far below what so many runs can see.
    let runs = 10_000;
    let (times, eta, c) = ([0.5, 2.0], 0.7, 0.9);
    let noise: Arc<dyn Noise> = Arc::new(Laplace::new(0.5).unwrap());
    let plain: Vec<Path> =
        (0..runs).into_par_iter().map(|seed| plain_hsgd(&*noise, eta, c, &times, seed)).collect();
    let hsgd = methods::hsgd(&modes(&BLOCKS, 1.0), &noise, &constant(eta, c));
    let statistic = largest_statistic(&plain, &simulated(&hsgd, &times, runs));
    assert!(statistic < critical(runs, 2.5e-7), "{statistic}");
}

#[test]
fn means_are_within_the_inverse_root_of_d_of_the_ode() {
    // A single run is off by about 0.3/√d; the mean of 400 by 0.015/√d, and by a bias of order
    // 1/d. The bound is over five standard errors at each of 24 points: false alarm below 2e-5.
    let noise: Arc<dyn Noise> = Arc::new(Gaussian::new(0.5).unwrap());
    let times = [1.0, 3.0, 6.0, 10.0];
    for d in [400, 1600, 6400] {
        let blocks = [(1.0, d / 2), (0.5, d)];
        let (modes, policy) = (modes(&blocks, 1.0), constant(0.7, 0.9));
        let theory = methods::ode(&modes, &noise, &policy).solve(&times).unwrap();
        let sgd = methods::collapsed(&modes, &noise, &policy);
        let hsgd = methods::hsgd(&modes, &noise, &policy);
        for simulator in [&sgd as &dyn Simulator, &hsgd] {
            let mean = Ensemble::new(400, 5).run(simulator, &times, None).unwrap().risk.mean;
            for (mean, exact) in mean.iter().zip(&theory.risk) {
                let gap = (mean - exact).abs() * (d as f64).sqrt();
                assert!(gap < 0.1, "{simulator:?}, d = {d}: {gap}");
            }
        }
    }
}

#[test]
fn threads_change_no_bit_of_a_simulation() {
    let noise: Arc<dyn Noise> = Arc::new(StudentT::new(1.0, 0.5).unwrap());
    let modes = modes(&BLOCKS, 1.0);
    let sgd = methods::collapsed(&modes, &noise, &constant(0.7, 0.9));
    let hsgd = methods::hsgd(&modes, &noise, &constant(0.7, 0.9));
    for simulator in [&sgd as &dyn Simulator, &hsgd] {
        let summaries = [1, 2, 5].map(|threads| {
            let ensemble = Ensemble::new(300, 8).threads(threads);
            let summary = ensemble.run(simulator, &[0.0, 1.0, 5.0], None).unwrap();
            serde_json::to_vec(&summary).unwrap()
        });
        assert_eq!(summaries[0], summaries[1]);
        assert_eq!(summaries[0], summaries[2]);
    }
}

#[test]
fn the_rate_of_theorem_1_is_one_half() {
    let experiment =
        Convergence { time: 10.0, runs: 300, seed: 4, confidence: 0.9999, threads: None };
    let family = |d| Problem::new(isotropic(d)?, Gaussian::new(0.5)?, constant(0.7, 0.9));
    let rate = experiment.measure(&[100, 1000, 10_000], &family, None).unwrap();
    // Measured elsewhere, with an error taken to be as large as ours: 4 standard errors of the
    // difference at three points, false alarm 2e-4.
    for (gap, known) in rate.gaps.iter().zip([3.91e-2, 1.27e-2, 4.03e-3]) {
        let error = 2_f64.sqrt() * gap.standard_error;
        assert!((gap.mean - known).abs() < 4.0 * error, "{gap:?}");
    }
    // −1/2 in the interval of confidence 0.9999, and the interval is narrow. From d = 100 on the
    // straight line is not quite reached: its slope is −0.493 ± 0.003, which moves −1/2 by about
    // 1.3 standard errors of this test towards the edge. False alarm below 1e-2 with that, 1e-4
    // without.
    assert!(rate.low < -0.5 && -0.5 < rate.high, "{rate:?}");
    assert!(rate.high - rate.low < 0.1, "{rate:?}");
    let two = Convergence { threads: Some(2), runs: 20, ..experiment.clone() };
    let one = Convergence { threads: Some(1), ..two.clone() };
    let measure = |e: Convergence| e.measure(&[100, 200], &family, None).unwrap();
    assert_eq!(measure(one), measure(two));
}

/// The rate of Theorem 1 beyond the paper: clipping by value and momentum, coordinate by coordinate.
/// The interval holds the slope with a confidence of 0.9999; it is that of fixed seeds.
#[test]
fn by_value_and_momentum_approach_their_odes_at_the_same_rate() {
    let step = Step::new(Gaussian::new(0.5).unwrap());
    let average = Momentum::average(Memory::Delta(2.0)).unwrap();
    let cases = [
        (step.clone().with_rule(Rule::ByValue).unwrap(), Optimizer::Sgd),
        (step, Optimizer::Momentum(average)),
    ];
    for (step, optimizer) in cases {
        let experiment =
            Convergence { time: 1.0, runs: 60, seed: 5, confidence: 0.9999, threads: None };
        let family = |d| {
            let problem = Problem::new(isotropic(d)?, step.clone(), constant(0.7, 0.9))?;
            problem.with_optimizer(optimizer)
        };
        let rate = experiment.measure(&[100, 1000], &family, None).unwrap();
        assert!(rate.low < -0.5 && -0.5 < rate.high, "{optimizer:?}: {rate:?}");
        assert!(rate.high - rate.low < 0.5, "{optimizer:?}: {rate:?}");
    }
}
