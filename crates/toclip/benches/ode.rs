//! The price of a risk curve: figure 1b, the same with a million eigenvalues, and the other rules,
//! batches, momentum and the best threshold. `cargo bench -p toclip --bench ode -- rules` runs only
//! the latter, each from the first evaluation: no table is kept from one run to the next.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::sync::Arc;
use toclip::dynamics::{Ode, Volterra, linear_times, log_times};
use toclip::noise::{Family, Gaussian, Laplace, Noise, Rademacher, StudentT};
use toclip::policy::{MaxCcc, OpenLoop, Policy, Schedule};
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::{Batch, Memory, Momentum, Rule, Smooth, Step};

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

const RULES: [Rule; 6] = [
    Rule::Clip,
    Rule::Skip,
    Rule::Normalise,
    Rule::Smooth(Smooth::Tanh),
    Rule::Smooth(Smooth::Root),
    Rule::Optimal,
];

/// A curve and its inputs.
struct Curve {
    name: String,
    step: Step<'static>,
    modes: Modes,
    eta: f64,
    /// The threshold; `None` for the best one at every risk.
    c: Option<f64>,
    momentum: Option<Momentum>,
    end: f64,
}

impl Curve {
    /// As `experiments/batches.toml` and `experiments/batches-max-ccc.toml` have them.
    fn of_experiments() -> [Self; 2] {
        let step = |batch| {
            let noise = Arc::new(StudentT::new(2.2, 0.5).unwrap());
            Step::new(noise).with_batch(Batch::mean(batch).unwrap()).unwrap()
        };
        let spectrum = Spectrum::power_law(1500, 0.3).unwrap();
        let modes = Modes::new(&spectrum, &Start::Uniform { norm: 1.0 }).unwrap();
        let (c, momentum) = (Some(0.6), None);
        let batches = Curve {
            name: "batches.toml".into(),
            step: step(32),
            modes,
            eta: 3.0,
            c,
            momentum,
            end: 5.0,
        };
        let name = "batches-max-ccc.toml".into();
        let modes = power_law(500);
        [batches, Curve { name, step: step(16), modes, eta: 0.6, c: None, momentum, end: 15.0 }]
    }

    /// Every rule under every noise, for one sample and for batches, at a fixed threshold and at the
    /// best.
    fn of_rules() -> Vec<Self> {
        let noises: [(&str, Family); 4] = [
            ("gaussian", Gaussian::new(0.5).unwrap().into()),
            ("laplace", Laplace::new(0.5).unwrap().into()),
            ("student_t", StudentT::new(2.2, 0.5).unwrap().into()),
            ("rademacher", Rademacher::from_sigma(0.8, 0.2).unwrap().into()),
        ];
        let mut curves = Vec::new();
        for (noise_name, noise) in noises {
            for batch in [1, 16] {
                for rule in RULES {
                    let step = Step::new(Arc::new(noise.clone()) as Arc<dyn Noise>);
                    let step = step.with_batch(Batch::mean(batch).unwrap()).unwrap();
                    // The optimal rule is for one residual.
                    let Ok(step) = step.with_rule(rule.clone()) else { continue };
                    let modes = power_law(500);
                    for (kind, c) in [("fixed", Some(0.9)), ("max_ccc", None)] {
                        let name = format!("{}/{noise_name}/B={batch}/{kind}", rule.name());
                        let (step, modes) = (step.clone(), modes.clone());
                        curves.push(Curve {
                            name,
                            step,
                            modes,
                            eta: 0.6,
                            c,
                            momentum: None,
                            end: 15.0,
                        });
                    }
                    let momentum = Some(Momentum::average(Memory::Delta(2.0)).unwrap());
                    let name = format!("{}/{noise_name}/B={batch}/momentum", rule.name());
                    curves.push(Curve {
                        name,
                        step,
                        modes,
                        eta: 0.6,
                        c: Some(0.9),
                        momentum,
                        end: 15.0,
                    });
                }
            }
        }
        curves
    }

    /// The curve, with a policy and tables of its own.
    fn solve(&self, times: &[f64]) -> f64 {
        let step = &self.step;
        let policy: Box<dyn Policy> = match self.c {
            Some(c) => Box::new(constant(self.eta, c)),
            None => Box::new(MaxCcc::new(Schedule::constant(self.eta).unwrap(), step.clone())),
        };
        let mut ode = Ode::new(&self.modes, step, &*policy);
        if let Some(momentum) = self.momentum {
            ode = ode.with_momentum(momentum);
        }
        ode.solve(times).unwrap().risk[times.len() - 1]
    }
}

fn rules(c: &mut Criterion) {
    let mut group = c.benchmark_group("rules");
    group.sample_size(10);
    for curve in Curve::of_experiments().into_iter().chain(Curve::of_rules()) {
        let times = linear_times(curve.end, 301).unwrap();
        group.bench_function(&curve.name, |b| b.iter(|| curve.solve(&times)));
    }
    group.finish();
}

criterion_group!(benches, ode, rules);
criterion_main!(benches);
