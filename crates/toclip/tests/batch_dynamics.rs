//! C-SGD in batches against the ODE with the factors of batches.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

mod methods;

use std::sync::Arc;
use toclip::dynamics::{Collapsed, Sgd, Simulator, Stop};
use toclip::noise::{Gaussian, Laplace, Noise, Rademacher, StudentT, Uniform};
use toclip::policy::{Greedy, MaxCcc, OpenLoop, Policy, Schedule};
use toclip::spectrum::{Block, Modes, Spectrum, Start};
use toclip::{Batch, Step};

fn constant(eta: f64, c: f64) -> OpenLoop {
    OpenLoop::constant(eta, c).unwrap()
}

fn modes(blocks: &[(f64, u64)]) -> Modes {
    let block = |&(value, multiplicity): &(f64, u64)| Block { value, multiplicity };
    let spectrum = Spectrum::from_blocks(&blocks.iter().map(block).collect::<Vec<_>>()).unwrap();
    Modes::new(&spectrum, &Start::Uniform { norm: 1.0 }).unwrap()
}

fn batched(noise: impl Noise + 'static, batch: Batch) -> Step<'static> {
    Step::new(Arc::new(noise)).with_batch(batch).unwrap()
}

fn noises() -> Vec<Arc<dyn Noise>> {
    vec![
        Arc::new(Gaussian::new(0.5).unwrap()),
        Arc::new(Rademacher::from_sigma(0.8, 0.2).unwrap()),
        Arc::new(StudentT::new(2.2, 0.5).unwrap()),
        Arc::new(StudentT::new(1.0, 0.3).unwrap()),
        Arc::new(Laplace::new(0.8).unwrap()),
        Arc::new(Uniform::new(1.2).unwrap()),
    ]
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt())
}

/// The ODE must lie within one standard deviation of a single run from the mean over 32 runs: 5.6
/// standard errors. By Student's distribution the false alarm of a comparison is 4e-6, 4e-4 for all
/// 108. The largest distances are printed.
#[test]
fn the_ode_is_inside_the_fluctuations_of_sgd() {
    let spectra = [modes(&[(1.0, 4000)]), modes(&[(1.0, 1500), (0.4, 3000), (0.1, 10_000)])];
    let times = [0.3, 0.6, 1.0];
    let mut worst = (0.0, String::new());
    let mut clipped_most = 1.0f64;
    for spectrum in &spectra {
        for noise in noises() {
            for (size, eta, c) in [(2, 0.8, 0.3), (8, 1.5, 0.6), (32, 3.0, 0.4)] {
                let batch = Batch::mean(size).unwrap();
                let noise = Step::new(noise.clone()).with_batch(batch).unwrap();
                let policy = constant(eta, c);
                let theory = methods::ode(spectrum, &noise, &policy).solve(&times).unwrap();
                let sgd = methods::collapsed(spectrum, &noise, &policy);
                let runs: Vec<_> = (0..32).map(|i| sgd.run(7, i, &times)).collect();
                // m2 B/c² is one where every batch is clipped.
                let full = noise.moments(theory.risk[2], c).m2 * size as f64 / (c * c);
                clipped_most = clipped_most.min(1.0 - full);
                for (k, want) in theory.risk.iter().enumerate() {
                    let risks: Vec<f64> = runs.iter().map(|r| r.risk[k]).collect();
                    let (mean, deviation) = mean_and_deviation(&risks);
                    let off = (mean - want).abs() / deviation;
                    let place = format!(
                        "{}, c = {c}, t = {}: {mean} ± {deviation}, ODE {want}",
                        noise.describe(),
                        times[k]
                    );
                    assert!(off < 1.0, "{off} {place}");
                    if k == 2 && spectrum.modes().len() == 3 {
                        println!(
                            "| {} | {c} | {full:.3} | {mean:.5} ± {deviation:.5} | {want:.5} |",
                            noise.describe()
                        );
                    }
                    if off > worst.0 {
                        worst = (off, place);
                    }
                }
            }
        }
    }
    println!("largest distance {:.2} standard deviations: {}", worst.0, worst.1);
    println!("largest mean square of clipped batches: c² (1 − {clipped_most:.1e})");
    assert!(clipped_most < 1e-3, "in no case is nearly every batch clipped");
}

/// Measurements published with the theory: 1500 eigenvalues, Student-t noise, nearly every batch
/// clipped. The start was not given with them, so both are held to 2 % and 5 %; runs of SGD scatter
/// by 2 %, and their mean must be that near to the ODE.
#[test]
fn heavy_tails_in_batches_of_thirty_two_match_the_measurements() {
    let spectrum = Spectrum::power_law(1500, 0.3).unwrap();
    let modes = Modes::new(&spectrum, &Start::Uniform { norm: 1.0 }).unwrap();
    assert!((modes.dim() - 238.0).abs() < 1.0);
    let noise = batched(StudentT::new(2.2, 0.5).unwrap(), Batch::mean(32).unwrap());
    let times = [1.68, 3.36, 5.04];
    let policy = constant(3.0, 0.6);
    let ode = methods::ode(&modes, &noise, &policy).solve(&times).unwrap();
    let sgd = methods::sgd(&modes, &noise, &policy);
    let runs: Vec<_> = (0..3).map(|i| sgd.run(1, i, &times)).collect();
    for (k, (theory, before)) in
        [(0.0377, 0.0380), (0.0232, 0.0229), (0.0175, 0.0173)].iter().enumerate()
    {
        let mean = runs.iter().map(|r| r.risk[k]).sum::<f64>() / 3.0;
        println!("t = {}: SGD {mean:.4} ({before}), ODE {:.4} ({theory})", times[k], ode.risk[k]);
        assert!((ode.risk[k] / theory - 1.0).abs() < 0.02, "{} {theory}", ode.risk[k]);
        assert!((mean / ode.risk[k] - 1.0).abs() < 0.05, "{mean} {}", ode.risk[k]);
        assert!((mean / before - 1.0).abs() < 0.05, "{mean} {before}");
    }
}

/// Mean and mean square of R and D over many short runs of both forms, five standard errors of the
/// difference: false alarm of a comparison 6e-7.
#[test]
fn collapsed_batches_have_the_distribution_of_full_ones() {
    let modes = modes(&[(1.0, 4), (0.5, 3), (0.25, 2), (0.125, 1), (0.0, 2)]);
    let batches = [Batch::mean(3).unwrap(), Batch::per_sample(3).unwrap()];
    let noises: [Arc<dyn Noise>; 2] =
        [Arc::new(StudentT::new(1.5, 0.4).unwrap()), Arc::new(Gaussian::new(0.3).unwrap())];
    for batch in batches {
        for noise in &noises {
            for c in [0.3, 2.0, f64::INFINITY] {
                if c == f64::INFINITY && noise.second_moment() == f64::INFINITY {
                    continue;
                }
                let noise = Step::new(noise.clone()).with_batch(batch).unwrap();
                let policy = constant(0.9, c);
                let full = methods::sgd(&modes, &noise, &policy);
                let collapsed = methods::collapsed(&modes, &noise, &policy);
                let t = [5.0 / modes.dim()];
                let sample = |simulator: &dyn Simulator, seed| {
                    let runs = (0..20_000).map(|i| simulator.run(seed, i, &t));
                    runs.map(|run| (run.risk[0], run.distance[0])).unzip::<_, _, Vec<_>, Vec<_>>()
                };
                let (a, b) = (sample(&full, 3), sample(&collapsed, 4));
                for (x, y) in [(&a.0, &b.0), (&a.1, &b.1)] {
                    for power in [1, 2] {
                        let of = |v: &[f64]| {
                            mean_and_deviation(&v.iter().map(|v| v.powi(power)).collect::<Vec<_>>())
                        };
                        let ((x, dx), (y, dy)) = (of(x), of(y));
                        let error = (dx * dx + dy * dy).sqrt() / f64::sqrt(20_000.0);
                        assert!(
                            (x - y).abs() < 5.0 * error,
                            "{batch} c = {c}: {x} and {y} ± {error}"
                        );
                    }
                }
            }
        }
    }
}

/// Each sample clipped, then averaged: as above, with 32 runs.
#[test]
fn per_sample_clipping_follows_its_ode() {
    let spectrum = modes(&[(1.0, 800), (0.4, 1500), (0.1, 4000)]);
    for size in [4, 32] {
        let noise = batched(StudentT::new(1.0, 0.3).unwrap(), Batch::per_sample(size).unwrap());
        let policy = constant(1.2, 0.5);
        let times = [0.5, 1.5];
        let theory = methods::ode(&spectrum, &noise, &policy).solve(&times).unwrap();
        let sgd = methods::collapsed(&spectrum, &noise, &policy);
        let runs: Vec<_> = (0..32).map(|i| sgd.run(9, i, &times)).collect();
        for (k, want) in theory.risk.iter().enumerate() {
            let risks: Vec<f64> = runs.iter().map(|r| r.risk[k]).collect();
            let (mean, deviation) = mean_and_deviation(&risks);
            assert!((mean - want).abs() < deviation, "{size}: {mean} ± {deviation}, ODE {want}");
        }
    }
}

#[test]
fn the_other_methods_follow_the_ode() {
    let spectrum = modes(&[(1.0, 40_000), (0.3, 60_000)]);
    let noise = batched(StudentT::new(2.2, 0.5).unwrap(), Batch::mean(16).unwrap());
    let policy = constant(2.0, 0.5);
    let times = [0.5, 1.0, 2.0];
    let ode = methods::ode(&spectrum, &noise, &policy).solve(&times).unwrap();
    let volterra = methods::volterra(&spectrum, &noise, &policy).solve(&times).unwrap();
    for (a, b) in ode.risk.iter().zip(&volterra.trajectory.risk) {
        assert!((a / b - 1.0).abs() < 1e-7, "{a} {b}");
    }
    // One run in 58,000 dimensions: fluctuations of 1 %; five of them.
    let run = methods::hsgd(&spectrum, &noise, &policy).run(1, 0, &times);
    assert_eq!(run.stop, Stop::Finished);
    for (a, b) in ode.risk.iter().zip(&run.risk) {
        assert!((a / b - 1.0).abs() < 0.05, "{a} {b}");
    }
}

#[test]
fn a_batch_of_one_is_the_single_sample_to_the_bit() {
    let spectrum = modes(&[(1.0, 50), (0.3, 7), (0.2, 1)]);
    let plain = Arc::new(StudentT::new(1.0, 0.5).unwrap());
    let policy = constant(0.7, 0.6);
    let times = [0.5, 1.0];
    let plain = Step::new(plain);
    for batch in [Batch::single(), Batch::mean(1).unwrap(), Batch::per_sample(1).unwrap()] {
        let one = plain.clone().with_batch(batch).unwrap();
        assert_eq!(one.moments(0.3, 0.6), plain.moments(0.3, 0.6));
        let ode =
            |step: &Step<'static>| methods::ode(&spectrum, step, &policy).solve(&times).unwrap();
        assert_eq!(ode(&one), ode(&plain));
        let runs = |step: &Step<'static>| {
            let full = methods::sgd(&spectrum, step, &policy);
            let collapsed = methods::collapsed(&spectrum, step, &policy);
            (full.run(1, 2, &times), collapsed.run(1, 2, &times))
        };
        assert_eq!(runs(&one), runs(&plain));
    }
}

#[test]
fn schedules_know_the_batch() {
    let noise = batched(Rademacher::from_sigma(0.8, 0.2).unwrap(), Batch::mean(4).unwrap());
    let eta = || Schedule::constant(0.8).unwrap();
    let at = MaxCcc::new(eta(), noise.clone()).at(0.0, 0.05);
    let mu = noise.moments(0.05, at.c).mu;
    assert!(at.c.is_finite() && (at.eta * mu / 0.8 - 1.0).abs() < 1e-12, "{at:?}");
    // The greedy rate of unclipped SGD grows with the batch.
    let rate = |b| {
        Greedy::unclipped(batched(Gaussian::new(1.0).unwrap(), Batch::mean(b).unwrap()))
            .at(0.0, 0.5)
            .eta
    };
    assert!((rate(8) / rate(1) - 8.0).abs() < 1e-12);
}

#[test]
fn steps_that_cannot_be_simulated_are_refused() {
    let spectrum = modes(&[(1.0, 50)]);
    let ten = batched(Gaussian::new(1.0).unwrap(), Batch::mean(2).unwrap().outputs(10).unwrap());
    let problem = methods::problem(&spectrum, &ten, &constant(0.1, 1.0));
    let error = Collapsed::new(&problem).unwrap_err().to_string();
    assert!(error.contains("one output, not 10"), "{error}");
    assert!(Sgd::new(&problem).is_err());
    assert!(Batch::mean(0).is_err() && Batch::per_sample(0).is_err());
    assert!(Batch::mean(100_000).unwrap().outputs(100_000).is_err());
}

/// Where the formulas stop: the batch must be small against $d$. The mean of many runs at one time,
/// relative to the ODE; printed for `docs/batches.md`.
#[test]
fn the_batch_must_be_small_against_the_dimension() {
    let spectrum = modes(&[(1.0, 400)]);
    let mut off = Vec::new();
    for size in [2, 8, 40, 120, 400] {
        let noise = batched(Gaussian::new(0.5).unwrap(), Batch::mean(size).unwrap());
        let policy = constant(1.5, 0.4);
        let t = [1.0];
        let theory = methods::ode(&spectrum, &noise, &policy).solve(&t).unwrap().risk[0];
        let sgd = methods::collapsed(&spectrum, &noise, &policy);
        let risks: Vec<f64> = (0..200).map(|i| sgd.run(5, i, &t).risk[0]).collect();
        let (mean, deviation) = mean_and_deviation(&risks);
        let (bias, error) = (mean / theory - 1.0, deviation / theory / 200f64.sqrt());
        println!(
            "B = {size}, B/d = {}: SGD / ODE − 1 = {bias:.4} ± {error:.4}",
            size as f64 / 400.0
        );
        off.push(bias);
    }
    // Five standard errors are below 2 % throughout.
    assert!(off[0].abs() < 0.03 && off[4] > 0.1, "{off:?}");
}
