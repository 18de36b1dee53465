//! The ODE and C-SGD of generalised linear models.

use super::{OPEN, constant, ode, problem, sgd, taught};
use std::sync::Arc;
use toclip::dynamics::{
    Covariates, InstructionSet, Ode, Sgd, Simulator, Stop, Trajectory, linear_times,
};
use toclip::ensemble::Ensemble;
use toclip::model::{Huber, Logistic, Model, Overlaps};
use toclip::noise::{Gaussian, Laplace};
use toclip::policy::{MaxCcc, OpenLoop, Policy, Schedule, Shape};
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::{Batch, Problem};

fn power_law(dim: u64, norm: f64) -> Modes {
    taught(&Spectrum::power_law(dim, 0.2).unwrap(), norm)
}

fn overlaps(path: Trajectory) -> Vec<Overlaps> {
    path.overlaps.unwrap()
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
    let squares = Problem::new(modes, noise, policy.clone()).unwrap();
    let exact = Ode::new(&squares).unwrap().solve(&times).unwrap();
    let model = Arc::new(Huber::new(Arc::new(noise), 0.9).unwrap());
    let path = ode(&taught(&spectrum, 1.5), &model, &policy).solve(&times).unwrap();
    for k in 0..times.len() {
        let Overlaps { q, p, v } = path.overlaps.as_ref().unwrap()[k];
        let risk = 0.5 * (q - 2.0 * p + v);
        assert_eq!(path.risk[k], risk);
        assert!((risk / exact.risk[k] - 1.0).abs() < 1e-6, "{k}: {risk} {}", exact.risk[k]);
        assert!((path.distance[k] / exact.distance[k] - 1.0).abs() < 1e-6);
    }
}

/// Equal steps of Runge and Kutta's method on the definition of the system.
fn runge_kutta(
    modes: &Modes,
    model: &dyn Model,
    policy: &dyn Policy,
    end: f64,
    steps: u32,
) -> Overlaps {
    let (all, alignments) = (modes.modes(), modes.alignments().unwrap());
    let v = Overlaps::at_start(modes).unwrap().v;
    let slope = |t: f64, x: &[f64]| -> Vec<f64> {
        let (p, q) = x.split_at(all.len());
        let sum = |x: &[f64]| x.iter().zip(all).map(|(x, m)| x * m.lambda).sum::<f64>();
        let control = policy.at(t, 0.0);
        let at = Overlaps::new(sum(q), sum(p), v).unwrap();
        let x = model.coefficients(&at, control.c);
        let eta = control.eta;
        let of_p = all.iter().zip(alignments).zip(p);
        let of_p = of_p.map(|((m, own), p)| -eta * m.lambda * (x.a * p + x.b * own.teacher));
        let of_q = all.iter().zip(p.iter().zip(q)).map(|(m, (p, q))| {
            -2.0 * eta * m.lambda * (x.a * q + x.b * p)
                + eta * eta * m.lambda * m.count * x.m2 / modes.dim()
        });
        of_p.chain(of_q).collect()
    };
    let moved = |x: &[f64], h: f64, k: &[f64]| -> Vec<f64> {
        x.iter().zip(k).map(|(x, k)| x + h * k).collect()
    };
    let mut x: Vec<f64> =
        alignments.iter().map(|a| a.p).chain(alignments.iter().map(|a| a.q)).collect();
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
    for policy in [constant(2.0, 0.4), constant(1.0, OPEN), cosine] {
        let models: [Arc<dyn Model>; 2] =
            [Arc::new(Logistic::new(0.1).unwrap()), Arc::new(Logistic::new(0.0).unwrap())];
        for model in models {
            let exact = runge_kutta(&modes, &model, &policy, 4.0, 1500);
            let path = overlaps(ode(&modes, &model, &policy).solve(&[1.0, 4.0]).unwrap())[1];
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
        let ode = ode(&modes, &model, &policy);
        let exact = ode.clone().tolerance(1e-12, 0.0).solve(&times).unwrap();
        for rtol in [1e-5, 1e-8] {
            let path = ode.clone().tolerance(rtol, 0.0).solve(&times).unwrap();
            let exact = exact.overlaps.as_ref().unwrap();
            for (x, y) in overlaps(path).iter().zip(exact).skip(1) {
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
    let path = |c| ode(&modes, &model, &constant(1.0, c)).solve(&times).unwrap();
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
        let full = Modes::with_teacher(&spectrum, &teacher, &start).unwrap();
        let exact = ode(&full, &model, &policy).tolerance(1e-11, 0.0).solve(&times).unwrap();
        let exact = overlaps(exact);
        for tolerance in [1e-6, 1e-10] {
            let small = full.compress(tolerance).unwrap();
            assert!(small.modes().len() < 700, "{}", small.modes().len());
            let path = ode(&small, &model, &policy).tolerance(1e-11, 0.0);
            for (x, y) in overlaps(path.solve(&times).unwrap()).iter().zip(&exact) {
                let allowed = 20.0 * tolerance + 1e-10;
                assert!((x.q - y.q).abs() < allowed * (y.q + y.v), "{tolerance}: {x:?} {y:?}");
                assert!((x.p - y.p).abs() < allowed * (y.q + y.v), "{tolerance}: {x:?} {y:?}");
            }
        }
        let small = full.compress(1e-6).unwrap();
        let refused = Sgd::new(&problem(&small, &model, &policy));
        assert!(refused.unwrap_err().to_string().contains("compressed"));
    }
}

#[test]
fn bounded_residuals_never_diverge_and_others_say_so() {
    let modes = power_law(50, 2.0);
    let times = linear_times(50.0, 11).unwrap();
    let logistic = Logistic::new(0.0).unwrap();
    let policy = constant(200.0, OPEN);
    let path = ode(&modes, &logistic, &policy).solve(&times).unwrap();
    assert_eq!(path.stop, Stop::Finished);
    assert!(overlaps(path).iter().all(|at| at.q.is_finite()));
    assert_eq!(sgd(&modes, &logistic, &policy).run(1, 0, &times).stop, Stop::Finished);
    let huber = Huber::new(Arc::new(Gaussian::new(1.0).unwrap()), OPEN).unwrap();
    let models: [Arc<dyn Model>; 1] = [Arc::new(huber)];
    for model in models {
        let policy = constant(8.0, OPEN);
        let path = ode(&modes, &model, &policy).solve(&times).unwrap();
        assert!(matches!(path.stop, Stop::Diverged { .. }), "{}: {path:?}", model.describe());
        assert!(path.times.len() < times.len());
        assert!(overlaps(path).iter().all(|at| at.q.is_finite() && at.p.is_finite()));
        let run = sgd(&modes, &model, &policy).run(1, 0, &times);
        assert!(matches!(run.stop, Stop::Diverged { .. }), "{}: {run:?}", model.describe());
        assert!(overlaps(run).iter().all(|at| at.q.is_finite()));
    }
}

#[test]
fn runs_are_functions_of_seed_and_index() {
    let modes = power_law(70, 3.0);
    let times = [0.0, 0.5, 2.0];
    let single = problem(&modes, &Logistic::new(0.1).unwrap(), &constant(1.0, 0.3));
    let batches = single.clone().with_batch(Batch::mean(4).unwrap()).unwrap();
    for problem in [single, batches] {
        let sgd = Sgd::new(&problem).unwrap();
        let path = sgd.run(7, 3, &times);
        assert_eq!(path, sgd.run(7, 3, &times));
        let last = path.overlaps.as_ref().unwrap()[2];
        assert_eq!(last, overlaps(sgd.run(7, 3, &[2.0]))[0], "saving changes nothing");
        assert_ne!(last, overlaps(sgd.run(7, 4, &times))[2]);
        assert_ne!(last, overlaps(sgd.run(8, 3, &times))[2]);
        for set in InstructionSet::available() {
            let other = sgd.clone().with_instruction_set(set).unwrap();
            assert_eq!(path, other.run(7, 3, &times), "{set:?}");
        }
        let json = |threads| {
            let ensemble = Ensemble::new(30, 5).threads(threads);
            serde_json::to_string(&ensemble.run(&sgd, &times, None).unwrap()).unwrap()
        };
        assert_eq!(json(1), json(3));
    }
}

#[test]
fn starts_have_their_overlaps_in_simulations_too() {
    let k = Spectrum::from_eigenvalues(&[1.0, 0.5, 0.5, 0.5, 0.0, 0.25]).unwrap();
    let at = |values: &[f64]| Start::Coordinates { values: values.to_vec() };
    let (truth, here) = ([1.0, -2.0, 0.5, 0.0, 3.0, 0.0], [0.5, 1.0, 1.0, -1.0, 2.0, 0.7]);
    let modes = Modes::with_teacher(&k, &at(&truth), &at(&here)).unwrap();
    let lambda = [1.0, 0.5, 0.5, 0.5, 0.0, 0.25];
    let sum = |a: &[f64], b: &[f64]| (0..6).map(|i| lambda[i] * a[i] * b[i]).sum::<f64>();
    let start = Overlaps::at_start(&modes).unwrap();
    for (got, want) in [
        (start.q, sum(&here, &here)),
        (start.p, sum(&here, &truth)),
        (start.v, sum(&truth, &truth)),
    ] {
        assert!((got - want).abs() < 1e-14, "{start:?}");
    }
    let sgd = sgd(&modes, &Logistic::new(0.0).unwrap(), &constant(0.5, OPEN));
    let path = sgd.run(1, 0, &[0.0]);
    let distance: f64 = truth.iter().zip(here).map(|(t, h)| (t - h) * (t - h)).sum();
    let first = path.overlaps.as_ref().unwrap()[0];
    assert!((first.q - start.q).abs() < 1e-14, "{path:?} {start:?}");
    assert!((first.p - start.p).abs() < 1e-14);
    assert_eq!(path.risk[0], first.risk());
    assert!((path.distance[0] - distance).abs() < 1e-13, "{} {distance}", path.distance[0]);
}

/// The mean of a batch whose clip is never reached has 1/B of the noise of one sample.
#[test]
fn unclipped_batches_divide_the_noise() {
    let spectrum = Spectrum::isotropic(500).unwrap();
    let modes = taught(&spectrum, 3.0);
    let logistic = Logistic::new(0.1).unwrap();
    let times = [2.0];
    // Each sample clipped, and none: both have a, b of one sample and 1/B of the noise.
    for (c, batch) in [(OPEN, Batch::mean(4).unwrap()), (0.4, Batch::per_sample(4).unwrap())] {
        let problem = problem(&modes, &logistic, &constant(3.0, c)).with_batch(batch).unwrap();
        let theory = overlaps(Ode::new(&problem).unwrap().solve(&times).unwrap())[0];
        let sgd = Sgd::new(&problem).unwrap();
        let runs = Ensemble::new(100, 1).run(&sgd, &times, None).unwrap().measures.unwrap();
        for (statistics, exact) in [(&runs.q, theory.q), (&runs.p, theory.p)] {
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
    let refused = Problem::of_model(modes.clone(), model, greedy).unwrap_err().to_string();
    assert!(refused.contains("time alone"), "{refused}");
    let refused = sgd(&modes, &model, &constant(0.5, 0.4)).with_covariates(Covariates::Uniform);
    assert!(refused.unwrap_err().to_string().contains("Gaussian features"));
    let ode = ode(&modes, &model, &constant(0.5, 0.4));
    assert!(ode.solve(&[]).is_err() && ode.solve(&[1.0, 0.5]).is_err());
    assert!(ode.clone().tolerance(0.0, 0.0).solve(&[1.0]).is_err());
}
