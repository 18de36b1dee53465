//! Tables of slow factors along the risk: how far a curve from tables is from one without, and that
//! its bits do not depend on earlier evaluations.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod methods;

use std::sync::Arc;
use toclip::criteria::best_threshold;
use toclip::dynamics::linear_times;
use toclip::noise::{Family, Gaussian, Laplace, Noise, Rademacher, StudentT};
use toclip::policy::{Control, MaxCcc, OpenLoop, Policy, Schedule};
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::{Batch, Rule, Smooth, Step};

/// The same policy, which does not say that its threshold is a function of the risk: no table.
#[derive(Debug, Clone)]
struct Untabulated(OpenLoop);

impl Policy for Untabulated {
    fn at(&self, t: f64, r: f64) -> Control {
        self.0.at(t, r)
    }

    fn uses_risk(&self) -> bool {
        false
    }
}

fn modes() -> Modes {
    Modes::new(&Spectrum::power_law(60, 0.5).unwrap(), &Start::Uniform { norm: 1.0 }).unwrap()
}

fn constant(eta: f64, c: f64) -> OpenLoop {
    OpenLoop::constant(eta, c).unwrap()
}

fn step(noise: &Family, rule: &Rule, batch: u64) -> Step<'static> {
    let step = Step::new(Arc::new(noise.clone()) as Arc<dyn Noise>);
    let step = step.with_batch(Batch::mean(batch).unwrap()).unwrap();
    step.with_rule(rule.clone()).unwrap()
}

fn noises() -> [Family; 4] {
    [
        Gaussian::new(0.4).unwrap().into(),
        Laplace::new(0.4).unwrap().into(),
        StudentT::new(2.2, 0.3).unwrap().into(),
        // Atoms: at small risks the factors change fast where the threshold is next to one.
        Rademacher::new(1.0, 0.3).unwrap().into(),
    ]
}

/// The largest relative gap between two curves.
fn gap(one: &[f64], other: &[f64]) -> f64 {
    assert_eq!(one.len(), other.len());
    one.iter().zip(other).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max)
}

/// Tables have relative errors of 1e-12; the curve is then off by 1e-10 at most.
#[test]
fn curves_from_tables_are_those_of_direct_factors() {
    let (modes, times) = (modes(), linear_times(8.0, 41).unwrap());
    for noise in noises() {
        for (rule, batch) in [
            (Rule::Clip, 8),
            (Rule::Skip, 1),
            (Rule::Skip, 8),
            (Rule::Smooth(Smooth::Tanh), 1),
            (Rule::Smooth(Smooth::Root), 8),
        ] {
            let step = step(&noise, &rule, batch);
            // 1.0 is an atom of the Rademacher-like noise.
            for c in [0.6, 1.0] {
                let (table, direct) = (constant(0.5, c), Untabulated(constant(0.5, c)));
                let table = methods::ode(&modes, &step, &table).solve(&times).unwrap();
                let direct = methods::ode(&modes, &step, &direct).solve(&times).unwrap();
                assert_eq!(table.stop, direct.stop);
                let gap = gap(&table.risk, &direct.risk);
                assert!(gap < 1e-10, "{}, c = {c}: {gap:e}", step.describe());
            }
        }
    }
}

/// Below a tolerance of 1e-9 there are no tables: the rules whose factors do not depend on the
/// policy are compared with that.
#[test]
fn curves_from_tables_are_those_of_a_tighter_tolerance() {
    let (modes, times) = (modes(), linear_times(8.0, 41).unwrap());
    for noise in noises() {
        for (rule, batch) in [(Rule::Optimal, 1), (Rule::Normalise, 8)] {
            let (step, policy) = (step(&noise, &rule, batch), constant(0.3, 0.5));
            let table = methods::ode(&modes, &step, &policy).solve(&times).unwrap();
            let direct = methods::ode(&modes, &step, &policy).tolerance(5e-10, 0.0);
            let gap = gap(&table.risk, &direct.solve(&times).unwrap().risk);
            assert!(gap < 1e-8, "{}: {gap:e}", step.describe());
        }
    }
}

fn best(step: &Step<'static>) -> MaxCcc {
    MaxCcc::new(Schedule::constant(0.4).unwrap(), step.clone())
}

/// A threshold from the table is as good as the one that a search at that risk finds. Most is lost where
/// CCC is highest as c → 0, and a thousandth of the residual stands for that: 6e-7 of CCC.
#[test]
fn thresholds_from_tables_are_as_good_as_those_of_a_search() {
    for noise in noises() {
        for (rule, batch) in [
            (Rule::Clip, 8),
            (Rule::Skip, 1),
            (Rule::Skip, 4),
            (Rule::Smooth(Smooth::Tanh), 1),
            (Rule::Smooth(Smooth::Root), 4),
        ] {
            let step = step(&noise, &rule, batch);
            let policy = best(&step);
            for k in 0..9 {
                let r = 1.1e-3 * 2.3f64.powi(k);
                let x = step.moments(r, policy.threshold(r));
                let searched = best_threshold(&step, r).unwrap().efficiency;
                let lost = 1.0 - x.mu * x.mu / x.m2 / searched;
                assert!(lost < 1e-6, "{} at R = {r}: {lost:e}", step.describe());
            }
        }
    }
}

/// A smooth curve is a few polynomials, whatever the batch: of peaks known to nine digits none is taken
/// for two, with a jump between them.
#[test]
fn smooth_thresholds_have_few_pieces() {
    for stds in ["0.2,3", "0.3,3", "0.2,10", "0.5,2"] {
        let text = format!(
            r#"{{"family":"gaussian_mixture","weights":[0.9,0.1],"means":[0,0],"stds":[{stds}]}}"#
        );
        let noise: Family = serde_json::from_str(&text).unwrap();
        for batch in [2, 3, 4, 8] {
            let step = step(&noise, &Rule::Skip, batch);
            let policy = best(&step);
            let mut spans: Vec<(f64, f64)> =
                (0..200).map(|k| policy.threshold_span(5e-3 * 1.02f64.powi(k))).collect();
            spans.dedup();
            assert!(spans.len() < 12, "{}: {} pieces", step.describe(), spans.len());
        }
    }
}

/// A table is filled when it is used; its values do not depend on the order of the evaluations,
/// nor on another thread that asks at the same time.
#[test]
fn bits_do_not_depend_on_earlier_evaluations() {
    let (modes, times) = (modes(), linear_times(6.0, 13).unwrap());
    for (noise, rule, batch) in [
        (Family::from(StudentT::new(2.2, 0.3).unwrap()), Rule::Clip, 4),
        (Rademacher::new(1.0, 0.3).unwrap().into(), Rule::Skip, 1),
        (Laplace::new(0.4).unwrap().into(), Rule::Smooth(Smooth::Root), 4),
    ] {
        let step = step(&noise, &rule, batch);
        let solve = |policy: &MaxCcc| methods::ode(&modes, &step, policy).solve(&times).unwrap();
        let fresh = solve(&best(&step));
        // Other risks first, from the smallest.
        let used = best(&step);
        for k in 0..20 {
            used.at(0.0, 1e-4 * 1.7f64.powi(k));
        }
        assert_eq!(solve(&used), fresh, "{}", step.describe());
        let shared = best(&step);
        let both = std::thread::scope(|scope| {
            let runs = [0, 1].map(|_| scope.spawn(|| solve(&shared)));
            runs.map(|run| run.join().unwrap())
        });
        assert!(both.iter().all(|path| *path == fresh), "{}", step.describe());
    }
}
