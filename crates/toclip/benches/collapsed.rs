//! The cost of a step of the collapsed methods, and the gain from a second thread in an ensemble.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use toclip::Problem;
use toclip::dynamics::{Collapsed, Hsgd, Simulator, linear_times};
use toclip::ensemble::Ensemble;
use toclip::noise::{Gaussian, Noise, StudentT};
use toclip::policy::OpenLoop;
use toclip::spectrum::{Block, Modes, Spectrum, Start};

fn problem(modes: &Modes, noise: impl Noise + 'static, eta: f64, c: f64) -> Problem {
    Problem::new(modes.clone(), noise, OpenLoop::constant(eta, c).unwrap()).unwrap()
}

fn gaussian() -> Gaussian {
    Gaussian::new(0.5).unwrap()
}

fn cauchy() -> StudentT {
    StudentT::new(1.0, 0.5).unwrap()
}

fn modes(spectrum: Spectrum) -> Modes {
    Modes::new(&spectrum, &Start::Uniform { norm: 1.0 }).unwrap()
}

/// Time per step: at most 100 ns are wanted in a million dimensions.
fn steps(c: &mut Criterion) {
    let mut group = c.benchmark_group("steps");
    group.sample_size(20).throughput(Throughput::Elements(1_000_000));
    let million = modes(Spectrum::isotropic(1_000_000).unwrap());
    for (name, problem) in [
        ("gaussian", problem(&million, gaussian(), 0.7, 0.9)),
        ("cauchy", problem(&million, cauchy(), 0.7, 0.9)),
    ] {
        let sgd = Collapsed::new(&problem).unwrap();
        group.bench_function(format!("isotropic_1e6_{name}"), |b| b.iter(|| sgd.run(1, 0, &[1.0])));
    }
    let block = |j| Block { value: 1.0 / f64::from(j), multiplicity: 50_000 };
    let blocks = modes(Spectrum::from_blocks(&[1, 2, 3, 4, 5].map(block)).unwrap());
    let sgd = Collapsed::new(&problem(&blocks, gaussian(), 0.7, 0.9)).unwrap();
    let million_steps = [1e6 / blocks.dim()];
    group.bench_function("five_blocks", |b| b.iter(|| sgd.run(1, 0, &million_steps)));
    group.finish();
}

/// The hundred runs of C-HSGD of figure 1b on one thread and on two, and isotropic C-SGD.
fn ensembles(c: &mut Criterion) {
    let mut group = c.benchmark_group("ensembles");
    group.sample_size(10);
    let times = linear_times(15.0, 61).unwrap();
    let power_law = modes(Spectrum::power_law(500, 0.2).unwrap());
    let hsgd = Hsgd::new(&problem(&power_law, cauchy(), 0.6, 0.4)).unwrap();
    let isotropic = modes(Spectrum::isotropic(10_000).unwrap());
    let sgd = Collapsed::new(&problem(&isotropic, gaussian(), 0.7, 0.9)).unwrap();
    for threads in [1, 2] {
        let ensemble = Ensemble::new(100, 1).threads(threads);
        group.bench_function(format!("hsgd_figure_1b_threads_{threads}"), |b| {
            b.iter(|| ensemble.run(&hsgd, &times, None).unwrap());
        });
        group.bench_function(format!("sgd_isotropic_1e4_threads_{threads}"), |b| {
            b.iter(|| ensemble.run(&sgd, &times, None).unwrap());
        });
    }
    group.finish();
}

criterion_group!(benches, steps, ensembles);
criterion_main!(benches);
