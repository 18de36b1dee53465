//! Ten million random inputs over twenty orders of magnitude: nothing but numbers in range.
//!
//! The full number runs with `--ignored`, in continuous integration; a hundredth of it each time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toclip::Factors;
use toclip::noise::{
    Component, Empirical, Family, Gaussian, Laplace, Mixture, NoNoise, Noise, Rademacher, StudentT,
    Uniform,
};

const FAMILIES: usize = 8;

fn random_noise(kind: usize, rng: &mut ChaCha8Rng) -> Family {
    let decade = |rng: &mut ChaCha8Rng| 10f64.powf(rng.random_range(-10.0..10.0));
    let scale = decade(rng);
    match kind {
        0 => NoNoise.into(),
        1 => Gaussian::new(scale).unwrap().into(),
        2 => Rademacher::new(scale, rng.random_range(1e-12..=1.0)).unwrap().into(),
        3 => Uniform::new(scale).unwrap().into(),
        4 => Laplace::new(scale).unwrap().into(),
        5 => StudentT::new(10f64.powf(rng.random_range(-2.0..7.0)), scale).unwrap().into(),
        6 => {
            let parts: Vec<Component> = (0..rng.random_range(1..4))
                .map(|_| Component { weight: decade(rng), mean: decade(rng), std: decade(rng) })
                .collect();
            Mixture::new(&parts).unwrap().into()
        }
        _ => {
            let n = rng.random_range(1..400);
            let values: Vec<f64> = (0..n).map(|_| scale * rng.random_range(-1.0..1.0)).collect();
            Empirical::new(&values).unwrap().into()
        }
    }
}

fn sweep(inputs: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(2026);
    // Making a distribution costs more than asking it: fifty questions each.
    for round in 0..inputs / 50 {
        let noise = random_noise((round % FAMILIES as u64) as usize, &mut rng);
        for _ in 0..50 {
            let r = match rng.random_range(0..20) {
                0 => 0.0,
                _ => 10f64.powf(rng.random_range(-20.0..20.0)),
            };
            let c = match rng.random_range(0..20) {
                0 => f64::INFINITY,
                _ => 10f64.powf(rng.random_range(-10.0..10.0)),
            };
            let x = Factors::new(&noise, r, c).unwrap();
            let place = || format!("{} at R = {r:e}, c = {c:e}: {x:?}", noise.describe());
            assert!((0.0..=1.0).contains(&x.mu), "{}", place());
            assert!(x.m2 >= 0.0 && x.m2 <= c * c && x.m2 <= x.second_moment, "{}", place());
            match (x.nu(), x.csc(), x.ccc()) {
                (Ok(nu), Ok(csc), Ok(ccc)) => {
                    assert!((0.0..=1.0).contains(&nu), "{}", place());
                    assert!(csc >= 0.0 && ccc >= 0.0 && ccc <= csc * (1.0 + 1e-12), "{}", place());
                }
                (Err(_), Err(_), Err(_)) => assert!(noise.variance().is_infinite(), "{}", place()),
                _ => panic!("nu, CSC and CCC disagree on being defined: {}", place()),
            }
        }
    }
}

/// The ends of the number line: squares overflow and underflow here, and loops must still end.
#[test]
fn the_ends_of_the_number_line_are_survived() {
    let ends = [1e-300, 1e-150, 1e-20, 1.0, 1e20, 1e150, 1e300];
    for scale in [1e-150, 1e-100, 1e-20, 1.0, 1e20, 1e100, 1e150] {
        let two = [
            Component { weight: 1.0, mean: scale, std: 0.0 },
            Component { weight: 1.0, mean: 0.0, std: scale },
        ];
        let mut laws: Vec<Family> = vec![
            NoNoise.into(),
            Gaussian::new(scale).unwrap().into(),
            Rademacher::new(scale, 0.3).unwrap().into(),
            Uniform::new(scale).unwrap().into(),
            Laplace::new(scale).unwrap().into(),
            Mixture::new(&two).unwrap().into(),
            Empirical::new(&[-scale, 0.0, scale]).unwrap().into(),
        ];
        for df in [1e-6, 0.1, 1.0, 2.0, 2.5, 50.0, 1e9, 1e300] {
            laws.push(StudentT::new(df, scale).unwrap().into());
        }
        for noise in &laws {
            for r in ends.into_iter().chain([0.0]) {
                for c in ends.into_iter().chain([f64::MIN_POSITIVE, f64::MAX, f64::INFINITY]) {
                    let x = Factors::new(noise, r, c).unwrap();
                    let place = || format!("{} at R = {r:e}, c = {c:e}: {x:?}", noise.describe());
                    assert!((0.0..=1.0).contains(&x.mu), "{}", place());
                    assert!(x.m2 >= 0.0, "{}", place());
                    for value in [x.nu(), x.csc(), x.ccc()].into_iter().flatten() {
                        assert!(value >= 0.0, "{}", place());
                    }
                }
            }
        }
    }
}

#[test]
fn a_hundred_thousand_random_inputs_are_in_range() {
    sweep(100_000);
}

#[test]
#[ignore = "a minute long: continuous integration runs it in release mode"]
fn ten_million_random_inputs_are_in_range() {
    sweep(10_000_000);
}
