//! The coefficients of generalised linear models against a table of 32 digits.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a helper that fails fails the test")]

use serde::Deserialize;
use toclip::glm::{Logistic, Model, Overlaps, Poisson, Probit};

#[derive(Deserialize)]
struct Row {
    model: String,
    flips: f64,
    q: f64,
    p: f64,
    v: f64,
    c: f64,
    a: f64,
    b: f64,
    m2: f64,
}

#[test]
fn the_reference_table_is_met_to_ten_digits() {
    let text = include_str!("data/glm.csv");
    let (mut rows, mut worst) = (0, 0.0_f64);
    for row in csv::Reader::from_reader(text.as_bytes()).deserialize() {
        let row: Row = row.expect("a row of the table");
        let model: Box<dyn Model> = match row.model.as_str() {
            "logistic" => Box::new(Logistic::new(row.flips).unwrap()),
            "probit" => Box::new(Probit::new(row.flips).unwrap()),
            _ => Box::new(Poisson),
        };
        let at = Overlaps::new(row.q, row.p, row.v).unwrap();
        let got = model.coefficients(&at, row.c);
        for (name, got, want) in [("a", got.a, row.a), ("b", got.b, row.b), ("m2", got.m2, row.m2)] {
            // Ten digits, and where there is next to nothing left 1e-14.
            let off = (got - want).abs() / want.abs().max(1e-4);
            worst = worst.max(off);
            let place = format!("{} {} {at:?} c = {}", row.model, row.flips, row.c);
            if off >= 1e-10 { println!("{place}: {name} = {got:e}, not {want:e}: {off:e}"); }
        }
        rows += 1;
    }
    println!("worst of {rows} rows: {worst:e}");
    assert!(worst < 1e-10);
}
