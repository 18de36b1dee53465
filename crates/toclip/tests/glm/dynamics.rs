//! The ODE and C-SGD of generalised linear models.

use std::sync::Arc;
use toclip::Batch;
use toclip::dynamics::{InstructionSet, Ode, Stop, linear_times};
use toclip::ensemble::Ensemble;
use toclip::model::{GlmOde, GlmSgd, Huber, Logistic, Model, Overlaps, TeacherModes};
use toclip::noise::{Gaussian, Laplace};
use toclip::policy::{MaxCcc, OpenLoop, Policy, Schedule, Shape};
use toclip::spectrum::{Modes, Spectrum, Start};

const OPEN: f64 = f64::INFINITY;

fn constant(eta: f64, c: f64) -> OpenLoop {
    let clip = if c < OPEN { Schedule::constant(c).unwrap() } else { Schedule::never() };
    OpenLoop::new(Schedule::constant(eta).unwrap(), clip)
}

fn power_law(dim: u64, norm: f64) -> TeacherModes {
    TeacherModes::new(&Spectrum::power_law(dim, 0.2).unwrap(), &Start::Uniform { norm }).unwrap()
}

/// Started at θ0 = 0 with teacher θ*, least squares has R = ½⟨θ-θ*, K(θ-θ*)⟩: another system of
/// equations with the same solution.
#[test]
fn huber_regression_is_clipped_least_squares() {
    let spectrum = Spectrum::power_law(200, 0.5).unwrap();
    let start = Start::Uniform { norm: 1.5 };
    let noise = Laplace::new(0.7).unwrap();
    let policy = constant(0.6, 0.5);
    let times = linear_times(10.0, 21).unwrap();
    let modes = Modes::new(&spectrum, &start).unwrap();
    let exact = Ode::new(&modes, &noise, &policy).solve(&times).unwrap();
    let model = Huber::new(Arc::new(noise), 0.9).unwrap();
    let teacher = TeacherModes::new(&spectrum, &start).unwrap();
    let path = GlmOde::new(&teacher, &model, &policy).solve(&times).unwrap();
    for k in 0..times.len() {
        let Overlaps { q, p, v } = path.overlaps[k];
        let risk = 0.5 * (q - 2.0 * p + v);
        assert!((risk / exact.risk[k] - 1.0).abs() < 1e-6, "{k}: {risk} {}", exact.risk[k]);
        assert!((path.distance[k] / exact.distance[k] - 1.0).abs() < 1e-6);
    }
}

/// Equal steps of Runge and Kutta's method on the definition of the system.
fn runge_kutta(
    modes: &TeacherModes,
    model: &dyn Model,
    policy: &dyn Policy,
    end: f64,
    steps: u32,
) -> Overlaps {
    let all = modes.modes();
    let v = modes.overlaps().v;
    let slope = |t: f64, x: &[f64]| -> Vec<f64> {
        let (p, q) = x.split_at(all.len());
        let sum = |x: &[f64]| x.iter().zip(all).map(|(x, m)| x * m.lambda).sum::<f64>();
        let control = policy.at(t, 0.0);
        let at = Overlaps::new(sum(q), sum(p), v).unwrap();
        let x = model.coefficients(&at, control.c);
        let eta = control.eta;
        let of_p = all.iter().zip(p).map(|(m, p)| -eta * m.lambda * (x.a * p + x.b * m.teacher));
        let of_q = all.iter().zip(p.iter().zip(q)).map(|(m, (p, q))| {
            -2.0 * eta * m.lambda * (x.a * q + x.b * p)
                + eta * eta * m.lambda * m.count * x.m2 / modes.dim()
        });
        of_p.chain(of_q).collect()
    };
    let moved = |x: &[f64], h: f64, k: &[f64]| -> Vec<f64> {
        x.iter().zip(k).map(|(x, k)| x + h * k).collect()
    };
    let mut x: Vec<f64> = all.iter().map(|m| m.p).chain(all.iter().map(|m| m.q)).collect();
    let h = end / f64::from(steps);
    for k in 0..steps {
        let t = h * f64::from(k);
        let k1 = slope(t, &x);
        let k2 = slope(t + 0.5 * h, &moved(&x, 0.5 * h, &k1));
        let k3 = slope(t + 0.5 * h, &moved(&x, 0.5 * h, &k2));
        let k4 = slope(t + h, &moved(&x, h, &k3));
        for i in 0..x.len() {
            x[i] += h / 6.0 * (k1[i] + 2.0 * (k2[i] + k3[i]) + k4[i]);
        }
    }
    let (p, q) = x.split_at(all.len());
    let sum = |x: &[f64]| x.iter().zip(all).map(|(x, m)| x * m.lambda).sum::<f64>();
    Overlaps::new(sum(q), sum(p), v).unwrap()
}

#[test]
fn the_ode_solves_its_equations() {
    let modes = power_law(30, 3.0);
    let eta = Schedule::new(Shape::Cosine { from: 3.0, to: 0.0, over: 4.0, warmup: 0.0 }).unwrap();
    let cosine = OpenLoop::new(eta, Schedule::constant(0.3).unwrap());
    let policies: [&dyn Policy; 3] = [&constant(2.0, 0.4), &constant(1.0, OPEN), &cosine];
    for policy in policies {
        let huber = Huber::new(Arc::new(Laplace::new(0.5).unwrap()), 0.8).unwrap();
        for model in [&Logistic::new(0.1).unwrap() as &dyn Model, &huber] {
            let exact = runge_kutta(&modes, model, policy, 4.0, 1500);
            let path = GlmOde::new(&modes, model, policy).solve(&[1.0, 4.0]).unwrap().overlaps[1];
            assert!((path.q / exact.q - 1.0).abs() < 3e-8, "{path:?} {exact:?}");
            assert!((path.p / exact.p - 1.0).abs() < 3e-8, "{path:?} {exact:?}");
        }
    }
}

#[test]
fn tolerances_are_kept_between_steps() {
    let modes = power_law(100, 4.0);
    let model = Logistic::new(0.1).unwrap();
    let times = linear_times(20.0, 101).unwrap();
    for policy in [constant(2.0, 0.4), constant(5.0, 0.1), constant(1.0, OPEN)] {
        let ode = GlmOde::new(&modes, &model, &policy);
        let exact = ode.clone().tolerance(1e-12, 0.0).solve(&times).unwrap();
        for rtol in [1e-5, 1e-8] {
            let path = ode.clone().tolerance(rtol, 0.0).solve(&times).unwrap();
            for (x, y) in path.overlaps.iter().zip(&exact.overlaps).skip(1) {
                assert!((x.q / y.q - 1.0).abs() < rtol, "{rtol}: {x:?} {y:?}");
                assert!((x.p - y.p).abs() < rtol * (y.q * y.v).sqrt(), "{rtol}: {x:?} {y:?}");
            }
        }
    }
}

#[test]
fn thresholds_of_one_change_nothing() {
    let modes = power_law(200, 3.0);
    let model = Logistic::new(0.1).unwrap();
    let times = linear_times(10.0, 11).unwrap();
    let path = |c| GlmOde::new(&modes, &model, &constant(1.0, c)).solve(&times).unwrap();
    assert_eq!(path(1.0), path(OPEN));
    assert_eq!(path(3.0), path(OPEN));
}

#[test]
fn compression_keeps_the_path() {
    let spectrum = Spectrum::power_law(20_000, 0.8).unwrap();
    let teacher = Start::PowerLaw { norm: 4.0, exponent: 0.4 };
    let model = Logistic::new(0.1).unwrap();
    let policy = constant(2.0, 0.3);
    let times = linear_times(20.0, 21).unwrap();
    for start in [Start::Uniform { norm: 0.0 }, Start::Random { norm: 5.0, seed: 1 }] {
        let full = TeacherModes::started_at(&spectrum, &teacher, &start).unwrap();
        let exact =
            GlmOde::new(&full, &model, &policy).tolerance(1e-11, 0.0).solve(&times).unwrap();
        for tolerance in [1e-6, 1e-10] {
            let small = full.compress(tolerance).unwrap();
            assert!(small.modes().len() < 700, "{}", small.modes().len());
            let path = GlmOde::new(&small, &model, &policy).tolerance(1e-11, 0.0);
            for (x, y) in path.solve(&times).unwrap().overlaps.iter().zip(&exact.overlaps) {
                let allowed = 20.0 * tolerance + 1e-10;
                assert!((x.q - y.q).abs() < allowed * (y.q + y.v), "{tolerance}: {x:?} {y:?}");
                assert!((x.p - y.p).abs() < allowed * (y.q + y.v), "{tolerance}: {x:?} {y:?}");
            }
        }
        let small = full.compress(1e-6).unwrap();
        let refused = GlmSgd::new(&small, Arc::new(model), Arc::new(policy.clone()));
        assert!(refused.unwrap_err().to_string().contains("compressed"));
    }
}

#[test]
fn bounded_residuals_never_diverge_and_others_say_so() {
    let modes = power_law(50, 2.0);
    let times = linear_times(50.0, 11).unwrap();
    let logistic = Logistic::new(0.0).unwrap();
    let policy = constant(200.0, OPEN);
    let path = GlmOde::new(&modes, &logistic, &policy).solve(&times).unwrap();
    assert_eq!(path.stop, Stop::Finished);
    assert!(path.overlaps.iter().all(|at| at.q.is_finite()));
    let sgd = GlmSgd::new(&modes, Arc::new(logistic), Arc::new(policy)).unwrap();
    assert_eq!(sgd.run(1, 0, &times).stop, Stop::Finished);
    let model: Arc<dyn Model> =
        Arc::new(Huber::new(Arc::new(Gaussian::new(1.0).unwrap()), OPEN).unwrap());
    let policy = constant(8.0, OPEN);
    let path = GlmOde::new(&modes, &*model, &policy).solve(&times).unwrap();
    assert!(matches!(path.stop, Stop::Diverged { .. }), "{}: {path:?}", model.describe());
    assert!(path.times.len() < times.len());
    assert!(path.overlaps.iter().all(|at| at.q.is_finite() && at.p.is_finite()));
    let run = GlmSgd::new(&modes, model.clone(), Arc::new(policy)).unwrap().run(1, 0, &times);
    assert!(matches!(run.stop, Stop::Diverged { .. }), "{}: {run:?}", model.describe());
    assert!(run.overlaps.iter().all(|at| at.q.is_finite()));
}

#[test]
fn runs_are_functions_of_seed_and_index() {
    let modes = power_law(70, 3.0);
    let times = [0.0, 0.5, 2.0];
    let sgd =
        GlmSgd::new(&modes, Arc::new(Logistic::new(0.1).unwrap()), Arc::new(constant(1.0, 0.3)))
            .unwrap();
    for sgd in [sgd.clone(), sgd.with_batch(Batch::mean(4).unwrap()).unwrap()] {
        let path = sgd.run(7, 3, &times);
        assert_eq!(path, sgd.run(7, 3, &times));
        assert_eq!(path.overlaps[2], sgd.run(7, 3, &[2.0]).overlaps[0], "saving changes nothing");
        assert_ne!(path.overlaps[2], sgd.run(7, 4, &times).overlaps[2]);
        assert_ne!(path.overlaps[2], sgd.run(8, 3, &times).overlaps[2]);
        for set in InstructionSet::available() {
            let other = sgd.clone().with_instruction_set(set).unwrap();
            assert_eq!(path, other.run(7, 3, &times), "{set:?}");
        }
        let json = |threads| {
            let ensemble = Ensemble::new(30, 5).threads(threads);
            serde_json::to_string(&sgd.ensemble(&ensemble, &times).unwrap()).unwrap()
        };
        assert_eq!(json(1), json(3));
    }
}

#[test]
fn starts_have_their_overlaps_in_simulations_too() {
    let k = Spectrum::from_eigenvalues(&[1.0, 0.5, 0.5, 0.5, 0.0, 0.25]).unwrap();
    let at = |values: &[f64]| Start::Coordinates { values: values.to_vec() };
    let (truth, here) = ([1.0, -2.0, 0.5, 0.0, 3.0, 0.0], [0.5, 1.0, 1.0, -1.0, 2.0, 0.7]);
    let modes = TeacherModes::started_at(&k, &at(&truth), &at(&here)).unwrap();
    let lambda = [1.0, 0.5, 0.5, 0.5, 0.0, 0.25];
    let sum = |a: &[f64], b: &[f64]| (0..6).map(|i| lambda[i] * a[i] * b[i]).sum::<f64>();
    let start = modes.overlaps();
    for (got, want) in [
        (start.q, sum(&here, &here)),
        (start.p, sum(&here, &truth)),
        (start.v, sum(&truth, &truth)),
    ] {
        assert!((got - want).abs() < 1e-14, "{start:?}");
    }
    let model = Arc::new(Logistic::new(0.0).unwrap());
    let sgd = GlmSgd::new(&modes, model, Arc::new(constant(0.5, OPEN))).unwrap();
    let path = sgd.run(1, 0, &[0.0]);
    let distance: f64 = truth.iter().zip(here).map(|(t, h)| (t - h) * (t - h)).sum();
    assert!((path.overlaps[0].q - start.q).abs() < 1e-14, "{path:?} {start:?}");
    assert!((path.overlaps[0].p - start.p).abs() < 1e-14);
    assert!((path.distance[0] - distance).abs() < 1e-13, "{} {distance}", path.distance[0]);
}

/// The mean of a batch whose clip is never reached has 1/B of the noise of one sample.
#[test]
fn unclipped_batches_divide_the_noise() {
    let spectrum = Spectrum::isotropic(500).unwrap();
    let modes = TeacherModes::new(&spectrum, &Start::Uniform { norm: 3.0 }).unwrap();
    let logistic = Logistic::new(0.1).unwrap();
    let times = [2.0];
    // Each sample clipped, and none: both have a, b of one sample and 1/B of the noise.
    for (c, batch) in [(OPEN, Batch::mean(4).unwrap()), (0.4, Batch::per_sample(4).unwrap())] {
        let policy = constant(3.0, c);
        let ode = GlmOde::new(&modes, &logistic, &policy).with_batch(batch);
        let theory = ode.solve(&times).unwrap();
        let sgd = GlmSgd::new(&modes, Arc::new(logistic), Arc::new(policy)).unwrap();
        let runs = sgd.with_batch(batch).unwrap().ensemble(&Ensemble::new(100, 1), &times).unwrap();
        for (statistics, exact) in
            [(&runs.q, theory.overlaps[0].q), (&runs.p, theory.overlaps[0].p)]
        {
            let errors = (statistics.mean[0] - exact).abs() / statistics.standard_error[0];
            // Five standard errors: a false alarm of 6e-7.
            assert!(errors < 5.0, "{} {exact}: {errors}", statistics.mean[0]);
        }
    }
}

#[test]
fn impossible_combinations_are_refused() {
    let modes = power_law(20, 1.0);
    let model = Logistic::new(0.0).unwrap();
    let noise = Arc::new(Gaussian::new(1.0).unwrap());
    let greedy = MaxCcc::new(Schedule::constant(0.5).unwrap(), noise);
    let refused = GlmOde::new(&modes, &model, &greedy).solve(&[1.0]).unwrap_err().to_string();
    assert!(refused.contains("time alone"), "{refused}");
    let policy = constant(0.5, 0.4);
    let ode = GlmOde::new(&modes, &model, &policy);
    assert!(ode.solve(&[]).is_err() && ode.solve(&[1.0, 0.5]).is_err());
    assert!(ode.clone().tolerance(0.0, 0.0).solve(&[1.0]).is_err());
}
