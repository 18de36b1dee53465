//! C-SGD and C-HSGD against the ODE and exact recursions, and against plain SGD at another rate.

use super::{average, constant, isotropic, methods, power_law, torch};
use rayon::prelude::*;
use std::sync::Arc;
use toclip::dynamics::{Hsgd, Ode, Scheme, Sgd, Simulator, Trajectory, linear_times};
use toclip::noise::{Gaussian, Laplace, Noise, Rademacher, StudentT};
use toclip::spectrum::Modes;
use toclip::{Batch, Memory, Momentum, OnSkip, Rule, Step};

/// The largest relative difference of two curves.
fn largest_gap(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max)
}

/// The exact mean of $R$ of unclipped SGD with PyTorch's momentum on isotropic Gaussian data in
/// `n` dimensions, after each of the first `steps` steps.
fn exact_means(n: f64, beta: f64, rate: f64, sigma: f64, steps: usize) -> Vec<f64> {
    let (mut a, mut b, mut y) = (1.0 / n, 0.0, 0.0);
    let mut path = Vec::new();
    for _ in 0..steps {
        let square = 2.0 * a + n * a + sigma * sigma;
        let cross = beta * b + a;
        y = beta * beta * y + 2.0 * beta * b + square;
        b = cross - rate * y;
        a += rate * rate * y - 2.0 * rate * cross;
        path.push(0.5 * n * a);
    }
    path
}

#[test]
fn a_fixed_beta_only_rescales_the_rate_up_to_one_over_d() {
    // PyTorch's momentum at lr against plain SGD at lr/(1-β), by the largest relative difference
    // of R: `docs/momentum.md` has these numbers. It is κ β/((1-β)d) of the iteration and
    // κ/((1-β)d) of the ODE, with κ about a half.
    let (eta, sigma) = (0.6, 0.5);
    let noise = Gaussian::new(sigma).unwrap();
    let times = linear_times(5.0, 51).unwrap();
    let mut scaled = [Vec::new(), Vec::new(), Vec::new()];
    for beta in [0.5, 0.9, 0.99] {
        for n in [1000, 4000, 16_000] {
            let d = n as f64;
            let ode = |c: f64| {
                let modes = isotropic(n);
                let (slow, fast) = (constant(eta * (1.0 - beta), c), constant(eta, c));
                let with = methods::momentum_ode(&modes, &noise, &slow, torch(beta));
                let plain = methods::ode(&modes, &noise, &fast).solve(&times).unwrap();
                largest_gap(&with.solve(&times).unwrap().risk, &plain.risk)
            };
            let exact =
                |beta: f64| exact_means(d, beta, eta * (1.0 - beta) / d, sigma, 5 * n as usize);
            let iteration = largest_gap(&exact(beta), &exact(0.0));
            let [clipped, unclipped] = [0.8, f64::INFINITY].map(ode);
            let percent = [iteration, unclipped, clipped].map(|gap| 100.0 * gap);
            println!("beta {beta}, d {n}: iteration, ODE, ODE clipped {percent:.3?} %");
            let short = (1.0 - beta) * d;
            scaled[0].push(iteration * short / beta);
            scaled[1].push(unclipped * short);
            scaled[2].push(clipped * short);
        }
    }
    let range = |values: &[f64]| {
        values.iter().fold((f64::MAX, 0.0), |(a, b): (f64, f64), x| (a.min(*x), b.max(*x)))
    };
    let ranges = [0, 1, 2].map(|k| range(&scaled[k]));
    println!("gap times (1-beta) d, over beta for the iteration: {ranges:.3?}");
    for (least, most) in ranges {
        assert!(most / least < 1.25 && most < 0.6 && least > 0.4, "{ranges:?}");
    }
}

/// What a comparison is made of.
struct Case {
    noise: Arc<dyn Noise>,
    rule: Rule,
    momentum: Momentum,
    exponent: f64,
    eta: f64,
    c: f64,
}

impl Case {
    fn modes(&self, d: f64) -> Modes {
        // Tr K of j^-α.
        let n = (d * (1.0 - self.exponent)).powf(1.0 / (1.0 - self.exponent)).ceil() as u64;
        power_law(n, self.exponent)
    }

    /// The mean of $R$ less the ODE, and its standard error, at each time.
    fn gaps(&self, d: f64, runs: u64, times: &[f64]) -> Vec<[f64; 2]> {
        let modes = self.modes(d);
        let policy = constant(self.eta, self.c);
        let step = Step::from(Arc::clone(&self.noise)).with_rule(self.rule.clone()).unwrap();
        let problem = methods::with_momentum(&modes, &step, &policy, self.momentum);
        let theory = Ode::new(&problem).unwrap().solve(times).unwrap();
        let sgd = Sgd::new(&problem).unwrap();
        mean_gaps(&sgd, runs, times, &theory.risk)
    }

    fn describe(&self) -> String {
        let Case { noise, rule, momentum, exponent, .. } = self;
        format!("{} noise, {rule:?}, {momentum:?}, exponent {exponent}", noise.describe())
    }

    /// Within four standard errors at `d`, or a gap that falls by 2.5 from `d` to `4d`.
    fn check(&self, d: f64, runs: u64, times: &[f64]) {
        let gaps = self.gaps(d, runs, times);
        let ratios: Vec<f64> = gaps.iter().map(|[gap, error]| gap / error).collect();
        println!("{}: {ratios:.1?} standard errors", self.describe());
        if ratios.iter().all(|r| r.abs() < 4.0) {
            return;
        }
        let larger = self.gaps(4.0 * d, runs, times);
        for ([gap, error], [later, _]) in gaps.iter().zip(&larger) {
            let falls = gap.abs() < 4.0 * error || gap.abs() >= 2.5 * later.abs();
            assert!(falls, "{}: {gaps:?}, at four times the dimension {larger:?}", self.describe());
        }
    }
}

fn mean_gaps(simulator: &dyn Simulator, runs: u64, times: &[f64], risk: &[f64]) -> Vec<[f64; 2]> {
    let paths: Vec<Trajectory> =
        (0..runs).into_par_iter().map(|index| simulator.run(2026, index, times)).collect();
    let n = runs as f64;
    risk.iter()
        .enumerate()
        .map(|(k, exact)| {
            let values: Vec<f64> = paths.iter().map(|p| p.risk[k]).collect();
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
            [mean - exact, (variance / n).sqrt()]
        })
        .collect()
}

fn noises() -> [(Arc<dyn Noise>, f64); 4] {
    [
        (Arc::new(Gaussian::new(0.5).unwrap()), 1.1),
        (Arc::new(Laplace::new(0.5).unwrap()), 1.0),
        (Arc::new(StudentT::new(2.5, 0.4).unwrap()), 0.9),
        (Arc::new(Rademacher::from_sigma(0.8, 0.2).unwrap()), 1.0),
    ]
}

/// The three ways: clip, skip with the step not made, skip with a zero gradient.
fn ways() -> [(Rule, OnSkip); 3] {
    [
        (Rule::Clip, OnSkip::NotMade),
        (Rule::Skip, OnSkip::NotMade),
        (Rule::Skip, OnSkip::ZeroGradient),
    ]
}

#[test]
fn sgd_follows_the_ode() {
    // 12 isotropic cases at three times and 4 anisotropic ones at two, one for each noise, and four
    // standard errors: false alarm below 0.3% (and a false alarm would still have to grow with d).
    let times = [0.5, 1.0, 1.5];
    let memories = [average(0.5), average(2.0), torch(0.9)];
    for (k, (noise, c)) in noises().into_iter().enumerate() {
        for (j, (rule, on_skip)) in ways().into_iter().enumerate() {
            let momentum = memories[(j + k) % 3].on_skip(on_skip);
            let eta = 0.7 / momentum.rate_factor(1000.0);
            let case = |exponent| Case {
                noise: Arc::clone(&noise),
                rule: rule.clone(),
                momentum,
                exponent,
                eta,
                c,
            };
            case(0.0).check(1000.0, 200, &times);
            if j == k % 3 {
                case(0.2).check(1000.0, 200, &times[..2]);
            }
        }
    }
}

#[test]
#[ignore = "long: continuous integration runs it in release mode"]
fn sgd_follows_the_ode_everywhere() {
    // 72 cases at three times each: false alarm 1.4%, were it not for the second chance at 4d.
    let times = [1.0, 2.5, 5.0];
    for (noise, c) in noises() {
        for (rule, on_skip) in ways() {
            for momentum in [average(0.5), average(2.0), torch(0.9)] {
                for exponent in [0.0, 0.2] {
                    let momentum = momentum.on_skip(on_skip);
                    let eta = 0.7 / momentum.rate_factor(1000.0);
                    let (noise, rule) = (Arc::clone(&noise), rule.clone());
                    Case { noise, rule, momentum, exponent, eta, c }.check(1000.0, 200, &times);
                }
            }
        }
    }
}

#[test]
fn batches_follow_the_ode() {
    // Three cases at two times and four standard errors: false alarm 4e-4.
    let noise: Arc<dyn Noise> = Arc::new(StudentT::new(2.5, 0.4).unwrap());
    let modes = isotropic(500);
    let times = [0.75, 1.5];
    let policy = constant(0.9, 1.2);
    for (batch, rule) in [
        (Batch::mean(4).unwrap(), Rule::Clip),
        (Batch::mean(4).unwrap(), Rule::Skip),
        (Batch::per_sample(4).unwrap(), Rule::Skip),
    ] {
        let step =
            Step::from(Arc::clone(&noise)).with_batch(batch).unwrap().with_rule(rule).unwrap();
        let theory =
            methods::momentum_ode(&modes, &step, &policy, average(2.0)).solve(&times).unwrap();
        let problem = methods::with_momentum(&modes, &step, &policy, average(2.0));
        let gaps = mean_gaps(&Sgd::new(&problem).unwrap(), 200, &times, &theory.risk);
        let ratios: Vec<f64> = gaps.iter().map(|[gap, error]| gap / error).collect();
        println!("{batch}: {ratios:.1?} standard errors");
        assert!(ratios.iter().all(|r| r.abs() < 4.0), "{batch}: {gaps:?}");
    }
}

#[test]
fn unclipped_means_follow_their_exact_recursion() {
    // For Gaussian data a, b, y of every coordinate obey a recursion that is exact in every
    // dimension, the undampened first gradient included. 10 000 runs, 3 conventions, R and D
    // within five standard errors: false alarm 4e-6.
    let modes = power_law(13, 0.7);
    let (d, sigma, steps, eta) = (modes.dim(), 0.5, 15, 0.8);
    let dampened = torch(0.8).with_dampening(0.6).unwrap();
    for momentum in [average(0.9), torch(0.7), dampened] {
        let eta = eta / momentum.rate_factor(d);
        let rate = eta / d;
        let beta = momentum.beta(d);
        let mut state: Vec<[f64; 4]> =
            modes.modes().iter().map(|m| [m.lambda, 2.0 * m.energy, 0.0, 0.0]).collect();
        for k in 0..steps {
            let gain = match (momentum == average(0.9), k) {
                (true, _) => 1.0 - beta,
                (false, 0) => 1.0,
                (false, _) => {
                    if momentum == dampened {
                        0.4
                    } else {
                        1.0
                    }
                }
            };
            let second_moment = state.iter().map(|s| s[0] * s[1]).sum::<f64>() + sigma * sigma;
            for [lambda, a, b, y] in &mut state {
                let square = *lambda * (2.0 * *lambda * *a + second_moment);
                let cross = beta * *b + gain * *lambda * *a;
                *y = beta * beta * *y + 2.0 * beta * gain * *lambda * *b + gain * gain * square;
                *b = cross - rate * *y;
                *a += rate * rate * *y - 2.0 * rate * cross;
            }
        }
        let risk: f64 = state.iter().map(|s| 0.5 * s[0] * s[1]).sum();
        let noise: Arc<dyn Noise> = Arc::new(Gaussian::new(sigma).unwrap());
        let policy = constant(eta, f64::INFINITY);
        let sgd = Sgd::new(&methods::with_momentum(&modes, &noise, &policy, momentum)).unwrap();
        let [gap, error] = mean_gaps(&sgd, 10_000, &[f64::from(steps) / d], &[risk])[0];
        println!("{momentum}: {:.2} standard errors of {:.3}%", gap / error, 100.0 * error / risk);
        assert!(gap.abs() < 5.0 * error, "{momentum}: {gap} {error}");
    }
}

#[test]
fn a_first_gradient_that_is_not_dampened_is_seen() {
    // Dampening 0.95 makes the first gradient twenty times as large as the others. The ODE knows:
    // three times, four standard errors, false alarm 2e-4; without the first gradient it would be
    // off by more than ten.
    let noise: Arc<dyn Noise> = Arc::new(Gaussian::new(0.5).unwrap());
    let momentum = torch(0.9).with_dampening(0.95).unwrap();
    let case = Case { noise, rule: Rule::Clip, momentum, exponent: 0.0, eta: 0.7 / 0.5, c: 1.1 };
    let times = [0.2, 0.5, 1.0];
    let gaps = case.gaps(1000.0, 400, &times);
    println!("{gaps:?}");
    assert!(gaps.iter().all(|[gap, error]| gap.abs() < 4.0 * error), "{gaps:?}");
    let modes = case.modes(1000.0);
    let even = Momentum::average(Memory::Beta(0.9)).unwrap();
    let risk = |momentum, eta| {
        let policy = constant(eta, 1.1);
        methods::momentum_ode(&modes, &case.noise, &policy, momentum).solve(&times).unwrap().risk
    };
    let (first, without) = (risk(momentum, 1.4), risk(even, 0.7));
    for k in 0..3 {
        assert!((first[k] - without[k]).abs() > 10.0 * gaps[k][1], "the test can tell");
    }
}

#[test]
fn runs_do_not_depend_on_times_or_instructions() {
    use toclip::dynamics::InstructionSet;
    let modes = power_law(50, 0.3);
    let noise: Arc<dyn Noise> = Arc::new(StudentT::new(1.0, 0.5).unwrap());
    for (batch, rule) in [(1, Rule::Clip), (1, Rule::Skip), (3, Rule::Skip)] {
        let step = Step::from(Arc::clone(&noise)).with_batch(Batch::mean(batch).unwrap()).unwrap();
        let step = step.with_rule(rule).unwrap();
        let problem = methods::with_momentum(&modes, &step, &constant(0.5, 0.8), average(3.0));
        let sgd = Sgd::new(&problem).unwrap();
        let path = sgd.run(7, 3, &[0.5, 1.0, 4.0]);
        assert_eq!(path.risk[2], sgd.run(7, 3, &[4.0]).risk[0]);
        assert_ne!(path.risk[2], sgd.run(7, 4, &[4.0]).risk[0]);
        for set in InstructionSet::available() {
            let same = sgd.clone().with_instruction_set(set).unwrap();
            assert_eq!(same.run(7, 3, &[0.5, 1.0, 4.0]), path, "{set:?}");
        }
    }
}

#[test]
fn hsgd_follows_the_ode() {
    // Six cases at two times and four standard errors: false alarm 8e-4.
    let times = [1.0, 2.0];
    let modes = power_law(400, 0.2);
    let noise: Arc<dyn Noise> = Arc::new(Laplace::new(0.5).unwrap());
    let policy = constant(0.7, 1.0);
    for delta in [0.5, 5.0, 300.0] {
        for rule in [Rule::Clip, Rule::Skip] {
            let step = Step::from(Arc::clone(&noise)).with_rule(rule).unwrap();
            let problem = methods::with_momentum(&modes, &step, &policy, average(delta));
            let theory = Ode::new(&problem).unwrap().solve(&times).unwrap();
            let hsgd = Hsgd::new(&problem).unwrap();
            let gaps = mean_gaps(&hsgd, 200, &times, &theory.risk);
            let ratios: Vec<f64> = gaps.iter().map(|[gap, error]| gap / error).collect();
            println!("delta {delta}: {ratios:.1?} standard errors");
            assert!(ratios.iter().all(|r| r.abs() < 4.0), "{delta}: {gaps:?}");
            assert_eq!(hsgd.run(1, 5, &times), hsgd.run(1, 5, &times));
        }
    }
}

#[test]
fn the_schemes_of_hsgd_agree() {
    // The same mean by another discretisation: the difference of two means of 600 runs within five
    // of its standard errors, false alarm 6e-7, and the same as with a tenth of the step.
    let modes = power_law(60, 0.2);
    let noise: Arc<dyn Noise> = Arc::new(Gaussian::new(0.5).unwrap());
    let problem = methods::with_momentum(&modes, &noise, &constant(0.7, 1.0), average(3.0));
    let hsgd = Hsgd::new(&problem).unwrap();
    let euler = hsgd.clone().with_scheme(Scheme::EulerMaruyama).with_time_step(0.002).unwrap();
    let mean = |simulator: &Hsgd| mean_gaps(simulator, 600, &[2.0], &[0.0])[0];
    let ([a, e], [b, f]) = (mean(&hsgd), mean(&euler));
    assert!((a - b).abs() < 5.0 * e.hypot(f), "{a} {b} {e} {f}");
}
