//! Time per evaluation of the batch factors, and of one step of C-SGD in batches.

#![allow(clippy::expect_used, reason = "a benchmark that cannot start should say so")]

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use toclip::dynamics::{Collapsed, Ode, Simulator};
use toclip::noise::{Gaussian, Laplace, Noise, Rademacher, StudentT, Uniform};
use toclip::policy::OpenLoop;
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::{Batch, Problem, Step};

fn factors(criterion: &mut Criterion) {
    let noises: Vec<(&str, Arc<dyn Noise>)> = vec![
        ("gaussian", Arc::new(Gaussian::new(0.8).expect("legal"))),
        ("rademacher", Arc::new(Rademacher::from_sigma(0.8, 0.2).expect("legal"))),
        ("laplace", Arc::new(Laplace::new(0.8).expect("legal"))),
        ("uniform", Arc::new(Uniform::new(1.2).expect("legal"))),
        ("student_t 2.2", Arc::new(StudentT::new(2.2, 0.5).expect("legal"))),
        ("cauchy", Arc::new(StudentT::new(1.0, 0.5).expect("legal"))),
    ];
    let mut group = criterion.benchmark_group("batch factors");
    for (name, noise) in noises {
        for size in [2, 32, 1024, 100_000] {
            let batch = Batch::mean(size).expect("legal");
            let step = Step::new(&noise).with_batch(batch).expect("legal");
            group.bench_function(format!("{name}, B = {size}"), |b| {
                b.iter(|| step.moments(black_box(0.1), black_box(0.6)));
            });
        }
    }
    group.finish();
}

fn dynamics(criterion: &mut Criterion) {
    let spectrum = Spectrum::power_law(500, 0.2).expect("legal");
    let modes = Modes::new(&spectrum, &Start::Uniform { norm: 1.0 }).expect("legal");
    let isotropic = Spectrum::isotropic(10_000).expect("legal");
    let one = Modes::new(&isotropic, &Start::Uniform { norm: 1.0 }).expect("legal");
    let noise = StudentT::new(2.2, 0.5).expect("legal");
    let policy = OpenLoop::constant(2.0, 0.6).expect("legal");
    let problem = Problem::new(modes, noise, policy).expect("legal");
    let problem = problem.with_batch(Batch::mean(32).expect("legal")).expect("legal");
    let mut group = criterion.benchmark_group("batch dynamics");
    group.sample_size(10);
    group.bench_function("ODE, 500 modes, Student-t, B = 32, T = 5", |b| {
        b.iter(|| Ode::new(&problem).and_then(|ode| ode.solve(&[5.0])).expect("solved"));
    });
    let sgd = Collapsed::new(&problem.with_modes(one).expect("legal")).expect("legal");
    group.bench_function("collapsed C-SGD, 1000 steps, B = 32", |b| {
        b.iter(|| sgd.run(1, 0, &[0.1]));
    });
    group.finish();
}

criterion_group!(benches, factors, dynamics);
criterion_main!(benches);
