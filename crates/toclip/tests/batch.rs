//! The factors of batches against tables, definitions and simulation.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::Deserialize;
use toclip::noise::{Family, Noise};
use toclip::{Factors, Rule};

#[derive(Deserialize)]
struct Row {
    family: String,
    params: String,
    batch: u64,
    r: f64,
    c: f64,
    mu: f64,
    m2: f64,
    nu: Option<f64>,
}

fn noise(family: &str, params: &str) -> Family {
    let mut params: serde_json::Value = serde_json::from_str(params).unwrap();
    params["family"] = family.into();
    serde_json::from_value(params).unwrap()
}

/// The largest relative error over a table, which must be below `allowed`.
fn check_table(text: &str, allowed: f64, rows: usize) {
    let (mut worst, mut count) = ((0.0, String::new()), 0);
    for row in csv::Reader::from_reader(text.as_bytes()).deserialize() {
        let row: Row = row.unwrap();
        let noise = noise(&row.family, &row.params);
        let rule = Rule::batch(row.batch).unwrap();
        let got = Factors::with_rule(&noise, rule, row.r, row.c).unwrap();
        let off = |got: f64, want: f64| (got / want - 1.0).abs();
        let mut errors = vec![off(got.mu, row.mu), off(got.m2, row.m2)];
        errors.extend(row.nu.map(|nu| off(got.nu().unwrap(), nu)));
        let error =
            errors.into_iter().fold(0.0, |a: f64, b| if b >= a || b.is_nan() { b } else { a });
        let place = format!(
            "{} {} B = {} r = {} c = {}: {got:?}, not {} {}",
            row.family, row.params, row.batch, row.r, row.c, row.mu, row.m2
        );
        if !(error <= worst.0) {
            worst = (error, place);
        }
        count += 1;
    }
    println!("{count} rows, worst {:.1e} at {}", worst.0, worst.1);
    assert!(worst.0 <= allowed, "{:.1e} {}", worst.0, worst.1);
    assert_eq!(count, rows);
}

#[test]
fn the_published_table_is_met_to_ten_digits() {
    check_table(include_str!("data/batch_factors.csv"), 1e-10, 170);
}

/// Other families, and batches up to 1e5, by another road: `scripts/reference/batch.py`.
#[test]
fn a_table_by_another_road_is_met_to_seven_digits() {
    check_table(include_str!("data/batch_factors_wide.csv"), 1e-7, WIDE_ROWS);
}

const WIDE_ROWS: usize = 111;

#[test]
fn one_sample_is_the_single_sample_to_the_bit() {
    for text in FAMILIES {
        let noise: Family = serde_json::from_str(text).unwrap();
        for (r, c) in [(0.0, 0.3), (0.1, 1e-3), (2.0, 1.5), (1.0, f64::INFINITY)] {
            let plain = noise.clipped(r, c);
            for rule in [Rule::single(), Rule::batch(1).unwrap(), Rule::per_sample(1).unwrap()] {
                assert_eq!(rule.clipped(&noise, r, c).unwrap(), plain);
            }
            let eight = Rule::per_sample(8).unwrap().clipped(&noise, r, c).unwrap();
            assert_eq!((eight.mu, eight.m2), (plain.mu, plain.m2 / 8.0));
        }
    }
}

const FAMILIES: [&str; 8] = [
    r#"{"family":"none"}"#,
    r#"{"family":"gaussian","sigma":0.5}"#,
    r#"{"family":"rademacher","lambda":2.0,"p":0.25}"#,
    r#"{"family":"uniform","half_width":1.5}"#,
    r#"{"family":"laplace","sigma":0.8}"#,
    r#"{"family":"student_t","df":1.0,"scale":0.5}"#,
    r#"{"family":"gaussian_mixture","weights":[0.25,0.75],"means":[-1.0,1.0],"stds":[0.5,0.0]}"#,
    r#"{"family":"empirical","values":[-1.0,0.5,2.0,0.1,-0.3,0.7]}"#,
];

/// Every family against draws: a million residuals in batches, five standard errors. 8 families, 3
/// sizes, 2 thresholds and 2 moments: false alarm 6e-5 in all.
#[test]
fn every_family_agrees_with_its_own_samples() {
    for text in FAMILIES {
        let noise: Family = serde_json::from_str(text).unwrap();
        let r = 0.05f64;
        let mut rng = ChaCha8Rng::seed_from_u64(12);
        let residuals: Vec<f64> = (0..1 << 20)
            .map(|_| {
                let z: f64 = StandardNormal.sample(&mut rng);
                (2.0 * r).sqrt() * z - noise.sample(&mut rng)
            })
            .collect();
        for size in [2, 5, 64] {
            for c in [0.25, 0.9] {
                let n = size as f64;
                let a = c * c * n;
                let (mut mus, mut squares) = (Vec::new(), Vec::new());
                for batch in residuals.chunks_exact(size) {
                    let s: f64 = batch.iter().map(|x| x * x).sum();
                    mus.push(if s <= a { 1.0 } else { (1.0 - 1.0 / n) * (a / s).sqrt() });
                    squares.push(s.min(a) / (n * n));
                }
                let got = Rule::batch(size as u64).unwrap().clipped(&noise, r, c).unwrap();
                for (draws, got, largest) in [(mus, got.mu, 1.0), (squares, got.m2, a / (n * n))] {
                    let count = draws.len() as f64;
                    let mean = draws.iter().sum::<f64>() / count;
                    let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
                    // Events too rare to show in so many draws: fifteen are expected unseen once in 3e6.
                    let unseen = 15.0 / count * largest;
                    let error = (5.0 * (variance / count).sqrt()).max(unseen);
                    assert!(
                        (got - mean).abs() < error,
                        "{text} B = {size} c = {c}: {got}, {mean} ± {error}"
                    );
                }
            }
        }
    }
}

#[test]
fn limits_are_known() {
    for text in FAMILIES {
        let noise: Family = serde_json::from_str(text).unwrap();
        let second = 0.2 + noise.second_moment();
        for size in [2, 7, 1000, 100_000] {
            let rule = Rule::batch(size).unwrap();
            let at = |c: f64| rule.clipped(&noise, 0.1, c).unwrap();
            // Without a threshold, and with one that nothing reaches.
            let n = size as f64;
            assert_eq!((at(f64::INFINITY).mu, at(f64::INFINITY).m2), (1.0, second / n));
            if second.is_finite() && !text.contains("student") {
                let far = at(1e3);
                assert!(
                    (far.mu - 1.0).abs() < 1e-12 && (far.m2 * n / second - 1.0).abs() < 1e-9,
                    "{text} {size} {far:?}"
                );
            }
            // μ ∝ c and m2 = c²/B where every batch is clipped. P(S ≤ a) ∝ c^B: for two samples
            // a share c² of μ.
            let (small, smaller) = (at(1e-4), at(1e-5));
            assert!(
                (small.mu / smaller.mu / 10.0 - 1.0).abs() < 1e-3,
                "{text} {size} {small:?} {smaller:?}"
            );
            assert!((small.m2 / (1e-8 / n) - 1.0).abs() < 1e-3, "{text} {size} {small:?}");
        }
        // Many samples: S/B is its mean, and clipping rescales.
        if second.is_finite() {
            let many =
                Rule::batch(100_000).unwrap().clipped(&noise, 0.1, 0.5 * second.sqrt()).unwrap();
            assert!((many.mu - 0.5).abs() < 0.01, "{text} {many:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// In range, and growing with the threshold, for any family, size and threshold.
    #[test]
    fn factors_stay_in_range_and_grow_with_the_threshold(
        which in 0..FAMILIES.len(), log_b in 0.4..11.5f64, log_r in -5.0..2.0f64, log_c in -3.0..2.0f64, wider in 1.0..3.0f64
    ) {
        let noise: Family = serde_json::from_str(FAMILIES[which]).unwrap();
        let (r, c) = (10f64.powf(log_r), 10f64.powf(log_c));
        let rule = Rule::batch(log_b.exp() as u64).unwrap();
        let (at, above) = (
            Factors::with_rule(&noise, rule, r, c).unwrap(),
            Factors::with_rule(&noise, rule, r, wider * c).unwrap(),
        );
        let n = rule.size() as f64;
        for x in [at, above] {
            prop_assert!(x.mu > 0.0 && x.mu <= 1.0, "{x:?}");
            prop_assert!(x.m2 > 0.0 && x.m2 <= x.c * x.c / n * (1.0 + 1e-12) && x.m2 <= x.second_moment * (1.0 + 1e-12), "{x:?}");
        }
        prop_assert!(at.mu <= above.mu * (1.0 + 1e-7), "{rule} {at:?} {above:?}");
        prop_assert!(at.m2 <= above.m2 * (1.0 + 1e-7), "{rule} {at:?} {above:?}");
    }
}
