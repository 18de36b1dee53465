//! `toclip fit --model logistic` as a user meets it, on classes made here.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

mod support;

use std::path::Path;

use serde_json::Value;
use support::{Dice, without_data as toclip};

const COLS: usize = 40;

/// Gaussian features of variance 1, classes "7" and "3" with P(7) = σ(v), v of variance 4; the third
/// column of labels has three values.
fn made(folder: &Path, rows: usize) {
    let mut dice = Dice(1);
    let header: Vec<String> = (1..=COLS).map(|j| format!("x{j}")).collect();
    let mut text = header.join(",") + ",three,y\n";
    for k in 0..rows {
        let x: Vec<f64> = (1..=COLS).map(|_| dice.normal()).collect();
        let v = 2.0 * x.iter().sum::<f64>() / (COLS as f64).sqrt();
        let y = if dice.roll() < 1.0 / (1.0 + (-v).exp()) { 7.0 } else { 3.0 };
        let cells: Vec<String> =
            x.iter().chain([&((k % 3) as f64), &y]).map(|v| format!("{v:.6}")).collect();
        text += &(cells.join(",") + "\n");
    }
    std::fs::write(folder.join("data.csv"), text).unwrap();
}

const BASE: [&str; 9] =
    ["fit", "data.csv", "--target", "y", "--features", "none", "--model", "logistic", "--eta"];

fn run(folder: &Path, more: &[&str]) -> String {
    let args: Vec<&str> = BASE.into_iter().chain(more.iter().copied()).collect();
    let (code, out, err) = toclip(folder, &args);
    assert_eq!(code, 0, "{err}");
    out
}

#[test]
fn gaussian_features_and_labels_of_the_model_leave_only_finite_d() {
    let root = tempfile::tempdir().unwrap();
    made(root.path(), 8000);
    let out =
        run(root.path(), &["0.8", "--clip", "0.3", "--runs", "40", "--json", "--out", "report"]);
    let fit: Value = serde_json::from_str(&out).unwrap();
    let number = |path: &str| fit.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
    assert!(fit["ridge"].is_null());
    assert!((number("/label_1") - 0.5).abs() < 0.03);
    // θ* is fitted without intercept, so its slope is 1; V = 4 is known to 2/sqrt(8000) and grows by
    // what is overfitted.
    assert!((number("/optimum/calibration") - 1.0).abs() < 1e-6);
    assert!((number("/logit_variance") / 4.0 - 1.0).abs() < 0.2, "{}", number("/logit_variance"));
    // The theory's own optimum, and the data's.
    assert!((number("/optimum/loss") - number("/optimum_by_model/loss")).abs() < 0.02);
    // Gaussian features from the theory and from the file: the gap to the ODE is the same within four
    // standard errors, false alarm 6e-5.
    let gap = |k: usize, key: &str| number(&format!("/measured/{k}/excess_gap/{key}"));
    assert_eq!(fit["measured"].as_array().unwrap().len(), 4);
    let error = gap(0, "standard_error").hypot(gap(1, "standard_error"));
    assert!((gap(0, "mean") - gap(1, "mean")).abs() < 4.0 * error, "{fit}");
    // Clipping moves the fixed point outwards.
    assert!(number("/advice/fixed_point") > 1.05);
    // A short pass gains by a bias that lengthens θ, and not in direction.
    assert!(number("/advice/tuned/loss") <= number("/advice/tuned_unclipped/loss"));
    let folder = root.path().join("report");
    for file in
        ["report.html", "cross-entropy.svg", "data.png", "curves.csv", "theta.csv", "fit.json"]
    {
        assert!(folder.join(file).metadata().unwrap().len() > 100, "{file}");
    }
    let curves = std::fs::read_to_string(folder.join("curves.csv")).unwrap();
    assert!(curves.starts_with("t,ode_loss,ode_error_rate,ode_calibration,"));
}

#[test]
fn the_same_seed_gives_the_same_and_the_text_says_what_was_found() {
    let root = tempfile::tempdir().unwrap();
    made(root.path(), 700);
    let text = |more: &[&str]| {
        let all: Vec<&str> = ["0.5", "--runs", "3"].iter().chain(more).copied().collect();
        run(root.path(), &all).split("\nTime:").next().unwrap().to_owned()
    };
    assert_eq!(text(&[]), text(&[]));
    assert_ne!(text(&[]), text(&["--seed", "2"]));
    insta::assert_snapshot!("logistic_text", text(&[]));
    assert!(text(&["--held-out"]).contains("on its own half"));
    assert!(text(&["--start-noise", "0.2"]).contains("θ0 = θ* + 0.2 N(0, I)"));
    assert!(!text(&["--clip", "none"]).contains("biased"));
}

#[test]
fn targets_and_flags_that_do_not_fit_are_refused() {
    let root = tempfile::tempdir().unwrap();
    made(root.path(), 200);
    let error = |args: &[&str]| {
        let (code, out, err) = toclip(root.path(), args);
        assert!(code != 0 && out.is_empty(), "{args:?}: {out}");
        err
    };
    let three = error(&[
        "fit",
        "data.csv",
        "--target",
        "three",
        "--features",
        "none",
        "--model",
        "logistic",
    ]);
    assert!(three.contains("three or more different values (0, 1, 2 …)"), "{three}");
    let noise = error(&["fit", "data.csv", "--model", "logistic", "--noise", "gaussian"]);
    assert!(noise.contains("--noise is for least squares"), "{noise}");
    // Least squares on two values points to the other model.
    let (_, out, _) = toclip(
        root.path(),
        &["fit", "data.csv", "--target", "y", "--features", "none", "--runs", "2"],
    );
    assert!(out.contains("--model logistic fits classes"), "{out}");
}

#[test]
fn separable_classes_get_a_ridge() {
    let root = tempfile::tempdir().unwrap();
    let mut dice = Dice(5);
    let mut text = "a,b,y\n".to_owned();
    for _ in 0..150 {
        // Mirrored: the model has no intercept, so the plane must go through the mean.
        let (a, b) = (dice.normal(), dice.normal());
        for (a, b) in [(a, b), (-a, -b)] {
            text += &format!("{a:.6},{b:.6},{}\n", u8::from(a + b > 0.0));
        }
    }
    std::fs::write(root.path().join("data.csv"), text).unwrap();
    let out = run(root.path(), &["0.1", "--runs", "2"]);
    assert!(out.contains("(1/n), because the classes are separable"), "{out}");
    assert!(out.contains("The classes are separable: θ*"), "{out}");
}
