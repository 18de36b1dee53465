//! `toclip fit` as a user meets it, on data made here.
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

const COLS: usize = 30;

/// Independent features with variances 1/j, y = x_1 + noise of σ = 0.5: d = Σ 1/j = 3.995.
fn made(folder: &Path, rows: usize) {
    let mut dice = Dice(1);
    let header: Vec<String> = (1..=COLS).map(|j| format!("x{j}")).collect();
    let mut text = header.join(",") + ",y\n";
    for _ in 0..rows {
        let x: Vec<f64> = (1..=COLS).map(|j| dice.normal() / (j as f64).sqrt()).collect();
        let y = x[0] + 0.5 * dice.normal() + 3.0;
        let cells: Vec<String> = x.iter().chain([&y]).map(|v| format!("{v:.6}")).collect();
        text += &(cells.join(",") + "\n");
    }
    std::fs::write(folder.join("data.csv"), text).unwrap();
}

fn json(folder: &Path, more: &[&str]) -> Value {
    let mut args = vec!["fit", "data.csv", "--target", "y", "--features", "none", "--json"];
    args.extend(more);
    let (code, out, err) = toclip(folder, &args);
    assert_eq!(code, 0, "{err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_known_problem_is_found_predicted_and_run() {
    let root = tempfile::tempdir().unwrap();
    made(root.path(), 6000);
    let fit = json(root.path(), &["--runs", "40", "--eta", "0.2", "--out", "report"]);
    let number = |path: &str| fit.pointer(path).and_then(Value::as_f64).unwrap();
    // Harmonic number 30; eigenvalues of 6000 samples are off by sqrt(2/6000) = 2%, the largest more.
    assert!((number("/dim") / 3.995 - 1.0).abs() < 0.08, "{}", number("/dim"));
    assert!((number("/least_squares/sigma") / 0.5 - 1.0).abs() < 0.05);
    assert!((number("/target_mean") - 3.0).abs() < 0.1);
    assert_eq!(fit["samples"], 6000);
    assert_eq!(fit["measured"]["diverged"], 0);
    // Gaussian noise: not clipping is best, up to what 6000 residuals know.
    assert!(number("/best_threshold/end/ccc") < 1.02);
    // Gaussian data: every prediction meets the runs. 40 runs know their mean to 3% or so, d = 4
    // leaves the theory 10%.
    for curve in fit["predicted"].as_array().unwrap() {
        let mean = curve["gap"]["mean"].as_f64().unwrap();
        assert!(mean.abs() < 0.15, "{curve}");
    }
    let folder = root.path().join("report");
    for file in ["report.html", "risk.svg", "noise.png", "risk.csv", "theta.csv", "fit.json"] {
        assert!(folder.join(file).metadata().unwrap().len() > 100, "{file}");
    }
    let risk = std::fs::read_to_string(folder.join("risk.csv")).unwrap();
    insta::assert_snapshot!("columns", risk.lines().next().unwrap());
    let (_, text, _) = toclip(
        root.path(),
        &["fit", "data.csv", "--target", "y", "--features", "none", "--runs", "40", "--eta", "0.2"],
    );
    insta::assert_snapshot!("text", text.split("\nTime:").next().unwrap());
    let theta = std::fs::read_to_string(folder.join("theta.csv")).unwrap();
    assert_eq!(theta.lines().count(), COLS + 1);
}

#[test]
fn the_same_seed_gives_the_same() {
    let root = tempfile::tempdir().unwrap();
    made(root.path(), 1200);
    let run = |more: &[&str]| {
        let mut args = vec!["--runs", "5"];
        args.extend(more);
        let mut fit = json(root.path(), &args);
        fit["seconds"] = Value::Null;
        fit
    };
    assert_eq!(run(&[]), run(&[]));
    assert_ne!(run(&[]), run(&["--seed", "2"]));
    let none = run(&["--clip", "none"]);
    assert!(none["settings"]["clip"].is_null());
    assert!(none["destination"]["bias"].as_f64().unwrap() < 1e-12);
}

#[test]
fn halves_are_honest() {
    let root = tempfile::tempdir().unwrap();
    made(root.path(), 140);
    let halves = json(root.path(), &["--runs", "2", "--held-out"]);
    assert_eq!(halves["samples"], 70);
    let mse = |part: &str| halves[part]["mse"].as_f64().unwrap();
    // 30 numbers fitted to 70 samples: they leave 4/7 of the noise on their own half and 7/4 of it
    // on the other, a ratio of 3; the logarithms of the two have standard deviation 0.28 together,
    // so that a ratio below 1 is four of them away.
    assert!(mse("least_squares") > mse("train"), "{halves}");
}

#[test]
fn errors_name_the_input_and_what_is_expected() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("nan.csv", "a,b,y\n1,2,3\n1,nan,2\n2,1,1\n");
    write("constant.csv", "a,b,y\n1,7,3\n5,7,2\n2,7,1\n4,7,1\n");
    write("short.csv", "a,b,c,y\n1,2,5,3\n2,1,4,2\n");
    write("idle.csv", "a,y\n1,3\n2,3\n4,3\n");
    write("word.csv", "a,y\n1,3\nx,3\n");
    let cache = folder.join("cache").display().to_string();
    let error = |args: &[&str]| {
        let (code, out, err) = toclip(folder, args);
        assert!(code != 0 && out.is_empty(), "{args:?}: {out}");
        assert_eq!(err.lines().filter(|l| l.starts_with("error")).count(), 1, "{err}");
        err.replace(&cache, "CACHE")
    };
    // The data crate words these; here they must name the file or column.
    let data = [("nan.csv", "nan.csv"), ("constant.csv", "7"), ("short.csv", "2 samples")];
    for (file, named) in data.into_iter().chain([("idle.csv", "3"), ("word.csv", "word.csv")]) {
        let said = error(&["fit", file, "--features", "none"]);
        assert!(said.contains(named), "{said}");
    }
    assert!(error(&["fit", "absent.csv"]).contains("absent.csv"));
    assert!(error(&["fit", "idle.csv", "--target", "price"]).contains("price"));
    insta::assert_snapshot!(
        "errors",
        [
            error(&["fit"]),
            error(&["fit", "idle.csv", "--clip", "-1"]),
            error(&["fit", "idle.csv", "--noise", "cauchy"]),
            error(&["fit", "idle.csv", "--eta", "0"]),
            error(&["fit", "--dataset", "wikitext2"]),
        ]
        .concat()
    );
}

#[test]
fn divergence_is_no_result() {
    let root = tempfile::tempdir().unwrap();
    made(root.path(), 1200);
    let fit = json(root.path(), &["--runs", "3", "--eta", "1e9"]);
    assert_eq!(fit["measured"]["diverged"], 3, "{fit}");
    assert!(fit["measured"]["end"].is_null());
    let verdict = fit["verdict"].as_array().unwrap();
    assert_eq!(verdict.len(), 1, "{verdict:?}");
    insta::assert_snapshot!("diverged", verdict[0].as_str().unwrap());
    let fast = json(root.path(), &["--runs", "1", "--eta", "0.2"]);
    assert!(fast["predicted"][0]["gap"]["standard_error"].is_null());
}

#[test]
fn a_target_among_the_features_is_said_aloud() {
    let root = tempfile::tempdir().unwrap();
    let mut dice = Dice(5);
    let mut text = "a,b,y\n".to_owned();
    for _ in 0..400 {
        let (a, b) = (dice.normal(), dice.normal());
        text += &format!("{a:.6},{b:.6},{a:.6}\n");
    }
    std::fs::write(root.path().join("data.csv"), text).unwrap();
    let fit = json(root.path(), &["--runs", "2"]);
    assert_eq!(fit["perfect_fit"], true);
    insta::assert_snapshot!("perfect_fit", fit["verdict"][0].as_str().unwrap());
}
