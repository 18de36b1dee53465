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

#[test]
fn the_answers_come_in_order() {
    let (code, text, _) = out(toclip().arg("advise").arg(log("star.trainer_state.json")));
    assert_eq!(code, 0);
    let places: Vec<usize> = [
        "Hugging Face trainer_state.json: 2000 norms",
        "learning rate `lr`",
        "One row every 20 steps",
        "1. What the present setting does",
        "it fires at 100%",
        "hidden learning rate",
        "2. What the norms look like",
        "Tail index 2",
        "3. Where the criteria stand",
        "CCC = ",
        "4. What to do",
        "5. What other rules would have done",
        "AutoClip, 10th percentile",
        "ZClip",
    ]
    .iter()
    .map(|words| text.find(words).unwrap_or_else(|| panic!("{words} not in\n{text}")))
    .collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn a_page_and_its_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let logs = [log("mistral7b-translator.trainer_state.json"), log("events.tensor")];
    let (code, text, _) =
        out(toclip().arg("advise").args(&logs).arg("--out").arg(dir.path()).args(["--clip", "2"]));
    assert_eq!(code, 0);
    assert!(text.contains("Side by side") && text.contains("2 fires at"), "{text}");
    let page = std::fs::read_to_string(dir.path().join("advise.html")).unwrap();
    if let Some(browser) = browser::Browser::find() {
        let found = browser.try_out(&page, 390);
        assert!(found["overflow"].as_i64() <= Some(0), "the page is too wide: {found}");
    }
    assert!(page.contains("<svg") && page.contains("mistral7b"));
    // The script speaks of NaN; the text must not.
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
    let none = run(&["--clip", "inf", "--batch-size", "512", "--optimizer", "sgd"]);
    assert_eq!(none["current"]["threshold"], "inf");
    assert_eq!(none["optimizer"], "sgd");
    assert_eq!(
        run(&["--optimizer", "AdamW"])["recommendation"]["rate_change"],
        serde_json::Value::Null
    );
    let (code, _, stderr) = out(toclip().args(["advise", "x", "--optimizer", "lion"]));
    assert_eq!(code, 2);
    assert!(stderr.contains("give sgd, or adam"), "{stderr}");
}

#[test]
fn what_is_wrong_is_said_in_a_line() {
    let nano = log("nanogpt.log");
    for (args, says) in [
        (vec![nano.to_str().unwrap()], "nanoGPT prints the loss but not the norm"),
        (vec!["/nowhere/at/all"], "/nowhere/at/all"),
        (vec![nano.parent().unwrap().to_str().unwrap()], "this is a folder"),
        (vec!["-", "--norm", "gn"], "the log is empty"),
        (vec!["-", "-"], "only once"),
        (vec![nano.to_str().unwrap(), "--clip=-1"], "no gradient norm"),
    ] {
        let (code, stdout, stderr) = out(toclip().arg("advise").args(&args).write_stdin(""));
        assert_eq!(code, 1, "{args:?}");
        assert!(stdout.is_empty() && stderr.contains(says), "{args:?}: {stderr}");
        assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
    }
    let (code, _, stderr) = out(toclip().args(["advise", "x", "--format", "wandb"]));
    assert_eq!(code, 2);
    assert!(stderr.contains("the formats are trainer-state, jsonl"), "{stderr}");
    // One log of two that cannot be read: the other is, and the status says so.
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
