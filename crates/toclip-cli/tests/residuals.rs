//! `toclip residuals` as a user meets it.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

use assert_cmd::Command;
use std::fmt::Write;

fn out(args: &[&str]) -> (i32, String, String) {
    let output =
        Command::cargo_bin("toclip").unwrap().arg("residuals").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Two columns: Laplace quantiles of rate 1, and a cluster at either of ±2.
fn table() -> String {
    let mut text = "noise,clusters\n".to_owned();
    for i in 0..500 {
        let e = -(1.0 - (f64::from(i) + 0.5) / 500.0).ln();
        let spot = (f64::from(i) * 0.618_034).fract() * 0.5;
        writeln!(text, "{e},{}\n{},{}", 2.0 + spot, -e, -2.0 - spot).unwrap();
    }
    text
}

#[test]
fn a_column_is_told_in_words_json_and_a_picture() {
    let dir = tempfile::tempdir().unwrap();
    let (csv, svg) = (dir.path().join("e.csv"), dir.path().join("e.svg"));
    std::fs::write(&csv, table()).unwrap();
    let csv = csv.to_str().unwrap();
    let (code, text, _) = out(&[csv, "--column", "1", "--out", svg.to_str().unwrap()]);
    assert_eq!(code, 0, "{text}");
    for words in ["1000 residuals", "Advised: Laplace (σ = 1.41", "family = \"laplace\", sigma = "]
    {
        assert!(text.contains(words), "{words} not in\n{text}");
    }
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.contains("advised") && svg.contains("Its tails"));
    let (_, text, _) = out(&[csv, "--column", "2", "--json", "--components", "2"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["best"], "gaussian_mixture");
    let fits = json["fits"].as_array().unwrap();
    let mixture = fits.iter().find(|fit| fit["kind"] == "gaussian_mixture").unwrap();
    let means = mixture["noise"]["means"].as_array().unwrap();
    assert!((means[0].as_f64().unwrap() + 2.25).abs() < 0.01 && means.len() == 2, "{means:?}");
}

#[test]
fn the_printed_line_is_an_experiments_noise() {
    let dir = tempfile::tempdir().unwrap();
    let csv = dir.path().join("e.csv");
    std::fs::write(&csv, table()).unwrap();
    let (_, text, _) = out(&[csv.to_str().unwrap(), "--column", "2"]);
    let line = text.lines().find(|line| line.trim().starts_with("noise = ")).unwrap();
    let table: toml::Table = toml::from_str(line).unwrap();
    let noise: toclip::noise::Family = table["noise"].clone().try_into().unwrap();
    assert!((toclip::noise::Noise::second_moment(&noise) - 5.0833).abs() < 1e-2, "{line}");
}

#[test]
fn what_is_wrong_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let csv = dir.path().join("e.csv");
    std::fs::write(&csv, table()).unwrap();
    let path = csv.to_str().unwrap();
    let short = dir.path().join("short.csv");
    std::fs::write(&short, "1\n2\n3\n").unwrap();
    let parquet = dir.path().join("good.parquet");
    std::fs::write(&parquet, b"PAR1\x15\x04PAR1").unwrap();
    for (args, says) in [
        (vec![parquet.to_str().unwrap()], "the Parquet file is damaged or cut short"),
        (vec![path], "expected one column, but the file has"),
        (vec![path, "--column", "3"], "there is no column 3"),
        (vec![path, "--column", "1", "--components", "0"], "expected 1 to 20"),
        (vec![path, "--column", "1", "--folds", "1"], "expected 2 to 50"),
        (vec![short.to_str().unwrap()], "short.csv: 3 residuals are too few"),
        (vec!["no-such.npy"], "no-such.npy"),
        (vec![path, "--column", "1", "--plot", "a.gif"], "must end in .svg or .png"),
    ] {
        let (code, _, error) = out(&args);
        assert!(code == 1 && error.contains(says), "{args:?} says: {error}");
        assert!(error.matches("os error").count() <= 1, "said twice: {error}");
    }
}
