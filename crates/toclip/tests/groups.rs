//! Clipping per group: equality with global clipping, and the ODE against C-SGD.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

mod agreement;
mod methods;

use agreement::{ERRORS, constant, gap, noises, spectra, start};
use std::sync::Arc;
use toclip::dynamics::{
    Collapsed, Covariates, InstructionSet, Simulator, Volterra, effective_moments,
};
use toclip::noise::{Gaussian, Laplace, Noise, StudentT};
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::{Batch, Factors, Group, Groups, Rule, Step};

fn groups(list: &[(u64, f64)]) -> Groups {
    let list: Vec<Group> = list.iter().map(|&(size, ratio)| Group { size, ratio }).collect();
    Groups::new(&list).unwrap()
}

fn per_group(noise: &Arc<dyn Noise>, groups: &Groups) -> Step<'static> {
    Step::new(noise.clone()).with_rule(Rule::PerGroup(groups.clone())).unwrap()
}

/// Two thirds of the coordinates at the threshold, the rest at half of it.
fn two_groups(spectrum: &Spectrum) -> Groups {
    let first = 2 * spectrum.ambient_dim() / 3;
    groups(&[(first, 1.0), (spectrum.ambient_dim() - first, 0.5)])
}

fn agree(dim: u64, runs: u64) {
    for (spectrum_name, spectrum) in spectra(dim) {
        let two = two_groups(&spectrum);
        let modes = Modes::grouped(&spectrum, &start(), &two.sizes()).unwrap();
        for (name, noise) in noises() {
            let (step, policy) = (per_group(&noise, &two), constant(0.7, 0.8));
            let sgd = methods::sgd(&modes, &step, &policy);
            let found = gap(&sgd, &methods::problem(&modes, &step, &policy), &[0.4, 1.0], runs);
            println!("d = {dim}, {spectrum_name}, {name}: {found:?}");
            assert!(found.errors < ERRORS, "d = {dim}, {spectrum_name}, {name}: {found:?}");
        }
    }
}

#[test]
fn the_mean_of_runs_is_the_solution_of_the_ode() {
    agree(1000, 200);
}

#[test]
#[ignore = "long: continuous integration runs it in release mode"]
fn the_same_in_four_thousand_dimensions() {
    agree(4000, 200);
}

#[test]
fn batches_and_the_diffusion_agree_with_the_ode() {
    let spectrum = Spectrum::isotropic(1000).unwrap();
    let two = two_groups(&spectrum);
    let modes = Modes::grouped(&spectrum, &start(), &two.sizes()).unwrap();
    let noise: Arc<dyn Noise> = Arc::new(Laplace::new(0.6).unwrap());
    let policy = constant(0.7, 0.6);
    for batch in [Batch::mean(3).unwrap(), Batch::per_sample(3).unwrap()] {
        let step = per_group(&noise, &two).with_batch(batch).unwrap();
        let sgd = methods::sgd(&modes, &step, &policy);
        let found = gap(&sgd, &methods::problem(&modes, &step, &policy), &[0.3, 0.6], 60);
        assert!(found.errors < ERRORS, "{batch}: {found:?}");
        let hsgd = methods::hsgd(&modes, &step, &policy);
        let found = gap(&hsgd, &methods::problem(&modes, &step, &policy), &[0.3, 0.6], 200);
        assert!(found.errors < ERRORS, "{batch}: {found:?}");
    }
}

#[test]
fn equal_ratios_are_global_clipping() {
    let spectrum = Spectrum::power_law(300, 0.4).unwrap();
    let start = Start::PowerLaw { norm: 1.3, exponent: 0.2 };
    let global = Modes::new(&spectrum, &start).unwrap();
    let three = groups(&[(50, 1.0), (130, 1.0), (120, 1.0)]);
    let grouped = Modes::grouped(&spectrum, &start, &three.sizes()).unwrap();
    assert!((grouped.risk() / global.risk() - 1.0).abs() < 1e-14);
    let dims: f64 = grouped.group_dims().iter().sum();
    assert!((dims / global.dim() - 1.0).abs() < 1e-14);
    let times = [0.5, 2.0, 10.0];
    for (_, noise) in noises() {
        let policy = constant(0.8, 0.7);
        let exact = methods::ode(&global, &noise, &policy).keep_path(true).solve(&times).unwrap();
        let step = per_group(&noise, &three);
        let path = methods::ode(&grouped, &step, &policy).keep_path(true).solve(&times).unwrap();
        for k in 0..times.len() {
            assert!((path.risk[k] / exact.risk[k] - 1.0).abs() < 1e-12);
            assert!((path.distance[k] / exact.distance[k] - 1.0).abs() < 1e-12);
            let (a, b) = (path.path.as_ref().unwrap()[k], exact.path.as_ref().unwrap()[k]);
            assert!((a.mu / b.mu - 1.0).abs() < 1e-11 && (a.m2 / b.m2 - 1.0).abs() < 1e-11);
        }
    }
    // One group is the whole gradient, to the last bit.
    let one = groups(&[(300, 1.0)]);
    let modes = Modes::grouped(&spectrum, &start, &[300]).unwrap();
    let noise: Arc<dyn Noise> = Arc::new(StudentT::new(1.0, 0.4).unwrap());
    let run = |step: Step<'static>| {
        methods::sgd(&modes, &step, &constant(0.8, 0.7)).run(1, 2, &[0.0, 1.0, 3.0])
    };
    assert_eq!(run(per_group(&noise, &one)), run(Step::new(noise.clone())));
}

#[test]
fn a_group_without_a_threshold_is_plain_sgd() {
    // No noise, and only the first group is clipped: the second decays as without clipping as long
    // as the first holds the risk up.
    let spectrum = Spectrum::isotropic(100).unwrap();
    let two = groups(&[(50, 1e-6), (50, f64::INFINITY)]);
    let modes = Modes::grouped(&spectrum, &start(), &two.sizes()).unwrap();
    let noise: Arc<dyn Noise> = Arc::new(Gaussian::new(1e-3).unwrap());
    let step = per_group(&noise, &two);
    let policy = constant(0.2, 1.0);
    let path = methods::ode(&modes, &step, &policy).solve(&[1.0]).unwrap();
    // v2' = -2ηv2 + η²/2 (R + ...)/2 with R = v1 + v2 and v1 fixed at 1/4.
    let (a, b) = (2.0 * 0.2 - 0.5 * 0.04, 0.5 * 0.04 * (0.25 + 0.5e-6));
    let v2 = b / a + (0.25 - b / a) * f64::exp(-a);
    assert!((path.risk[0] - 0.25 - v2).abs() < 1e-5, "{} {}", path.risk[0], 0.25 + v2);
    let at = effective_moments(&methods::problem(&modes, &step, &policy), 1.0).unwrap();
    assert!((at.mu - 0.5).abs() < 1e-5, "{at:?}");
}

#[test]
fn bits_do_not_depend_on_the_instruction_set() {
    let spectrum = Spectrum::from_eigenvalues(&[0.5; 70]).unwrap();
    let two = groups(&[(37, 1.0), (33, 0.2)]);
    let modes = Modes::grouped(&spectrum, &start(), &two.sizes()).unwrap();
    let noise: Arc<dyn Noise> = Arc::new(StudentT::new(1.0, 0.5).unwrap());
    for kind in [Covariates::Gaussian, Covariates::Rademacher] {
        let sgd = methods::sgd(&modes, &per_group(&noise, &two), &constant(0.6, 0.4));
        let sgd = sgd.with_covariates(kind).unwrap();
        let path = sgd.run(7, 3, &[0.0, 0.5, 2.0]);
        assert_eq!(path.risk[2], sgd.run(7, 3, &[2.0]).risk[0], "saving changes nothing");
        assert!((path.risk[0] / modes.risk() - 1.0).abs() < 1e-13);
        for set in InstructionSet::available() {
            let other = sgd.clone().with_instruction_set(set).unwrap();
            assert_eq!(path, other.run(7, 3, &[0.0, 0.5, 2.0]), "{set:?}");
        }
    }
}

#[test]
fn groups_take_coordinates_in_the_order_given() {
    // Ascending, so not the order of the modes.
    let spectrum = Spectrum::from_eigenvalues(&[0.25, 0.5, 1.0, 1.0]).unwrap();
    let start = Start::Coordinates { values: vec![1.0, 2.0, 3.0, 4.0] };
    let modes = Modes::grouped(&spectrum, &start, &[3, 1]).unwrap();
    let list: Vec<_> = modes.modes().iter().map(|m| (m.lambda, m.count, m.energy)).collect();
    let want = [(1.0, 1.0, 4.5), (1.0, 1.0, 8.0), (0.5, 1.0, 2.0), (0.25, 1.0, 0.5)];
    assert_eq!(list, want);
    assert_eq!(modes.group_dims(), [1.75, 1.0]);
}

#[test]
fn impossible_combinations_are_refused() {
    let spectrum = Spectrum::power_law(3000, 0.5).unwrap();
    let two = two_groups(&spectrum);
    let noise: Arc<dyn Noise> = Arc::new(Gaussian::new(0.5).unwrap());
    let (step, policy) = (per_group(&noise, &two), constant(0.5, 1.0));
    let modes = Modes::grouped(&spectrum, &start(), &two.sizes()).unwrap();
    let says = |error: toclip::Error, what: &str| {
        let message = error.to_string();
        assert!(message.contains(what), "{message}");
    };
    let plain = Modes::new(&spectrum, &start()).unwrap();
    says(methods::refusable(&plain, &step, &policy).unwrap_err(), "Modes::grouped");
    says(Collapsed::new(&methods::problem(&modes, &step, &policy)).unwrap_err(), "full C-SGD");
    says(Volterra::new(&methods::problem(&modes, &step, &policy)).unwrap_err(), "use the ODE");
    says(Factors::new(&step, 0.1, 1.0).unwrap_err(), "not one pair");
    says(step.group_moments(2, 0.1, 1.0).unwrap_err(), "no group 2");
    says(step.eigenvalue_moments(1.0, 0.1, 1.0).unwrap_err(), "of a group");
    let small = modes.compress(1e-6).unwrap();
    says(methods::refusable(&small, &step, &policy).unwrap_err(), "before `compress`");
    says(Modes::grouped(&spectrum, &start(), &[1000]).unwrap_err(), "all 3000");
    says(Groups::new(&[]).unwrap_err(), "at least one group");
    says(Groups::new(&[Group { size: 3, ratio: f64::NAN }]).unwrap_err(), "ratio NaN");
}
