//! The reduction factors against tables computed from the definitions with 60 digits or more.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

use serde::Deserialize;
use toclip::criteria::{best_threshold, fisher_limit};
use toclip::{Factors, noise::Family};

#[derive(Deserialize)]
struct Row {
    family: String,
    params: String,
    r: f64,
    c: f64,
    mu: f64,
    m2: f64,
    nu: Option<f64>,
}

/// The accuracy we promise: relative, except that values below 1e-300 may be off by 1e-300.
const RELATIVE: f64 = 1e-12;

fn off(got: f64, want: f64) -> f64 {
    if got == want { 0.0 } else { ((got - want).abs() - 1e-300).max(0.0) / want.abs() }
}

fn noise(family: &str, params: &str) -> Family {
    let mut params: serde_json::Value = serde_json::from_str(params).expect("JSON");
    params["family"] = family.into();
    serde_json::from_value(params).expect("a noise family")
}

fn check_table(text: &str) {
    let mut worst: Vec<(String, f64, String)> = Vec::new();
    let mut failures = Vec::new();
    let mut rows = 0;
    for row in csv::Reader::from_reader(text.as_bytes()).deserialize() {
        let row: Row = row.expect("a row of the table");
        let noise = noise(&row.family, &row.params);
        let got = Factors::new(&noise, row.r, row.c).expect("a legal point");
        let mut error = off(got.mu, row.mu).max(off(got.m2, row.m2));
        match row.nu {
            Some(nu) => error = error.max(off(got.nu().expect("a finite variance"), nu)),
            None => {
                assert!(got.nu().is_err(), "nu must be an error for {} {}", row.family, row.params)
            }
        }
        let place = format!(
            "{} {} r = {:e} c = {:e}: mu {:e} ({:e}), m2 {:e} ({:e})",
            row.family, row.params, row.r, row.c, got.mu, row.mu, got.m2, row.m2
        );
        if !(error <= RELATIVE) {
            failures.push(format!("{error:.1e} {place}"));
        }
        match worst.iter_mut().find(|w| w.0 == row.family) {
            Some(w) if error > w.1 => (w.1, w.2) = (error, place),
            Some(_) => {}
            None => worst.push((row.family, error, place)),
        }
        rows += 1;
    }
    for (family, error, place) in &worst {
        println!("{family:17} worst {error:.1e} at {place}");
    }
    assert!(rows > 100, "the table is empty");
    let shown = failures.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {rows} rows are off:\n{shown}", failures.len());
}

#[test]
fn the_published_table_is_met_to_twelve_digits() {
    check_table(include_str!("data/reduction_factors.csv"));
}

#[test]
fn so_is_a_wider_one_over_twenty_orders_of_magnitude() {
    check_table(include_str!("data/reduction_factors_wide.csv"));
}

#[derive(Deserialize)]
struct Information {
    family: String,
    params: String,
    r: f64,
    fisher: f64,
}

#[test]
fn the_fisher_information_is_met_to_ten_digits() {
    let text = include_str!("data/fisher.csv");
    let mut rows = 0;
    for row in csv::Reader::from_reader(text.as_bytes()).deserialize() {
        let row: Information = row.expect("a row of the table");
        let got = fisher_limit(&noise(&row.family, &row.params), row.r).expect("a density");
        let error = off(got.information, row.fisher);
        let place = format!("{} {} r = {:e}", row.family, row.params, row.r);
        assert!(error < 1e-10, "{place}: {:e}, not {:e}", got.information, row.fisher);
        assert!(got.reached > 0.0 && got.reached <= 1.0, "{place}: reached {}", got.reached);
        rows += 1;
    }
    assert!(rows > 30);
}

#[derive(Deserialize)]
struct Best {
    family: String,
    params: String,
    r: f64,
    c_best: f64,
    ccc_best: f64,
    kind: String,
}

#[test]
fn the_best_threshold_is_the_global_one() {
    let text = include_str!("data/best_threshold.csv");
    let mut rows = 0;
    for row in csv::Reader::from_reader(text.as_bytes()).deserialize() {
        let row: Best = row.expect("a row of the table");
        let got = best_threshold(&noise(&row.family, &row.params), row.r).expect("a legal risk");
        let place = format!("{} {} r = {:e}: {got:?}", row.family, row.params, row.r);
        // A maximum is flat: its place is known to half of the digits of its value.
        assert!(off(got.ccc, row.ccc_best) < 1e-10, "{place}, not CCC {}", row.ccc_best);
        match row.kind.as_str() {
            "infinity" => assert_eq!(got.c, f64::INFINITY, "{place}"),
            "zero" => assert_eq!(got.c, 0.0, "{place}"),
            _ => assert!(off(got.c, row.c_best) < 1e-5, "{place}, not c {}", row.c_best),
        }
        rows += 1;
    }
    assert!(rows > 50);
}
