//! The fixed point of clipped classification, and the noise around it.

use super::{OPEN, constant, ode, taught};
use proptest::prelude::*;
use std::sync::Arc;
use toclip::model::{
    Huber, Logistic, Model, Overlaps, Poisson, Probit, best_threshold, ccc, fixed_point,
    largest_stable_rate, noise_floor,
};
use toclip::noise::{Gaussian, Laplace};
use toclip::spectrum::Spectrum;
use toclip::{Factors, criteria};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn fixed_points_satisfy_their_equation(
        v in 0.2..40.0f64, flips in 0.0..0.45f64, c in 0.05..1.2f64,
    ) {
        let models: [&dyn Model; 2] = [&Logistic::new(flips).unwrap(), &Probit::new(flips).unwrap()];
        for model in models {
            let at = fixed_point(model, v, c).unwrap();
            let x = model.coefficients(&Overlaps::along_teacher(at.kappa, v), c);
            prop_assert!((x.a * at.kappa + x.b).abs() < 1e-11, "{at:?} {x:?}");
            prop_assert!(at.kappa > 0.0);
        }
    }

    /// Flips shrink, thresholds stretch.
    #[test]
    fn the_norm_falls_with_flips_and_with_the_threshold(
        v in 0.5..30.0f64, flips in 0.0..0.3f64, c in 0.1..0.9f64,
    ) {
        let kappa = |flips: f64, c: f64| {
            fixed_point(&Logistic::new(flips).unwrap(), v, c).unwrap().kappa
        };
        prop_assert!(kappa(flips + 0.05, c) < kappa(flips, c) * (1.0 + 1e-9));
        prop_assert!(kappa(flips, c + 0.05) < kappa(flips, c) * (1.0 + 1e-9));
        prop_assert!(kappa(0.0, c) >= 1.0 - 1e-9);
        prop_assert!(kappa(flips, OPEN) <= 1.0 + 1e-9);
    }
}

#[test]
fn without_clipping_and_flips_the_teacher_is_the_fixed_point() {
    let models: [&dyn Model; 4] = [
        &Logistic::new(0.0).unwrap(),
        &Probit::new(0.0).unwrap(),
        &Poisson,
        &Huber::new(Arc::new(Laplace::new(1.0).unwrap()), 0.8).unwrap(),
    ];
    for model in models {
        let at = fixed_point(model, 0.8, OPEN).unwrap();
        assert!((at.kappa - 1.0).abs() < 1e-10, "{}: {at:?}", model.describe());
    }
    // Least squares stays there when clipped, as the noise is symmetric.
    assert!((fixed_point(models[3], 0.8, 0.1).unwrap().kappa - 1.0).abs() < 1e-10);
    // Labels without information: no logit is better than zero.
    assert_eq!(fixed_point(&Logistic::new(0.5).unwrap(), 3.0, 0.4).unwrap().kappa, 0.0);
}

/// Of long teachers too, whose counts are as large as e^30.
#[test]
fn clipped_counts_have_their_fixed_point() {
    for (v, c) in [(0.5, 0.4), (9.0, 0.4), (16.0, 0.4)] {
        let at = fixed_point(&Poisson, v, c).unwrap();
        let x = at.coefficients;
        assert!((x.a * at.kappa + x.b).abs() < 1e-10 * x.a, "{at:?}");
        assert!(at.kappa > 1.0 && at.kappa < 1.2, "{at:?}");
    }
}

/// The stationary state is where the ODE ends, whatever the spectrum.
#[test]
fn the_ode_ends_in_the_stationary_state() {
    for spectrum in [Spectrum::isotropic(500).unwrap(), Spectrum::power_law(60, 0.6).unwrap()] {
        let modes = taught(&spectrum, 3.0);
        let v = Overlaps::at_start(&modes).unwrap().v;
        for (flips, c, eta) in [(0.1, 0.4, 1.0), (0.0, OPEN, 0.5), (0.2, 0.2, 3.0)] {
            let model = Logistic::new(flips).unwrap();
            let path = ode(&modes, &model, &constant(eta, c)).solve(&[4000.0]).unwrap();
            let end = path.overlaps.unwrap()[0];
            let still = noise_floor(&model, v, c, eta).unwrap().unwrap().overlaps;
            assert!((end.q / still.q - 1.0).abs() < 1e-6, "{end:?} {still:?}");
            assert!((end.p / still.p - 1.0).abs() < 1e-6, "{end:?} {still:?}");
        }
    }
}

#[test]
fn small_rates_end_at_the_fixed_point() {
    let model = Logistic::new(0.1).unwrap();
    let still = fixed_point(&model, 9.0, 0.4).unwrap();
    let near = noise_floor(&model, 9.0, 0.4, 1e-5).unwrap().unwrap();
    assert!((near.kappa / still.kappa - 1.0).abs() < 1e-4, "{near:?} {still:?}");
    assert!((near.overlaps.q / still.overlaps.q - 1.0).abs() < 1e-4);
}

#[test]
fn least_squares_has_its_own_criterion_and_largest_rate() {
    let noise = Laplace::new(1.0).unwrap();
    let model = Huber::new(Arc::new(noise), OPEN).unwrap();
    let at = Overlaps::new(0.5, 0.6, 1.0).unwrap();
    for c in [0.2, 0.7, 1.5] {
        let factors = Factors::new(&noise, 0.15, c).unwrap();
        assert!((ccc(&model, &at, c).unwrap() / factors.ccc().unwrap() - 1.0).abs() < 1e-12);
    }
    let (found, best) =
        (best_threshold(&model, &at).unwrap(), criteria::best_threshold(&noise, 0.15).unwrap());
    assert!((found.ccc / best.ccc - 1.0).abs() < 1e-9 && (found.c / best.c - 1.0).abs() < 1e-3);
    // 2aw/m2 = 2w/(w + σ²).
    let gaussian = Huber::new(Arc::new(Gaussian::new(0.3).unwrap()), OPEN).unwrap();
    assert!((largest_stable_rate(&gaussian, 1.0, OPEN).unwrap() - 2.0).abs() < 1e-8);
    let floor = noise_floor(&gaussian, 1.0, OPEN, 1.0).unwrap().unwrap();
    assert!((floor.overlaps.q - 1.0 - 0.09).abs() < 1e-10, "{floor:?}");
    assert_eq!(noise_floor(&gaussian, 1.0, OPEN, 2.1).unwrap(), None);
    // A threshold keeps any rate stable.
    assert_eq!(largest_stable_rate(&gaussian, 1.0, 0.5).unwrap(), OPEN);
    // Counts have a largest rate, and clipping lifts it.
    let rate = largest_stable_rate(&Poisson, 0.3, OPEN).unwrap();
    assert!(rate > 0.05 && rate < 2.0, "{rate}");
    assert!(
        (largest_stable_rate(&Probit::new(0.0).unwrap(), 1.0, OPEN).unwrap() - 2.0).abs() < 0.1
    );
}

#[test]
fn impossible_questions_are_refused() {
    let model = Logistic::new(0.1).unwrap();
    assert!(fixed_point(&model, 0.0, 0.4).unwrap_err().to_string().contains("V = 0"));
    assert!(fixed_point(&model, 1.0, 0.0).unwrap_err().to_string().contains("c = 0"));
    assert!(noise_floor(&model, 1.0, 0.4, 0.0).is_err());
    let none = Logistic::new(0.5).unwrap();
    let at = Overlaps::new(1.0, 0.5, 1.0).unwrap();
    assert!(ccc(&none, &at, 0.4).unwrap_err().to_string().contains("b = 0"));
}

/// For large rates every residual is 0 or ±c, c ≤ 1: a → c/√(2πQ), b → -c E ∂P(1|v) and m2 → c² e, with e
/// the probability that the sign of u predicts the wrong label as drawn. So the angle tends to a limit,
/// and √Q to η c e √(2π)/2 sin² of it.
#[test]
fn large_rates_end_at_an_angle_of_their_own() {
    let tau = 2.0 * std::f64::consts::PI;
    for (flips, c) in [(0.0, OPEN), (0.2, 0.4)] {
        let (model, v, eta) = (Logistic::new(flips).unwrap(), 4.0_f64, 3e4);
        let floor = noise_floor(&model, v, c, eta).unwrap().unwrap().overlaps;
        let cosine = (tau * v).sqrt() * model.label_slope(v).unwrap();
        assert!((floor.correlation() / cosine - 1.0).abs() < 1e-3, "{floor:?} {cosine}");
        let clean = model.error_rate(&Overlaps::new(1.0, cosine * v.sqrt(), v).unwrap()).unwrap();
        let wrong = flips + (1.0 - 2.0 * flips) * clean;
        let root = eta * c.min(1.0) * wrong * tau.sqrt() / (2.0 * (1.0 - cosine * cosine));
        assert!((floor.q.sqrt() / root - 1.0).abs() < 1e-3, "{} {root}", floor.q.sqrt());
        assert_eq!(largest_stable_rate(&model, v, c).unwrap(), OPEN);
    }
}
