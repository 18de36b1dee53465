//! The factors of batches against tables, definitions and simulation.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

use serde::Deserialize;
use toclip::{Factors, Rule, noise::Family};

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
        if !(error <= allowed) {
            println!("{error:.1e} {place}");
        }
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
