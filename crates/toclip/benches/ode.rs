//! The price of a risk curve: figure 1b, and the same with a million eigenvalues.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use toclip::dynamics::{Ode, Volterra, linear_times, log_times};
use toclip::noise::{Gaussian, Noise, StudentT};
use toclip::schedule::{OpenLoop, Schedule};
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::{Memory, Momentum, Rule, Step};

fn power_law(dim: u64) -> Modes {
    Modes::new(&Spectrum::power_law(dim, 0.2).unwrap(), &Start::Uniform { norm: 1.0 }).unwrap()
}

fn constant(eta: f64, c: f64) -> OpenLoop {
    OpenLoop::new(Schedule::constant(eta).unwrap(), Schedule::constant(c).unwrap())
}

fn ode(c: &mut Criterion) {
    let mut group = c.benchmark_group("ode");
    group.sample_size(20);
    let times = linear_times(15.0, 301).unwrap();
    let cauchy = StudentT::new(1.0, 0.5).unwrap();
    let gaussian = Gaussian::new(0.5).unwrap();
    let figures: [(&str, &dyn Noise, OpenLoop); 2] =
        [("figure_1a", &gaussian, constant(0.7, 0.9)), ("figure_1b", &cauchy, constant(0.6, 0.4))];
    let modes = power_law(500);
    for (name, noise, policy) in &figures {
        for rtol in [1e-8, 1e-12] {
            group.bench_function(BenchmarkId::new(*name, format!("{rtol:e}")), |b| {
                let ode = Ode::new(&modes, *noise, policy).tolerance(rtol, 0.0);
                b.iter(|| ode.solve(&times).unwrap());
            });
        }
    }
    group.bench_function("volterra/figure_1b", |b| {
        let equation = Volterra::new(&modes, &cauchy, &figures[1].2);
        b.iter(|| equation.solve(&times).unwrap());
    });
    for delta in [0.1, 2.0, 1e2, 1e4, 1e6] {
        let momentum = Momentum::average(Memory::Delta(delta)).unwrap();
        group.bench_function(BenchmarkId::new("momentum/figure_1b", delta), |b| {
            let ode = Ode::new(&modes, &cauchy, &figures[1].2).with_momentum(momentum);
            b.iter(|| ode.solve(&times).unwrap());
        });
    }
    for (name, noise, policy) in &figures {
        let step = Step::new(*noise).with_rule(Rule::ByValue).unwrap();
        group.bench_function(BenchmarkId::new("by_value", *name), |b| {
            b.iter(|| Ode::new(&modes, &step, policy).solve(&times).unwrap());
        });
    }
    let million = power_law(1_000_000);
    let small = million.compress(1e-10).unwrap();
    let policy = constant(0.6, 0.4);
    for (name, modes) in [("whole", &million), ("compressed", &small)] {
        group.bench_function(BenchmarkId::new("million", name), |b| {
            b.iter(|| Ode::new(modes, &cauchy, &policy).solve(&times).unwrap());
        });
    }
    let long = log_times(0.1, 1e4, 301).unwrap();
    group.bench_function("long", |b| {
        b.iter(|| Ode::new(&modes, &gaussian, &figures[0].2).solve(&long).unwrap());
    });
    group.finish();
}

criterion_group!(benches, ode);
criterion_main!(benches);
