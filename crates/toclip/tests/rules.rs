//! The factors of every radial rule against tables of thirty digits, computed from the definitions.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

use proptest::prelude::*;
use serde::Deserialize;
use toclip::criteria::fisher_limit;
use toclip::noise::{Family, Laplace, Rademacher, StudentT};
use toclip::{Factors, Rule, Smooth, Step};

#[derive(Deserialize)]
struct Row {
    rule: String,
    family: String,
    params: String,
    r: f64,
    c: f64,
    mu: f64,
    m2: f64,
}

/// The largest relative error that is allowed: closed forms to 1e-12, quadrature to 1e-10.
fn allowed(rule: &str) -> f64 {
    if matches!(rule, "skip" | "normalise") { 1e-12 } else { 1e-10 }
}

#[test]
fn the_reference_table_is_met() {
    let text = include_str!("data/rule_factors.csv");
    let (mut rows, mut wrong) = (0, Vec::new());
    for row in csv::Reader::from_reader(text.as_bytes()).deserialize() {
        let row: Row = row.expect("a row of the table");
        let mut params: serde_json::Value = serde_json::from_str(&row.params).expect("JSON");
        params["family"] = row.family.as_str().into();
        let noise: Family = serde_json::from_value(params).expect("a noise family");
        let step = Step::new(&noise).with_rule(Rule::named(&row.rule).unwrap()).unwrap();
        let got = step.moments(row.r, row.c);
        // μ of skipping passes through zero: its error is measured against what it is a
        // difference of.
        let size = match row.rule.as_str() {
            "skip" if row.mu.abs() < 0.1 * step.noise().clipped(row.r, row.c).mu => {
                row.mu.abs().max(1e-3 * step.noise().clipped(row.r, row.c).mu)
            }
            _ => row.mu.abs(),
        };
        let off = ((got.mu - row.mu).abs() / size).max((got.m2 / row.m2 - 1.0).abs());
        rows += 1;
        if !(off < allowed(&row.rule)) {
            wrong.push(format!(
                "{} {} {} r = {:e} c = {:e}: {off:.1e}, {got:?}, not {:e} {:e}",
                row.rule, row.family, row.params, row.r, row.c, row.mu, row.m2
            ));
        }
    }
    assert!(rows > 800);
    assert!(wrong.is_empty(), "{} of {rows} rows:\n{}", wrong.len(), wrong.join("\n"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// No rule passes the Fisher limit, and all tend to plain SGD as the threshold grows.
    #[test]
    fn rules_are_bounded_and_tend_to_sgd(
        log_r in -3.0..1.0f64,
        log_c in -1.5..1.5f64,
        which in 0usize..3,
    ) {
        let (r, c) = (10f64.powf(log_r), 10f64.powf(log_c));
        let noises: [Family; 3] = [
            Laplace::new(1.0).unwrap().into(),
            StudentT::new(3.0, 0.7).unwrap().into(),
            Rademacher::new(2.0, 0.3).unwrap().into(),
        ];
        let noise = &noises[which];
        let limit = fisher_limit(noise, r).unwrap().limit;
        for rule in [
            Rule::Clip,
            Rule::Skip,
            Rule::Normalise,
            Rule::Smooth(Smooth::Tanh),
            Rule::Smooth(Smooth::Root),
        ] {
            let step = Step::new(noise).with_rule(rule.clone()).unwrap();
            let at = Factors::new(&step, r, c).unwrap();
            prop_assert!(at.ccc().unwrap() <= limit * (1.0 + 1e-9), "{rule:?}: {at:?} {limit}");
            if rule != Rule::Normalise {
                let far = Factors::new(&step, r, 1e7).unwrap();
                prop_assert!((far.mu - 1.0).abs() < 1e-5, "{rule:?}: {far:?}");
                prop_assert!((far.ccc().unwrap() - 1.0).abs() < 1e-3, "{rule:?}: {far:?}");
            }
        }
    }
}
