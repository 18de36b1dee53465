//! `toclip advise` as a user meets it.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

#[path = "../../toclip-report/tests/browser/mod.rs"]
mod browser;

use assert_cmd::Command;
use std::path::PathBuf;

fn toclip() -> Command {
    Command::cargo_bin("toclip").unwrap()
}

fn log(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../toclip-logs/tests/data").join(name)
}

fn out(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The output without the paths of the logs.
fn without_paths(text: &str) -> String {
    let folder = log("").display().to_string();
    text.replace(&folder, "")
}

#[test]
fn the_whole_advice() {
    for (name, file, args) in [
        ("star", "star.trainer_state.json", &[][..]),
        ("mistral_no_clipping", "mistral7b-translator.trainer_state.json", &["--clip", "none"]),
        ("megatron", "megatron.log", &["--batch-size", "8", "--optimizer", "adam"]),
        ("wandb", "wandb.csv", &[]),
    ] {
        let (code, text, _) = out(toclip().arg("advise").arg(log(file)).args(args));
        assert_eq!(code, 0);
        insta::assert_snapshot!(name, without_paths(&text));
    }
}

#[test]
fn a_page_and_its_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let logs = [log("mistral7b-translator.trainer_state.json"), log("events.tensor")];
    let (code, text, _) =
        out(toclip().arg("advise").args(&logs).arg("--out").arg(dir.path()).args(["--clip", "2"]));
    assert_eq!(code, 0);
    let summary = &text[text.find("Summary").unwrap()..text.find("Written").unwrap()];
    insta::assert_snapshot!("summary", without_paths(summary));
    let page = std::fs::read_to_string(dir.path().join("advise.html")).unwrap();
    if let Some(browser) = browser::Browser::find() {
        let found = browser.try_out(&page, 390);
        assert!(found["overflow"].as_i64() <= Some(0), "the page is too wide: {found}");
    }
    assert!(page.contains("<svg") && page.contains("mistral7b"));
    // The script has NaN; the text must not.
    assert!(!page.contains(">NaN") && !page.contains("NaN%") && !page.contains("(NaN"));
    assert!(dir.path().join("log-1-criteria.png").exists());
    let numbers = std::fs::read_to_string(dir.path().join("advise.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&numbers).unwrap();
    assert_eq!(json["logs"][0]["advice"]["points"], 866);
    assert_eq!(json["logs"][0]["advice"]["current"]["threshold"], 2.0);
    assert_eq!(json["logs"][1]["format"], "tensor_board");
}

#[test]
fn from_the_standard_input_as_json() {
    let bytes = std::fs::read(log("torchtitan.log")).unwrap();
    let (code, text, _) = out(toclip().args(["advise", "-", "--json"]).write_stdin(bytes));
    assert_eq!(code, 0);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["logs"][0]["log"], "standard input");
    assert_eq!(json["logs"][0]["advice"]["recommendation"]["action"], "not_enough_evidence");
}

#[test]
fn the_optimizer_and_no_threshold() {
    let star = log("star.trainer_state.json");
    let run = |args: &[&str]| {
        let (code, text, _) = out(toclip().arg("advise").arg(&star).arg("--json").args(args));
        assert_eq!(code, 0);
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["logs"][0]["advice"].clone()
    };
    for clip in ["none", "inf"] {
        let none = run(&["--clip", clip, "--batch-size", "512", "--optimizer", "sgd"]);
        assert_eq!(none["current"]["threshold"], "none");
        assert_eq!(none["optimizer"], "sgd");
    }
    assert_eq!(
        run(&["--optimizer", "AdamW"])["recommendation"]["rate_change"],
        serde_json::Value::Null
    );
}

#[test]
fn errors_are_one_line() {
    let nano = log("nanogpt.log");
    let mut messages = Vec::new();
    for args in [
        vec![nano.to_str().unwrap()],
        vec!["no-such-log"],
        vec![nano.parent().unwrap().to_str().unwrap()],
        vec!["-", "--norm", "gn"],
        vec!["-", "-"],
        vec![nano.to_str().unwrap(), "--clip=-1"],
        vec![nano.to_str().unwrap(), "--format", "csv"],
    ] {
        let (code, stdout, stderr) = out(toclip().arg("advise").args(&args).write_stdin(""));
        assert_eq!(code, 1, "{args:?}");
        assert!(stdout.is_empty(), "{args:?}: {stdout}");
        assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
        messages.push(without_paths(&stderr));
    }
    for args in [["--format", "wandb"], ["--optimizer", "lion"], ["--clip", "off"]] {
        let (code, _, stderr) = out(toclip().args(["advise", "x"]).args(args));
        assert_eq!(code, 2);
        messages.push(stderr.lines().next().unwrap().to_owned() + "\n");
    }
    insta::assert_snapshot!("errors", messages.concat());
    // If one log of two cannot be read, the other is, and the exit status is 1.
    let (code, stdout, stderr) = out(toclip().arg("advise").arg(&nano).arg(log("log.jsonl")));
    assert_eq!(code, 1);
    assert!(stdout.contains("40 norms") && stderr.contains("nanoGPT"));
}

#[test]
fn an_error_that_nobody_reads_is_no_panic() {
    for logs in [vec!["no-such-log"], vec!["no-such-log", "nor-this"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("toclip"));
        let status = command.arg("advise").args(logs).stderr(writer).status().unwrap();
        assert_eq!(status.code(), Some(1));
    }
}
