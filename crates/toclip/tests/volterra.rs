//! The integral equation against reference curves, closed forms and the ODE.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod common;
mod methods;

use common::{cases, constant, power_law, worst};
use proptest::prelude::*;
use std::sync::Arc;
use toclip::dynamics::{Stop, Volterra, linear_times, log_times};
use toclip::noise::{Gaussian, Laplace, NoNoise, Noise, Rademacher, StudentT, Uniform};
use toclip::policy::{Compensation, Control, OpenLoop, Policy, Proportional, Schedule, Shape};
use toclip::spectrum::{Modes, Spectrum, Start};

#[test]
fn every_reference_curve_is_met() {
    for case in cases() {
        for rtol in [1e-4, 1e-6, 1e-9, 1e-12] {
            let equation = methods::volterra(&case.modes, &case.noise, &case.policy);
            let solution = equation.tolerance(rtol, 0.0).solve(&case.times()).unwrap();
            let error = worst(&case, &solution.trajectory);
            let counts = solution.trajectory.counts;
            println!("{:45} {rtol:.0e} {error:.1e} {counts:?}", case.name);
            assert!(error < rtol, "{}: {error:e}", case.name);
            assert_eq!(solution.trajectory.stop, Stop::Finished);
        }
    }
}

#[test]
fn the_path_is_that_of_the_reference() {
    for case in cases().iter().filter(|case| !case.name.contains("max-CCC")) {
        let equation = methods::volterra(&case.modes, &case.noise, &case.policy).keep_path(true);
        let path = equation.solve(&case.times()).unwrap().trajectory.path.unwrap();
        let close = |a: f64, b: f64| a == b || (a / b - 1.0).abs() < 1e-8;
        for (row, point) in case.rows.iter().zip(path) {
            let same = close(point.c, row.c) && close(point.eta, row.eta);
            assert!(
                same && close(point.mu, row.mu) && close(point.m2, row.m2),
                "{row:?} {point:?}"
            );
        }
    }
}

#[test]
fn isotropic_and_unclipped_splits_in_closed_form() {
    // Γ = ηt, so that gradient flow is R(0) e^{-2ηt}, and R' = -2ηR + η²(R + σ²/2).
    let (sigma, eta) = (0.7, 0.9);
    let modes = Modes::new(&Spectrum::isotropic(300).unwrap(), &Start::Uniform { norm: 1.3 });
    let (modes, noise) = (modes.unwrap(), Gaussian::new(sigma).unwrap());
    let policy = constant(eta, f64::INFINITY);
    let times: Vec<f64> = std::iter::once(0.0).chain(log_times(1e-3, 30.0, 40).unwrap()).collect();
    let solution =
        methods::volterra(&modes, &noise, &policy).tolerance(1e-10, 0.0).solve(&times).unwrap();
    let rate = 2.0 * eta - eta * eta;
    let rest = 0.5 * eta * eta * sigma * sigma / rate;
    for (k, t) in times.iter().enumerate() {
        let risk = rest + (modes.risk() - rest) * (-rate * t).exp();
        let flow = modes.risk() * (-2.0 * eta * t).exp();
        assert!((solution.trajectory.risk[k] / risk - 1.0).abs() < 1e-10, "t = {t}");
        assert!((solution.flow[k] / flow - 1.0).abs() < 1e-12, "t = {t}");
        assert!((solution.gamma[k] - eta * t).abs() < 1e-14 * (1.0 + t), "t = {t}");
        // Subtracting would lose digits where the correction is small, the solver must not.
        let correction = rest * -(-rate * t).exp_m1()
            + modes.risk() * (-2.0 * eta * t).exp() * (eta * eta * t).exp_m1();
        assert!((solution.correction[k] - correction).abs() <= 1e-10 * correction, "t = {t}");
    }
}

#[test]
fn gradient_flow_depends_on_gamma_alone() {
    let modes = power_law(50, 0.9);
    let (noise, policy) = (StudentT::new(1.2, 0.4).unwrap(), constant(0.8, 0.5));
    let solution =
        methods::volterra(&modes, &noise, &policy).solve(&linear_times(20.0, 9).unwrap()).unwrap();
    for (k, gamma) in solution.gamma.iter().enumerate() {
        let flow: f64 = modes
            .modes()
            .iter()
            .map(|m| m.lambda * m.energy * (-2.0 * m.lambda * gamma).exp())
            .sum();
        assert!((solution.flow[k] / flow - 1.0).abs() < 1e-13);
        let sum = solution.flow[k] + solution.correction[k];
        assert!((solution.trajectory.risk[k] / sum - 1.0).abs() < 1e-15);
    }
    assert!(solution.gamma.is_sorted_by(|a, b| a < b));
}

#[test]
fn events_are_those_of_the_ode() {
    let (modes, noise) = (power_law(100, 0.5), StudentT::new(1.5, 0.3).unwrap());
    let times = linear_times(30.0, 31).unwrap();
    let policy = constant(0.5, 0.5);
    let target = 0.6 * modes.risk();
    let ode =
        methods::ode(&modes, &noise, &policy).tolerance(1e-10, 0.0).target(target).solve(&times);
    let here = methods::volterra(&modes, &noise, &policy)
        .tolerance(1e-10, 0.0)
        .target(target)
        .solve(&times);
    let (ode, here) = (ode.unwrap(), here.unwrap());
    let Stop::TargetReached { t } = ode.stop else { panic!("{:?}", ode.stop) };
    let Stop::TargetReached { t: same } = here.trajectory.stop else { panic!() };
    assert!((t - same).abs() < 1e-8, "{t} {same}");
    assert_eq!(ode.times, here.trajectory.times);
    assert_eq!(here.gamma.len(), ode.times.len());

    // R = R(0) e^{3t} and the limit is 1e10 m2(0) = 2e10 R(0).
    let modes = Modes::new(&Spectrum::isotropic(50).unwrap(), &Start::Uniform { norm: 1.0 });
    let (modes, policy) = (modes.unwrap(), constant(3.0, f64::INFINITY));
    let path = methods::volterra(&modes, &NoNoise, &policy).solve(&times).unwrap().trajectory;
    let Stop::Diverged { t } = path.stop else { panic!("{:?}", path.stop) };
    assert!((t - 2e10_f64.ln() / 3.0).abs() < 1e-7, "{t}");
    assert_eq!(path.times.len(), 8);
    assert!(path.risk.iter().chain(&path.distance).all(|x| x.is_finite()));
}

/// No clipping after a given time.
#[derive(Debug, Clone)]
struct LetGo(f64);

impl Policy for LetGo {
    fn at(&self, t: f64, _r: f64) -> Control {
        Control { eta: 0.5, c: if t < self.0 { 0.5 } else { f64::INFINITY } }
    }

    fn uses_risk(&self) -> bool {
        false
    }

    fn breakpoints(&self) -> Vec<f64> {
        vec![self.0]
    }
}

#[test]
fn infinite_variance_unclipped_diverges_at_once() {
    let (modes, noise) = (power_law(50, 0.5), StudentT::new(1.0, 0.5).unwrap());
    let times = linear_times(5.0, 6).unwrap();
    for start in [0.0, 2.5] {
        let path =
            methods::volterra(&modes, &noise, &LetGo(start)).solve(&times).unwrap().trajectory;
        assert_eq!(path.stop, Stop::InfiniteVariance { t: start });
        assert_eq!(path.times, times[..=(start as usize)]);
        assert!(path.risk.iter().all(|r| r.is_finite()));
    }
}

/// Another threshold below a given risk: a jump that no breakpoint announces.
#[derive(Debug, Clone)]
struct Switch(f64);

impl Policy for Switch {
    fn at(&self, _t: f64, r: f64) -> Control {
        if r > self.0 { Control { eta: 0.8, c: 1.0 } } else { Control { eta: 0.3, c: 0.4 } }
    }

    fn uses_risk(&self) -> bool {
        true
    }
}

#[test]
fn a_rule_that_jumps_with_the_risk_is_followed() {
    let (modes, noise) = (power_law(20, 0.5), Gaussian::new(0.4).unwrap());
    let policy = Switch(0.6 * modes.risk());
    let rtol = 1e-9;
    let ode = methods::ode(&modes, &noise, &policy).tolerance(rtol, 0.0).solve(&[6.0]).unwrap();
    let here =
        methods::volterra(&modes, &noise, &policy).tolerance(rtol, 0.0).solve(&[6.0]).unwrap();
    let error = here.trajectory.risk[0] / ode.risk[0] - 1.0;
    println!("{error:e} {:?}", here.trajectory.counts);
    assert!(error.abs() < 2.0 * rtol, "{error:e}");
}

#[test]
fn impossible_requests_are_refused_with_a_message() {
    let (modes, policy) = (power_law(5, 1.0), constant(0.5, 0.5));
    let equation = methods::volterra(&modes, &NoNoise, &policy);
    let says = |e: Volterra, times: &[f64]| e.solve(times).unwrap_err().to_string();
    assert!(says(equation.clone(), &[]).contains("at least one time"));
    assert!(says(equation.clone(), &[1.0, 0.5]).contains("times must increase"));
    assert!(says(equation.clone().tolerance(2.0, 0.0), &[1.0]).contains("rtol = 2 is not allowed"));
    assert!(says(equation.target(-1.0), &[1.0]).contains("target = -1 is not allowed"));
}

fn any_noise() -> impl Strategy<Value = Arc<dyn Noise>> {
    (0_usize..6, 0.01_f64..1.0, 0.6_f64..6.0).prop_map(|(family, size, df)| match family {
        0 => Arc::new(NoNoise) as Arc<dyn Noise>,
        1 => Arc::new(Gaussian::new(size).unwrap()),
        2 => Arc::new(Rademacher::from_sigma(size, 0.3).unwrap()),
        3 => Arc::new(Laplace::new(size).unwrap()),
        4 => Arc::new(Uniform::new(size).unwrap()),
        _ => Arc::new(StudentT::new(df, size).unwrap()),
    })
}

fn any_policy(kind: usize, eta: f64, c: f64, end: f64, noise: &Arc<dyn Noise>) -> Arc<dyn Policy> {
    let shape = match kind {
        0 => Shape::Constant { value: eta },
        1 => Shape::Cosine { from: eta, to: 0.0, over: 0.8 * end, warmup: 0.1 * end },
        2 => Shape::Step { value: eta, factor: 0.3, at: vec![0.2 * end, 0.7 * end], warmup: 0.0 },
        3 => Shape::Warmup { value: eta, over: 0.4 * end, from: 0.0 },
        _ if noise.second_moment().is_finite() => {
            let compensation = if kind == 4 { Compensation::Printed } else { Compensation::Exact };
            let noise = noise.clone();
            let eta = Schedule::constant(eta).unwrap();
            let kappa = c.max(0.3);
            return Arc::new(Proportional::new(kappa, eta, noise, compensation).unwrap());
        }
        _ => Shape::Polynomial { from: eta, to: 0.0, over: end, power: 2.0, warmup: 0.0 },
    };
    Arc::new(OpenLoop::new(Schedule::new(shape).unwrap(), Schedule::constant(c).unwrap()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]
    #[test]
    fn both_roads_lead_to_the_same_place(
        dim in 1_u64..40,
        exponent in 0.0_f64..2.0,
        noise in any_noise(),
        kind in 0_usize..6,
        eta in 0.05_f64..1.2,
        log_c in -2.0_f64..2.0,
        end in 0.5_f64..40.0,
    ) {
        let modes = power_law(dim, exponent);
        let policy = any_policy(kind, eta, log_c.exp(), end, &noise);
        let times = linear_times(end, 17).unwrap();
        let ode = methods::ode(&modes, &noise, &policy).tolerance(1e-9, 0.0).solve(&times).unwrap();
        let here =
            methods::volterra(&modes, &noise, &policy).tolerance(1e-9, 0.0).solve(&times).unwrap();
        let here = here.trajectory;
        prop_assert_eq!(&ode.times, &here.times);
        for k in 0..ode.times.len() {
            let risk = here.risk[k] / ode.risk[k] - 1.0;
            let distance = here.distance[k] / ode.distance[k] - 1.0;
            prop_assert!(risk.abs() < 2e-9 && distance.abs() < 2e-9, "{k} {risk:e} {distance:e}");
        }
    }
}
