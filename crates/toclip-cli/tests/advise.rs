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
        ("star", "star.trainer_state.json", &["--verbose"][..]),
        ("mistral_no_clipping", "mistral7b-translator.trainer_state.json", &["--clip", "none"]),
        ("bad_batches", "cases/gpt/bad-batches-unclipped.jsonl.gz", &["--clip", "none"]),
        ("sgd_too_fast", "cases/gpt/sgd-too-fast.jsonl.gz", &["--optimizer", "sgd"]),
        ("megatron", "megatron.log", &["--batch-size", "8", "--optimizer", "adam"]),
        ("wandb", "wandb.csv", &[]),
        ("lightning_layers", "cases/held_out/lightning-healthy.csv.gz", &["--verbose"]),
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
    let summary = &text[text.find("Comparison").unwrap()..text.find("Wrote").unwrap()];
    insta::assert_snapshot!("summary", summary);
    let page = std::fs::read_to_string(dir.path().join("advise.html")).unwrap();
    if let Some(browser) = browser::Browser::find() {
        let found = browser.try_out(&page, 390);
        assert!(found["overflow"].as_i64() <= Some(0), "the page is too wide: {found}");
    }
    assert!(page.contains("<svg") && page.contains("mistral7b"));
    // The script has NaN; the text must not.
    assert!(!page.contains(">NaN") && !page.contains("NaN%") && !page.contains("(NaN"));
    assert!(dir.path().join("log-1-training.png").exists());
    let numbers = std::fs::read_to_string(dir.path().join("advise.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&numbers).unwrap();
    assert_eq!(json["logs"][0]["analysis"]["points"], 866);
    assert_eq!(json["logs"][0]["analysis"]["current"]["threshold"], 2.0);
    assert_eq!(json["logs"][1]["format"], "tensor_board");
}

#[test]
fn from_the_standard_input_as_json() {
    let bytes = std::fs::read(folder().join("torchtitan.log")).unwrap();
    let (code, text, _) = out(toclip().args(["advise", "-", "--json"]).write_stdin(bytes));
    assert_eq!(code, 0);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["logs"][0]["log"], "standard input");
    assert_eq!(json["logs"][0]["recommendation"]["action"], "cannot_tell");
}

#[test]
fn the_optimizer_and_no_threshold() {
    let run = |args: &[&str]| {
        let (code, text, _) =
            out(toclip().args(["advise", "star.trainer_state.json", "--json"]).args(args));
        assert_eq!(code, 0);
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["logs"][0].clone()
    };
    for clip in ["none", "inf"] {
        let none = run(&["--clip", clip, "--batch-size", "512", "--optimizer", "sgd"]);
        assert_eq!(none["analysis"]["current"]["threshold"], "none");
        assert_eq!(none["analysis"]["optimizer"], "sgd");
    }
    assert_eq!(
        run(&["--optimizer", "AdamW"])["recommendation"]["rate_factor"],
        serde_json::Value::Null
    );
}

#[test]
fn errors_are_one_line() {
    let mut messages = Vec::new();
    for args in [
        vec!["nanogpt.log"],
        vec!["no-such-log"],
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
    for (option, wrong) in [
        ("--format", "excel"),
        ("--optimizer", "lbfgs"),
        ("--clip", "off"),
        ("--clip", "-1"),
        ("--clip", "nan"),
        ("--batch-size", "many"),
    ] {
        let (code, _, stderr) = out(toclip().args(["advise", "x", option, wrong]));
        assert_eq!(code, 2);
        messages.push(stderr.lines().next().unwrap().to_owned() + "\n");
    }
    insta::assert_snapshot!("errors", messages.concat());
    // If one log of two cannot be read, the other is, and the exit status is 1.
    let (code, stdout, stderr) = out(toclip().args(["advise", "nanogpt.log", "log.jsonl"]));
    assert_eq!(code, 1);
    assert!(stdout.contains("40 norms") && stderr.contains("nanoGPT"));
    let empty = tempfile::tempdir().unwrap();
    let (code, _, stderr) = out(toclip().arg("advise").arg(".").current_dir(empty.path()));
    assert_eq!(code, 1);
    insta::assert_snapshot!("empty_folder", stderr);
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

/// The log grows, breaks off in the middle of a line, is replaced by a shorter one and diverges; each is
/// told once, and Ctrl-C ends the command.
#[cfg(unix)]
#[test]
fn a_log_is_followed() {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::process::Stdio;
    let unpacked = |name: &str| {
        let path = folder().join("cases/gpt").join(name);
        let mut text = String::new();
        let file = std::fs::File::open(path).unwrap();
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
        text.lines().map(String::from).collect::<Vec<_>>()
    };
    let (bad, fast) =
        (unpacked("bad-batches-unclipped.jsonl.gz"), unpacked("sgd-too-fast.jsonl.gz"));
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log.jsonl");
    // Whole or not at all, so that no half of it is read.
    let put = |lines: &[String]| {
        let other = dir.path().join("other");
        std::fs::write(&other, lines.join("\n") + "\n").unwrap();
        std::fs::rename(&other, &log).unwrap();
    };
    put(&bad[..650]);
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("toclip"))
        .args([
            "advise",
            "--follow",
            "log.jsonl",
            "--clip",
            "none",
            "--optimizer",
            "adam",
            "--quiet",
        ])
        .current_dir(dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    // A line takes seconds; a test that waits for ever tells nothing.
    let until = |says: &str| {
        let mut text = String::new();
        while !text.contains(says) {
            text += &receiver.recv_timeout(std::time::Duration::from_secs(120)).unwrap();
            text.push('\n');
        }
        text
    };
    until("log.jsonl step 650: → Clip at 1.6, as a guard against spikes.");
    let mut file = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
    file.write_all((bad[650..720].join("\n") + "\n{\"step\": 721, \"lo").as_bytes()).unwrap();
    drop(file);
    until("log.jsonl step 720: 1 spike, at step 701");
    // A shorter file in its place, and then a longer one.
    put(&fast[..300]);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    put(&fast);
    assert!(until("→ Lower the learning rate").contains("The run diverged"));
    // Of all signals Ctrl-C is the one that people send.
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
