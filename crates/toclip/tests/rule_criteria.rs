//! CCC, best threshold and stability limits of every radial rule, for one sample and for batches.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod methods;

use toclip::criteria::{best_threshold, fisher_limit, stability_limits};
use toclip::noise::{Family, Gaussian, Laplace, Rademacher, StudentT};
use toclip::policy::OpenLoop;
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::{Batch, Factors, Rule, Smooth, Step};

const RULES: [Rule; 6] = [
    Rule::Clip,
    Rule::Skip,
    Rule::Normalise,
    Rule::Smooth(Smooth::Tanh),
    Rule::Smooth(Smooth::Root),
    Rule::Optimal,
];

fn noises() -> [Family; 4] {
    [
        Gaussian::new(0.7).unwrap().into(),
        Laplace::new(1.0).unwrap().into(),
        StudentT::new(2.5, 0.5).unwrap().into(),
        Rademacher::new(1.0, 0.3).unwrap().into(),
    ]
}

/// Every rule that the batch allows.
fn steps(noise: &Family, batch: u64) -> impl Iterator<Item = Step<'_>> {
    let step = Step::new(noise).with_batch(Batch::mean(batch).unwrap()).unwrap();
    RULES.into_iter().filter_map(move |rule| step.clone().with_rule(rule).ok())
}

/// No threshold of a grid has a larger CCC than the best, and the best is within the Fisher limit.
/// The limit holds for batches too: by Cauchy and Schwarz, with the score of all residuals together.
#[test]
fn the_best_threshold_is_above_a_grid_and_below_the_fisher_limit() {
    for noise in noises() {
        for (r, batch) in [(0.01, 1), (0.3, 1), (0.05, 4)] {
            let limit = fisher_limit(&noise, r).unwrap().limit;
            for step in steps(&noise, batch) {
                let best = best_threshold(&step, r).unwrap();
                assert!(best.ccc <= limit * (1.0 + 1e-9), "{}: {best:?}", step.describe());
                assert!(best.mu > 0.0 || best.c == 0.0, "{}: {best:?}", step.describe());
                for k in 0..40 {
                    let at = Factors::new(&step, r, 1e-2 * 1.2f64.powi(k)).unwrap();
                    // μ²/ν of a step that goes the wrong way is no gain.
                    let ccc = if at.mu > 0.0 { at.ccc().unwrap() } else { 0.0 };
                    assert!(ccc <= best.ccc * (1.0 + 1e-8), "{}: {at:?}", step.describe());
                }
            }
        }
    }
}

/// Normalising has one CCC for all thresholds, and the optimal rule attains the limit.
#[test]
fn normalising_has_one_ccc_and_the_optimal_rule_the_largest() {
    for noise in noises() {
        let limit = fisher_limit(&noise, 0.2).unwrap().limit;
        let optimal = Step::new(&noise).with_rule(Rule::Optimal).unwrap();
        let best = best_threshold(&optimal, 0.2).unwrap();
        assert!((best.ccc / limit - 1.0).abs() < 1e-12 && best.c == f64::INFINITY);
        for batch in [1, 4] {
            let step = Step::new(&noise).with_batch(Batch::mean(batch).unwrap()).unwrap();
            let step = step.with_rule(Rule::Normalise).unwrap();
            let best = best_threshold(&step, 0.2).unwrap();
            assert!((best.mu - 1.0).abs() < 1e-12);
            for c in [1e-3, 0.7, 50.0] {
                let ccc = Factors::new(&step, 0.2, c).unwrap().ccc().unwrap();
                assert!((ccc / best.ccc - 1.0).abs() < 1e-10, "{}: {ccc}", step.describe());
            }
        }
    }
}

/// Where skipping goes away from the solution no learning rate is stable, and no threshold there is
/// the best.
#[test]
fn skipping_the_wrong_way_is_never_stable() {
    let modes =
        Modes::new(&Spectrum::isotropic(100).unwrap(), &Start::Uniform { norm: 0.05 }).unwrap();
    let noise = Rademacher::new(1.0, 0.3).unwrap();
    let (r, mut wrong) = (modes.risk(), 0);
    for batch in [1, 2] {
        let step = Step::new(noise).with_batch(Batch::mean(batch).unwrap()).unwrap();
        let policy = OpenLoop::constant(1.0, 1.0).unwrap();
        let step = step.with_rule(Rule::Skip).unwrap();
        for k in 0..200 {
            let c = 0.3 + 0.01 * f64::from(k);
            let (at, limits) = (
                Factors::new(&step, r, c).unwrap(),
                stability_limits(&methods::problem(&modes, &step, &policy), c).unwrap(),
            );
            if at.mu <= 0.0 {
                wrong += 1;
                assert_eq!((limits.risk, limits.distance), (0.0, 0.0), "c = {c}: {at:?}");
            } else {
                assert!(limits.risk > 0.0 && limits.distance > 0.0, "c = {c}: {at:?}");
            }
        }
        assert!(best_threshold(&step, r).unwrap().mu > 0.0);
    }
    assert!(wrong > 5, "no threshold goes the wrong way: {wrong}");
}
