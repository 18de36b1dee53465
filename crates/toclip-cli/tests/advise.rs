//! `toclip advise` as a user meets it.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

#[path = "../../toclip-report/tests/browser/mod.rs"]
mod browser;

use assert_cmd::Command;
use std::path::PathBuf;

/// The folder of the logs, in which the command runs, so that no output has a path of this machine.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../toclip-logs/tests/data")
}

fn toclip() -> Command {
    let mut command = Command::cargo_bin("toclip").unwrap();
    command.current_dir(folder());
    command
}

fn out(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_whole_advice() {
    for (name, file, args) in [
        ("star", "star.trainer_state.json", &[][..]),
        ("mistral_no_clipping", "mistral7b-translator.trainer_state.json", &["--clip", "none"]),
        ("megatron", "megatron.log", &["--batch-size", "8", "--optimizer", "adam"]),
        ("wandb", "wandb.csv", &[]),
    ] {
        let (code, text, _) = out(toclip().arg("advise").arg(file).args(args));
        assert_eq!(code, 0);
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn a_page_and_its_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let logs = ["mistral7b-translator.trainer_state.json", "events.tensor"];
    let (code, text, _) =
        out(toclip().arg("advise").args(logs).arg("--out").arg(dir.path()).args(["--clip", "2"]));
    assert_eq!(code, 0);
    let summary = &text[text.find("Summary").unwrap()..text.find("Written").unwrap()];
    insta::assert_snapshot!("summary", summary);
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
    let bytes = std::fs::read(folder().join("torchtitan.log")).unwrap();
    let (code, text, _) = out(toclip().args(["advise", "-", "--json"]).write_stdin(bytes));
    assert_eq!(code, 0);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["logs"][0]["log"], "standard input");
    assert_eq!(json["logs"][0]["advice"]["recommendation"]["action"], "not_enough_evidence");
}

#[test]
fn the_optimizer_and_no_threshold() {
    let run = |args: &[&str]| {
        let (code, text, _) =
            out(toclip().args(["advise", "star.trainer_state.json", "--json"]).args(args));
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
    let mut messages = Vec::new();
    for args in [
        vec!["nanogpt.log"],
        vec!["no-such-log"],
        vec!["."],
        vec!["-", "--norm", "gn"],
        vec!["-", "-"],
        vec!["nanogpt.log", "--confidence", "1"],
        vec!["nanogpt.log", "--format", "csv"],
    ] {
        let (code, stdout, stderr) = out(toclip().arg("advise").args(&args).write_stdin(""));
        assert_eq!(code, 1, "{args:?}");
        assert!(stdout.is_empty(), "{args:?}: {stdout}");
        assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
        messages.push(stderr);
    }
    for wrong in ["--format=wandb", "--optimizer=lion", "--clip=off", "--clip=-1", "--clip=nan"] {
        let (code, _, stderr) = out(toclip().args(["advise", "x", wrong]));
        assert_eq!(code, 2);
        messages.push(stderr.lines().next().unwrap().to_owned() + "\n");
    }
    insta::assert_snapshot!("errors", messages.concat());
    // If one log of two cannot be read, the other is, and the exit status is 1.
    let (code, stdout, stderr) = out(toclip().args(["advise", "nanogpt.log", "log.jsonl"]));
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
