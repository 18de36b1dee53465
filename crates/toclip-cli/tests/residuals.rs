//! `toclip residuals` and `toclip convergence` as a user sees them.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod support;

use std::fmt::Write;
use support::{run, session};
use tempfile::TempDir;

/// A folder with two columns: Laplace quantiles of rate 1, and a cluster at either of ±2.
fn folder() -> TempDir {
    let mut text = "noise,clusters\n".to_owned();
    for i in 0..500 {
        let e = -(1.0 - (f64::from(i) + 0.5) / 500.0).ln();
        let spot = (f64::from(i) * 0.618_034).fract() * 0.5;
        writeln!(text, "{e},{}\n{},{}", 2.0 + spot, -e, -2.0 - spot).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("e.csv"), text).unwrap();
    folder
}

#[test]
fn a_column_as_text_json_and_plot() {
    let folder = folder();
    insta::assert_snapshot!(session(
        folder.path(),
        &[&["residuals", "e.csv", "--column", "noise", "--out", "e.svg"]]
    ));
    let svg = std::fs::read_to_string(folder.path().join("e.svg")).unwrap();
    assert!(svg.starts_with("<svg"));
    let json = ["residuals", "e.csv", "--column", "2", "--json", "--components", "2"];
    let json: serde_json::Value = serde_json::from_str(&run(folder.path(), &json).1).unwrap();
    assert_eq!(json["best"], "gaussian_mixture");
    let fits = json["fits"].as_array().unwrap();
    let mixture = fits.iter().find(|fit| fit["kind"] == "gaussian_mixture").unwrap();
    let means = mixture["noise"]["means"].as_array().unwrap();
    assert!((means[0].as_f64().unwrap() + 2.25).abs() < 0.01 && means.len() == 2, "{means:?}");
}

#[test]
fn the_printed_line_is_an_experiments_noise() {
    let (_, text, _) = run(folder().path(), &["residuals", "e.csv", "--column", "2"]);
    let line = text.lines().find(|line| line.trim().starts_with("noise = ")).unwrap();
    let table: toml::Table = toml::from_str(line).unwrap();
    let noise: toclip::noise::Family = table["noise"].clone().try_into().unwrap();
    assert!((toclip::noise::Noise::second_moment(&noise) - 5.0833).abs() < 1e-2, "{line}");
}

#[test]
fn errors() {
    let folder = folder();
    std::fs::write(folder.path().join("short.csv"), "1\n2\n3\n").unwrap();
    std::fs::write(folder.path().join("good.parquet"), b"PAR1\x15\x04PAR1").unwrap();
    insta::assert_snapshot!(session(
        folder.path(),
        &[
            &["residuals", "good.parquet"],
            &["residuals", "e.csv"],
            &["residuals", "e.csv", "--column", "3"],
            &["residuals", "e.csv", "--column", "nois"],
            &["residuals", "e.csv", "--column", "1", "--components", "0"],
            &["residuals", "e.csv", "--column", "1", "--components", "21"],
            &["residuals", "e.csv", "--column", "1", "--folds", "1"],
            &["residuals", "short.csv"],
            &["residuals", "no-such.npy"],
            &["residuals", "e.csv", "--column", "1", "--plot", "a.gif"],
            &["convergence", "--runs", "0"],
            &["convergence", "--clip", "nan"],
            &["convergence", "--threads", "1025"],
            &["convergence", "--dims", "10..5"],
            &["convergence", "--noise", "cauchy"],
            &["convergence", "--noise", "gaussian,laplace"],
        ]
    ));
}

#[test]
fn a_measured_rate_has_a_table_and_a_plot() {
    let folder = folder();
    let args = ["convergence", "--dims", "100,400", "--runs", "4", "--time", "0.5"];
    let files = ["--out", "gaps.csv", "--plot", "gaps.svg", "--json"];
    let (code, text, errors) = run(folder.path(), &[&args[..], &files].concat());
    assert_eq!(code, 0, "{errors}");
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let table = std::fs::read_to_string(folder.path().join("gaps.csv")).unwrap();
    assert!(table.starts_with("d,mean_gap,standard_error,runs,diverged\n100.0,"), "{table}");
    assert_eq!(json["rate"]["gaps"].as_array().unwrap().len(), 2);
    let (_, text, _) = run(folder.path(), &args);
    let without_time: Vec<&str> = text.lines().filter(|l| !l.starts_with("Time")).collect();
    insta::assert_snapshot!(without_time.join("\n"));
}
