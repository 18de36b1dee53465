//! The fixed point of clipped classification.

use super::{OPEN, constant, ode, taught};
use proptest::prelude::*;
use std::sync::Arc;
use toclip::model::{Huber, Logistic, Model, Overlaps, best_threshold, ccc, fixed_point};
use toclip::noise::Laplace;
use toclip::spectrum::Spectrum;
use toclip::{Factors, criteria};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn fixed_points_satisfy_their_equation(
        v in 0.2..40.0f64, flips in 0.0..0.45f64, c in 0.05..1.2f64,
    ) {
        let model = Logistic::new(flips).unwrap();
        let at = fixed_point(&model, v, c).unwrap();
        let x = model.coefficients(&Overlaps::along_teacher(at.kappa, v), c);
        prop_assert!((x.a * at.kappa + x.b).abs() < 1e-11, "{at:?} {x:?}");
        prop_assert!(at.kappa > 0.0);
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
    let models: [&dyn Model; 2] = [
        &Logistic::new(0.0).unwrap(),
        &Huber::new(Arc::new(Laplace::new(1.0).unwrap()), 0.8).unwrap(),
    ];
    for model in models {
        let at = fixed_point(model, 0.8, OPEN).unwrap();
        assert!((at.kappa - 1.0).abs() < 1e-10, "{}: {at:?}", model.describe());
    }
    // Least squares stays there when clipped, as the noise is symmetric.
    assert!((fixed_point(models[1], 0.8, 0.1).unwrap().kappa - 1.0).abs() < 1e-10);
    // Labels without information: no logit is better than zero.
    assert_eq!(fixed_point(&Logistic::new(0.5).unwrap(), 3.0, 0.4).unwrap().kappa, 0.0);
}

/// A small rate ends next to the fixed point, with its noise around it: with w the variance across the
/// teacher, η m2 = 2aw.
#[test]
fn the_ode_ends_at_the_fixed_point() {
    for spectrum in [Spectrum::isotropic(500).unwrap(), Spectrum::power_law(60, 0.6).unwrap()] {
        let modes = taught(&spectrum, 3.0);
        let v = Overlaps::at_start(&modes).unwrap().v;
        for (flips, c, eta) in [(0.1, 0.4, 0.05), (0.0, OPEN, 0.05), (0.2, 0.2, 0.1)] {
            let model = Logistic::new(flips).unwrap();
            let path = ode(&modes, &model, &constant(eta, c)).solve(&[80_000.0]).unwrap();
            let end = path.overlaps.unwrap()[0];
            let still = fixed_point(&model, v, c).unwrap();
            assert!((end.p / v / still.kappa - 1.0).abs() < 0.05, "{end:?} {still:?}");
            let x = model.coefficients(&end, c);
            let across = end.q - end.p * end.p / v;
            assert!((eta * x.m2 / (2.0 * x.a * across) - 1.0).abs() < 1e-5, "{end:?} {x:?}");
        }
    }
}

#[test]
fn least_squares_has_its_own_criterion() {
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
}

#[test]
fn impossible_questions_are_refused() {
    let model = Logistic::new(0.1).unwrap();
    assert!(fixed_point(&model, 0.0, 0.4).unwrap_err().to_string().contains("V = 0"));
    assert!(fixed_point(&model, 1.0, 0.0).unwrap_err().to_string().contains("c = 0"));
    let none = Logistic::new(0.5).unwrap();
    let at = Overlaps::new(1.0, 0.5, 1.0).unwrap();
    assert!(ccc(&none, &at, 0.4).unwrap_err().to_string().contains("b = 0"));
}
