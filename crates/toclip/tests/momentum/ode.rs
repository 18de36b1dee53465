//! The ODE against other integrators and exact solutions, its limits, and its reports.

use super::{average, constant, isotropic, methods, power_law};
use std::sync::Arc;
use toclip::criteria::momentum_limits;
use toclip::dynamics::{Ode, Sgd, Stop, Trajectory, linear_times};
use toclip::noise::{Gaussian, Laplace, NoNoise, Noise, Rademacher, StudentT};
use toclip::policy::{Compensation, OpenLoop, Policy, Proportional, Schedule, Shape};
use toclip::spectrum::Modes;
use toclip::{OnSkip, Rule, Step};

/// The largest relative difference of $R$ and $D$.
fn difference(path: &Trajectory, exact: &[[f64; 2]]) -> f64 {
    assert_eq!(path.risk.len(), exact.len());
    let both = path.risk.iter().zip(&path.distance).zip(exact);
    both.map(|((r, d), exact)| (r / exact[0] - 1.0).abs().max((d / exact[1] - 1.0).abs()))
        .fold(0.0, f64::max)
}

/// The system as it is written down, by the classical method of Runge and Kutta with tiny steps that
/// end on `times`.
fn tiny_steps(
    modes: &Modes,
    step: &Step<'_>,
    policy: &dyn Policy,
    delta: f64,
    made: impl Fn(f64, f64) -> f64,
    times: &[f64],
    h: f64,
) -> Vec<[f64; 2]> {
    let m = modes.modes();
    let (n, d) = (m.len(), modes.dim());
    let slope = |t: f64, u: &[f64]| {
        let risk: f64 = (0..n).map(|i| 0.5 * m[i].lambda * u[i]).sum();
        let control = policy.at(t, risk);
        let (x, eta) = (step.moments(risk, control.c), control.eta);
        let p = made(risk, control.c);
        let mut k = vec![0.0; 3 * n];
        for i in 0..n {
            let (a, b, y, lambda) = (u[i], u[n + i], u[2 * n + i], m[i].lambda);
            k[i] = -2.0 * eta * p * b;
            k[n + i] = -eta * p * y + delta * (x.mu * lambda * a - p * b);
            k[2 * n + i] = 2.0 * delta * (x.mu * lambda * b - p * y)
                + delta * delta * lambda * m[i].count * x.m2 / d;
        }
        k
    };
    let mut u: Vec<f64> = m.iter().map(|m| 2.0 * m.energy).chain(vec![0.0; 2 * n]).collect();
    let mut before = 0.0;
    let mut path = Vec::new();
    for &time in times {
        let steps = ((time - before) / h).ceil().max(1.0);
        let h = (time - before) / steps;
        for step in 0..steps as u32 {
            // From the left of a jump of the policy at the end.
            let at = |share: f64| (before + h * (f64::from(step) + share)).min(time.next_down());
            let moved = |k: &[f64], share: f64| -> Vec<f64> {
                u.iter().zip(k).map(|(u, k)| u + share * h * k).collect()
            };
            let k1 = slope(at(0.0), &u);
            let k2 = slope(at(0.5), &moved(&k1, 0.5));
            let k3 = slope(at(0.5), &moved(&k2, 0.5));
            let k4 = slope(at(1.0), &moved(&k3, 1.0));
            for i in 0..3 * n {
                u[i] += h / 6.0 * (k1[i] + 2.0 * (k2[i] + k3[i]) + k4[i]);
            }
        }
        before = time;
        let risk = (0..n).map(|i| 0.5 * m[i].lambda * u[i]).sum();
        path.push([risk, u[..n].iter().sum()]);
    }
    path
}

#[test]
fn the_ode_is_what_tiny_steps_give() {
    let modes = power_law(9, 0.6);
    let laplace = Laplace::new(0.5).unwrap();
    let student = StudentT::new(2.5, 0.4).unwrap();
    let times = linear_times(6.0, 25).unwrap();
    let always = |_: f64, _: f64| 1.0;
    for delta in [0.3, 2.0, 12.0] {
        let policy = constant(0.7, 0.8);
        let ode = methods::momentum_ode(&modes, &student, &policy, average(delta));
        let exact =
            tiny_steps(&modes, &Step::new(student.clone()), &policy, delta, always, &times, 1e-3);
        let path = ode.solve(&times).unwrap();
        assert!(difference(&path, &exact) < 3e-9, "{delta}: {}", difference(&path, &exact));
        let path = ode.tolerance(1e-12, 0.0).solve(&times).unwrap();
        assert!(difference(&path, &exact) < 2e-11, "{delta}: {}", difference(&path, &exact));

        // Steps that are skipped, not made: the share p of those that are is not 1.
        let skip = Step::new(laplace).with_rule(Rule::Skip).unwrap();
        let policy = constant(0.7, 1.5);
        let share = |r: f64, c: f64| laplace.clipped(r, c).mu;
        let made = tiny_steps(&modes, &skip, &policy, delta, share, &times, 1e-3);
        let zero = tiny_steps(&modes, &skip, &policy, delta, always, &times, 1e-3);
        let path = |on_skip| {
            let momentum = average(delta).on_skip(on_skip);
            methods::momentum_ode(&modes, &skip, &policy, momentum).solve(&times).unwrap()
        };
        assert!(difference(&path(OnSkip::NotMade), &made) < 3e-9);
        assert!(difference(&path(OnSkip::ZeroGradient), &zero) < 3e-9);
        assert!(difference(&path(OnSkip::ZeroGradient), &made) > 1e-4, "the test can tell");
    }
}

#[test]
fn policies_that_jump_and_follow_the_risk_are_followed() {
    let modes = power_law(7, 0.5);
    let noise: Arc<dyn Noise> = Arc::new(Gaussian::new(0.4).unwrap());
    let times = linear_times(6.0, 25).unwrap();
    let always = |_: f64, _: f64| 1.0;
    // Jumps at times that are saved, so that tiny steps end there.
    let shape = Shape::Step { value: 0.8, factor: 0.3, at: vec![1.5, 3.0], warmup: 0.5 };
    let jumping = OpenLoop::new(Schedule::new(shape).unwrap(), Schedule::constant(0.7).unwrap());
    let eta = Schedule::constant(0.5).unwrap();
    let following = Proportional::new(0.8, eta, noise.clone(), Compensation::Exact).unwrap();
    let policies: [Arc<dyn Policy>; 2] = [Arc::new(jumping), Arc::new(following)];
    for policy in policies {
        let exact =
            tiny_steps(&modes, &Step::new(noise.clone()), &policy, 5.0, always, &times, 1e-3);
        let ode = methods::momentum_ode(&modes, &noise, &policy, average(5.0));
        let path = ode.solve(&times).unwrap();
        assert!(difference(&path, &exact) < 3e-9, "{policy:?}: {}", difference(&path, &exact));
    }
}

/// $e^{At}$ of a 4 × 4 matrix by squaring.
fn exponential(a: [[f64; 4]; 4], t: f64) -> [[f64; 4]; 4] {
    let product = |x: &[[f64; 4]; 4], y: &[[f64; 4]; 4]| {
        let mut z = [[0.0; 4]; 4];
        for i in 0..4 {
            for j in 0..4 {
                z[i][j] = (0..4).map(|k| x[i][k] * y[k][j]).sum();
            }
        }
        z
    };
    let size = a.iter().flatten().map(|x| x.abs()).fold(0.0, f64::max) * t;
    let squarings = (size / 0.01).log2().ceil().max(0.0) as i32;
    let h = t / 2f64.powi(squarings);
    // E = e^{Ah} - 1, which keeps its digits: (1 + E)² - 1 = 2E + E².
    let (mut e, mut term) = ([[0.0; 4]; 4], [[0.0; 4]; 4]);
    for i in 0..4 {
        term[i][i] = 1.0;
    }
    for n in 1..=10 {
        term = product(&term, &a.map(|row| row.map(|x| x * h / f64::from(n))));
        for (sum, term) in e.iter_mut().flatten().zip(term.iter().flatten()) {
            *sum += term;
        }
    }
    for _ in 0..squarings {
        let square = product(&e, &e);
        for (x, y) in e.iter_mut().flatten().zip(square.iter().flatten()) {
            *x = 2.0 * *x + y;
        }
    }
    for i in 0..4 {
        e[i][i] += 1.0;
    }
    e
}

#[test]
fn one_mode_without_clipping_has_an_exact_solution_for_every_delta() {
    // m2 = a + σ² makes the system linear: (a, b, y, 1) by a matrix exponential.
    let (eta, sigma) = (0.8, 0.5);
    let modes = isotropic(300);
    let noise = Gaussian::new(sigma).unwrap();
    let policy = constant(eta, f64::INFINITY);
    let times = [1e-6, 1e-4, 0.01, 0.3, 1.0, 5.0, 20.0];
    for delta in [0.1, 0.5, 3.2, 40.0, 1e3, 1e4, 1e5, 1e6] {
        let heat = delta * delta / 1.0;
        let system = [
            [0.0, -2.0 * eta, 0.0, 0.0],
            [delta, -delta, -eta, 0.0],
            [heat, 2.0 * delta, -2.0 * delta, heat * sigma * sigma],
            [0.0; 4],
        ];
        let exact: Vec<[f64; 2]> = times
            .iter()
            .map(|t| {
                let row = exponential(system, *t)[0];
                let a = row[0] + row[3];
                [0.5 * a, a]
            })
            .collect();
        for (rtol, allowed) in [(1e-8, 1e-8), (1e-11, 3e-11)] {
            let ode = methods::momentum_ode(&modes, &noise, &policy, average(delta));
            let path = ode.tolerance(rtol, 0.0).solve(&times).unwrap();
            let off = difference(&path, &exact);
            assert!(off < allowed, "delta {delta}, tolerance {rtol:e}: {off:e}");
        }
    }
}

#[test]
fn random_problems_are_within_their_tolerance() {
    // 60 problems: each at 1e-6 and 1e-8 against 1e-11.
    let mut worst: [f64; 2] = [0.0; 2];
    for k in 0..60 {
        let unit = |salt: f64| (f64::from(k) * 0.618_034 + salt * 0.754_878).fract();
        let modes = power_law(20, 1.5 * unit(1.0));
        let noise: Arc<dyn Noise> = match k % 4 {
            0 => Arc::new(Gaussian::new(0.1 + unit(2.0)).unwrap()),
            1 => Arc::new(Laplace::new(0.1 + unit(2.0)).unwrap()),
            2 => Arc::new(StudentT::new(2.5, 0.1 + unit(2.0)).unwrap()),
            _ => Arc::new(Rademacher::new(0.5 + unit(2.0), 0.2).unwrap()),
        };
        let rule = if k % 3 == 0 { Rule::Skip } else { Rule::Clip };
        let step = Step::new(noise).with_rule(rule).unwrap();
        let policy = constant(0.1 + unit(3.0), 0.3 + unit(4.0));
        let momentum = average(10f64.powf(-1.0 + 7.0 * unit(5.0)));
        let times = linear_times(10.0, 41).unwrap();
        let solve = |rtol| {
            let ode = methods::momentum_ode(&modes, &step, &policy, momentum);
            ode.tolerance(rtol, 0.0).solve(&times).unwrap()
        };
        let exact = solve(1e-11);
        let exact: Vec<_> = exact.risk.iter().zip(&exact.distance).map(|(r, d)| [*r, *d]).collect();
        for (worst, rtol) in worst.iter_mut().zip([1e-6, 1e-8]) {
            let path = solve(rtol);
            if path.stop == Stop::Finished {
                *worst = worst.max(difference(&path, &exact) / rtol);
            }
        }
    }
    println!("worst errors over tolerance {worst:?}");
    assert!(worst.iter().all(|w| *w < 1.0), "{worst:?}");
}

#[test]
fn without_memory_it_is_sgd() {
    // The gap falls as 1/δ.
    let noise = StudentT::new(2.5, 0.4).unwrap();
    let times = linear_times(8.0, 17).unwrap();
    for rule in [Rule::Clip, Rule::Skip, Rule::Normalise] {
        let modes = power_law(40, 0.3);
        let step = Step::new(noise.clone()).with_rule(rule).unwrap();
        let policy = constant(0.5, 0.9);
        let plain = methods::ode(&modes, &step, &policy).solve(&times).unwrap();
        let plain: Vec<_> = plain.risk.iter().zip(&plain.distance).map(|(r, d)| [*r, *d]).collect();
        for on_skip in [OnSkip::NotMade, OnSkip::ZeroGradient] {
            let gap = |delta| {
                let momentum = average(delta).on_skip(on_skip);
                let path = methods::momentum_ode(&modes, &step, &policy, momentum);
                difference(&path.solve(&times).unwrap(), &plain)
            };
            let gaps = [1e3, 1e4, 1e5].map(gap);
            assert!(gaps[2] < 3e-5, "{gaps:?}");
            for pair in gaps.windows(2) {
                assert!((pair[0] / pair[1] - 10.0).abs() < 0.3, "{gaps:?}");
            }
        }
    }
}

#[test]
fn risks_stay_bounded_below_the_limit_and_only_there() {
    let modes = isotropic(200);
    for delta in [0.2, 3.0, 50.0, 1e4] {
        let problem = |eta: f64| {
            methods::with_momentum(&modes, &NoNoise, &constant(eta, f64::INFINITY), average(delta))
        };
        let limit = momentum_limits(&problem(1.0), f64::INFINITY).unwrap().unwrap();
        assert!((limit.stable - 2.0).abs() < 1e-12);
        let growth = |eta: f64| {
            let ode = Ode::new(&problem(eta)).unwrap();
            // Far beyond the oscillations of the start.
            let path = ode.tolerance(1e-6, 0.0).solve(&[400.0, 800.0]).unwrap();
            // A path that leaves every bound ends early.
            if path.risk.len() < 2 { f64::INFINITY } else { path.risk[1] / path.risk[0] }
        };
        assert!(growth(0.97 * limit.stable) < 1.0, "delta {delta}");
        assert!(growth(1.03 * limit.stable) > 1.0, "delta {delta}");
    }
}

#[test]
fn the_risk_in_the_end_does_not_depend_on_delta() {
    let modes = power_law(30, 0.3);
    let noise = StudentT::new(2.5, 0.4).unwrap();
    let policy = constant(0.6, 0.7);
    let end = |ode: Ode| ode.solve(&[3000.0]).unwrap().risk[0];
    let plain = end(methods::ode(&modes, &noise, &policy));
    for delta in [0.1, 1.0, 10.0, 1e3] {
        let with = end(methods::momentum_ode(&modes, &noise, &policy, average(delta)));
        assert!((with / plain - 1.0).abs() < 1e-7, "{delta}: {with} {plain}");
    }
}

#[test]
fn modes_oscillate_above_their_limit() {
    // Noiseless and unclipped with η tiny against 2, so that noise of steps does not matter: the
    // risk of one mode touches zero again and again above the limit, and falls steadily below.
    let modes = isotropic(1_000_000);
    let eta = 0.01;
    let rises = |delta: f64| {
        let policy = constant(eta, f64::INFINITY);
        let ode = methods::momentum_ode(&modes, &NoNoise, &policy, average(delta));
        let path = ode.solve(&linear_times(1000.0, 2001).unwrap()).unwrap();
        path.risk.windows(2).filter(|w| w[1] > w[0] * (1.0 + 1e-9)).count()
    };
    let limit = |delta| {
        let policy = constant(eta, f64::INFINITY);
        let problem = methods::with_momentum(&modes, &NoNoise, &policy, average(delta));
        momentum_limits(&problem, f64::INFINITY).unwrap().unwrap().oscillating
    };
    assert!((limit(0.04) - 0.01).abs() < 1e-12);
    assert!(rises(0.02) > 10);
    assert_eq!(rises(0.08), 0);
}

#[test]
fn divergence_targets_and_bad_input_are_reported_as_without_momentum() {
    let modes = isotropic(100);
    let cauchy = StudentT::new(1.0, 0.5).unwrap();
    let unclipped = constant(0.5, f64::INFINITY);
    let path = methods::momentum_ode(&modes, &cauchy, &unclipped, average(1.0)).solve(&[0.0, 1.0]);
    assert_eq!(path.unwrap().stop, Stop::InfiniteVariance { t: 0.0 });
    let fast = constant(5.0, f64::INFINITY);
    let path = methods::momentum_ode(&modes, &NoNoise, &fast, average(10.0)).solve(&[0.0, 1e3]);
    let path = path.unwrap();
    assert!(matches!(path.stop, Stop::Diverged { .. }) && path.times == [0.0], "{:?}", path.stop);
    let slow = constant(0.5, f64::INFINITY);
    let ode = methods::momentum_ode(&modes, &NoNoise, &slow, average(10.0)).target(0.1);
    let Stop::TargetReached { t } = ode.solve(&[50.0]).unwrap().stop else { unreachable!() };
    let there = methods::momentum_ode(&modes, &NoNoise, &slow, average(10.0)).solve(&[t]).unwrap();
    assert!((there.risk[0] / 0.1 - 1.0).abs() < 1e-7);
    let by_value = Step::new(cauchy.clone()).with_rule(Rule::ByValue).unwrap();
    let message = methods::problem(&modes, &by_value, &slow).with_optimizer(average(1.0));
    assert!(message.unwrap_err().to_string().contains("keep the direction"));
    let beyond = methods::with_momentum(&modes, &NoNoise, &slow, average(101.0));
    assert!(Sgd::new(&beyond).unwrap_err().to_string().contains("negative"));
    // Nothing moves where every step is skipped.
    let skip = Step::new(cauchy.clone()).with_rule(Rule::Skip).unwrap();
    let never = constant(0.5, 1e-300);
    let path = methods::momentum_ode(&modes, &skip, &never, average(1.0)).solve(&[9.0]).unwrap();
    assert!((path.risk[0] / modes.risk() - 1.0).abs() < 1e-12);
}
