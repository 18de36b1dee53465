//! Advice on logs of real runs whose cause is known.
//!
//! Each folder has a `cases.json` that says what was done to each run and what a good answer finds. The
//! logs in `gpt` are of a GPT of four layers on WikiText-2 bytes; those in `small` and `held_out` are of
//! small models and are written by `scripts/advice-cases`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toclip_logs::{Action, Advice, AdviceOptions, Framework, Log, ReadOptions, advise, load};

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases").join(name)
}

fn cases(folder: &Path) -> BTreeMap<String, Value> {
    serde_json::from_reader(File::open(folder.join("cases.json")).unwrap()).unwrap()
}

/// The log of a case, packed or not.
fn log(folder: &Path, name: &str) -> Log {
    let packed = folder.join(format!("{name}.gz"));
    let path = if packed.exists() { packed } else { folder.join(name) };
    load(File::open(path).unwrap(), &ReadOptions::default()).unwrap()
}

/// The options that the flags of a case stand for.
fn options(case: &Value) -> AdviceOptions {
    let flags: Vec<&str> = strings(&case["flags"]);
    let mut options = AdviceOptions {
        batch_size: Some(case["batch"].as_f64().unwrap_or(32.0)),
        ..AdviceOptions::default()
    };
    for pair in flags.chunks(2) {
        match pair {
            ["--clip", "none"] => options.clip = Some(f64::INFINITY),
            ["--clip", c] => options.clip = Some(c.parse().unwrap()),
            ["--optimizer", name] => options.optimizer = Some(name.parse().unwrap()),
            other => panic!("{other:?}"),
        }
    }
    options
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

/// What is wrong with the advice for a case.
fn mistakes(case: &Value, log: &Log, advice: &Advice) -> Vec<String> {
    let json = serde_json::to_value(advice).unwrap();
    let findings = json["findings"].as_array().unwrap();
    let codes: Vec<&str> = findings.iter().filter_map(|f| f["code"].as_str()).collect();
    let mut wrong = Vec::new();
    for code in strings(&case["findings"]).into_iter().filter(|code| !codes.contains(code)) {
        wrong.push(format!("not found: {code}"));
    }
    for code in strings(&case["forbidden"]).into_iter().filter(|code| codes.contains(code)) {
        wrong.push(format!("wrongly found: {code}"));
    }
    let r = &json["recommendation"];
    let actions = strings(&case["actions"]);
    if !actions.is_empty() && !actions.contains(&r["action"].as_str().unwrap()) {
        wrong.push(format!("action {}", r["action"]));
    }
    let seen: Vec<f64> = findings.iter().flat_map(|f| numbers(&f["steps"])).collect();
    if seen.len() as f64 > case["max_steps"].as_f64().unwrap_or(f64::INFINITY) {
        wrong.push(format!("{} steps listed", seen.len()));
    }
    for step in numbers(&case["steps"]) {
        if !seen.iter().any(|s| (s - step).abs() <= 2.0) {
            wrong.push(format!("no event at step {step}"));
        }
    }
    let threshold = r["threshold"].as_f64();
    if let [low, high] = numbers(&case["threshold"])[..]
        && !threshold.is_some_and(|c| (low..=high).contains(&c))
    {
        wrong.push(format!("threshold {threshold:?}"));
    }
    if let (Some(c), "guard" | "clip") = (threshold, r["action"].as_str().unwrap()) {
        let fires = log.points.iter().filter(|p| p.norm > c).count() as f64;
        let share = fires / log.points.len() as f64;
        if (share - r["fires"].as_f64().unwrap()).abs() > 1e-9 {
            wrong.push(format!("it fires at {share}, not {}", r["fires"]));
        }
        if share > case["max_fires"].as_f64().unwrap_or(0.2) {
            wrong.push(format!("it clips {share}"));
        }
        if log.points.iter().all(|p| p.norm < c) {
            wrong.push("the threshold is above every norm".into());
        }
    }
    if r["rate_factor"].as_f64().is_some_and(|factor| factor > 1.0) {
        wrong.push("a larger learning rate".into());
    }
    wrong
}

/// Checks every case of a folder, and keeps the verdicts for people to read.
fn check(set: &str) {
    let folder = folder(set);
    let (mut wrong, mut text) = (Vec::new(), String::new());
    for (name, case) in cases(&folder) {
        let log = log(&folder, &name);
        let advice = advise(&log, &options(&case)).unwrap();
        wrong.extend(mistakes(&case, &log, &advice).iter().map(|what| format!("{name}: {what}")));
        let verdict = advice.verdict(Framework::of(&log));
        let _ = writeln!(text, "{name}\n  cause: {}", case["cause"].as_str().unwrap());
        let _ = writeln!(text, "  {:?}: {}", verdict.tone, verdict.headline);
        for reason in verdict.reasons {
            let _ = writeln!(text, "  - {reason}");
        }
        text.push('\n');
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    insta::assert_snapshot!(set, text);
}

#[test]
fn causes_in_a_gpt() {
    check("gpt");
}

#[test]
fn causes_in_small_models() {
    check("small");
}

/// Logs in other formats, which were not looked at before the advice was finished: all 15 were answered
/// well at the first try.
#[test]
fn causes_in_logs_that_were_held_out() {
    check("held_out");
}

/// Whatever the user says about optimizer, threshold and batch size: no larger rate, no threshold above
/// every norm, and none that clips more than a fifth of the steps.
#[test]
fn no_option_makes_the_advice_harmful() {
    for set in ["gpt", "small", "held_out"] {
        let folder = folder(set);
        for (name, _) in cases(&folder) {
            let log = log(&folder, &name);
            let largest = log.points.iter().map(|p| p.norm).fold(0.0, f64::max);
            for optimizer in [None, Some("sgd"), Some("adam")] {
                for clip in [None, Some(f64::INFINITY), Some(1.0), Some(0.01), Some(1e4)] {
                    for batch_size in [None, Some(1.0), Some(4096.0)] {
                        let optimizer = optimizer.map(|name| name.parse().unwrap());
                        let options =
                            AdviceOptions { clip, batch_size, optimizer, ..Default::default() };
                        let r = advise(&log, &options).unwrap().recommendation;
                        let at = format!("{name} {options:?}: {r:?}");
                        assert!(r.rate_factor.is_none_or(|factor| factor <= 1.0), "{at}");
                        if matches!(r.action, Action::Guard | Action::Clip) {
                            assert!(r.threshold.unwrap() <= largest, "{at}");
                            assert!(r.fires.unwrap() <= 0.2, "{at}");
                        }
                        if r.action == Action::Keep && clip.is_some() {
                            assert_eq!(r.threshold, clip.filter(|c| c.is_finite()), "{at}");
                        }
                    }
                }
            }
        }
    }
}
