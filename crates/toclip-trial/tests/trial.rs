//! The binary `toclip-trial`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use assert_cmd::Command;
use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use toclip_cli::output::{Identity, ProgressLog};

/// A trial of two rules on two problems that takes no time.
fn tiny(out: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(cargo_bin!("toclip-trial"));
    command.args(["--quick", "--only", "gaussian/1,cauchy/8", "--rules", "huber,fixed"]);
    command.args(["--steps", "60", "--tuning", "1", "--runs", "4", "--out"]);
    command.arg(out).args(more);
    command
}

fn stdout(command: &mut Command) -> String {
    String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
}

fn stderr(command: &mut Command) -> String {
    String::from_utf8(command.assert().failure().get_output().stderr.clone()).unwrap()
}

#[test]
fn every_form_says_the_same_whatever_the_threads() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let json: Value =
        serde_json::from_str(&stdout(&mut tiny(&one, &["--json", "--threads", "1"]))).unwrap();
    let markdown = stdout(&mut tiny(&two, &["--markdown", "--threads", "2"]));
    assert_eq!(markdown, std::fs::read_to_string(two.join("trial.md")).unwrap());
    for file in ["trial.csv", "trial.json", "trial.md", "trial.svg", "trial.png"] {
        let read = |folder: &Path| std::fs::read(folder.join(file)).unwrap();
        assert_eq!(read(&one), read(&two), "{file}");
    }
    assert!(!one.join("trial.progress").exists());
    let entry = &json["rows"][1]["entries"][2];
    assert_eq!(
        (&json["rows"][1]["problem"], &entry["rule"]),
        (&"cauchy/8".into(), &"huber".into())
    );
    assert_eq!(entry["log_risk"].as_array().unwrap().len(), 4);
    let ratio = entry["ratio"]["mean"].as_f64().unwrap();
    assert!(ratio < 1.0, "clipping helps under Cauchy noise: {ratio}");
    let csv = std::fs::read_to_string(one.join("trial.csv")).unwrap();
    assert!(csv.contains(&format!("{ratio:?}")) && csv.lines().count() == 7, "{csv}");
    assert!(markdown.lines().any(|l| l.starts_with("| cauchy | 8 |")), "{markdown}");
}

#[test]
fn what_was_finished_before_an_interruption_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
    stdout(&mut tiny(&whole, &[]));
    // A trial of one rule, taken as what an interrupted trial of both has finished.
    let results: Value =
        serde_json::from_slice(&std::fs::read(whole.join("trial.json")).unwrap()).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let inputs = serde_json::json!({ "version": version, "effort": results["effort"] });
    let mut cell = results["rows"][0]["entries"][0].clone();
    cell["log_risk"] = serde_json::json!([0.0, 0.5, 1.0, 1.5]);
    for extra in ["risk", "ratio"] {
        cell.as_object_mut().unwrap().remove(extra);
    }
    std::fs::create_dir_all(&cut).unwrap();
    let path = cut.join("trial.progress");
    let identity = Identity { command: "toclip-trial", pieces: "cells", inputs };
    let (mut log, _) = ProgressLog::open(&path, &identity, false, |_| Some(())).unwrap();
    log.add(&serde_json::to_vec(&cell).unwrap()).unwrap();
    drop(log);
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"torn").unwrap();
    drop(file);
    assert!(stderr(&mut tiny(&cut, &[])).contains("--resume"));
    stdout(&mut tiny(&cut, &["--resume"]));
    let resumed: Value =
        serde_json::from_slice(&std::fs::read(cut.join("trial.json")).unwrap()).unwrap();
    // The one that was there was not measured again; the others are the same.
    assert_eq!(resumed["rows"][0]["entries"][0]["log_risk"], cell["log_risk"]);
    assert_eq!(resumed["rows"][1], results["rows"][1]);
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut said = String::new();
    for more in [
        ["--only", "gauss,cuachy"],
        ["--rules", "clop"],
        ["--confidence", "1"],
        ["--runs", "1"],
        ["--quick", "--full"],
    ] {
        let mut command = Command::new(cargo_bin!("toclip-trial"));
        command.args(["--out"]).arg(folder.path()).args(more);
        said += stderr(&mut command).lines().next().unwrap();
        said.push('\n');
    }
    insta::assert_snapshot!(said);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}
