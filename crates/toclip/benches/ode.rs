//! The price of a risk curve: figure 1b, the same with a million eigenvalues, and the other rules,
//! batches, momentum and the best threshold. `cargo bench -p toclip --bench ode -- rules` runs only
//! the latter, each from the first evaluation: no table is kept from one run to the next.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::sync::Arc;
use toclip::dynamics::{Ode, Trajectory, Volterra, linear_times, log_times};
use toclip::noise::{Family, Gaussian, Laplace, Noise, Rademacher, StudentT};
use toclip::policy::{MaxCcc, OpenLoop, Policy, Schedule};
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::{Batch, Memory, Momentum, Optimizer, Problem, Rule, Smooth, Step};

fn power_law(dim: u64) -> Modes {
    Modes::new(&Spectrum::power_law(dim, 0.2).unwrap(), &Start::Uniform { norm: 1.0 }).unwrap()
}

fn constant(eta: f64, c: f64) -> OpenLoop {
    OpenLoop::constant(eta, c).unwrap()
}

fn solve(problem: &Problem, times: &[f64]) -> Trajectory {
    Ode::new(problem).unwrap().solve(times).unwrap()
}

fn ode(c: &mut Criterion) {
    let mut group = c.benchmark_group("ode");
    group.sample_size(20);
    let times = linear_times(15.0, 301).unwrap();
    let cauchy = StudentT::new(1.0, 0.5).unwrap();
    let gaussian = Gaussian::new(0.5).unwrap();
    let figure_1a = Problem::new(power_law(500), gaussian, constant(0.7, 0.9)).unwrap();
    let figure_1b = figure_1a.with_step(cauchy).unwrap();
    let figure_1b = figure_1b.with_policy(constant(0.6, 0.4)).unwrap();
    let figures = [("figure_1a", &figure_1a), ("figure_1b", &figure_1b)];
    for (name, problem) in figures {
        for rtol in [1e-8, 1e-12] {
            group.bench_function(BenchmarkId::new(name, format!("{rtol:e}")), |b| {
                let ode = Ode::new(problem).unwrap().tolerance(rtol, 0.0);
                b.iter(|| ode.solve(&times).unwrap());
            });
        }
    }
    group.bench_function("volterra/figure_1b", |b| {
        let equation = Volterra::new(&figure_1b).unwrap();
        b.iter(|| equation.solve(&times).unwrap());
    });
    for delta in [0.1, 2.0, 1e2, 1e4, 1e6] {
        let momentum = Momentum::average(Memory::Delta(delta)).unwrap();
        group.bench_function(BenchmarkId::new("momentum/figure_1b", delta), |b| {
            let ode = Ode::new(&figure_1b.clone().with_optimizer(momentum).unwrap()).unwrap();
            b.iter(|| ode.solve(&times).unwrap());
        });
    }
    for (name, problem) in figures {
        let step = problem.step().clone().with_rule(Rule::ByValue).unwrap();
        let problem = problem.with_step(step).unwrap();
        group.bench_function(BenchmarkId::new("by_value", name), |b| {
            b.iter(|| solve(&problem, &times));
        });
    }
    let million = power_law(1_000_000);
    let small = million.compress(1e-10).unwrap();
    for (name, modes) in [("whole", million), ("compressed", small)] {
        let problem = figure_1b.with_modes(modes).unwrap();
        group.bench_function(BenchmarkId::new("million", name), |b| {
            b.iter(|| solve(&problem, &times));
        });
    }
    let long = log_times(0.1, 1e4, 301).unwrap();
    group.bench_function("long", |b| {
        b.iter(|| solve(&figure_1a, &long));
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
    modes: Arc<Modes>,
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
            modes: modes.into(),
            eta: 3.0,
            c,
            momentum,
            end: 5.0,
        };
        let name = "batches-max-ccc.toml".into();
        let modes = power_law(500).into();
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
                    let modes = Arc::new(power_law(500));
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
        let policy: Arc<dyn Policy> = match self.c {
            Some(c) => Arc::new(constant(self.eta, c)),
            None => Arc::new(MaxCcc::new(Schedule::constant(self.eta).unwrap(), step.clone())),
        };
        let problem = Problem::new(self.modes.clone(), step, policy).unwrap();
        let optimizer = self.momentum.map_or(Optimizer::Sgd, Optimizer::from);
        let problem = problem.with_optimizer(optimizer).unwrap();
        solve(&problem, times).risk[times.len() - 1]
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
