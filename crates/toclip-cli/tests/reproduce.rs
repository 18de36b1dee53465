//! `toclip reproduce` and `toclip schedule` as a user meets them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

use std::path::Path;

use assert_cmd::Command;

fn toclip(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let cache = folder.join("cache");
    let output = Command::cargo_bin("toclip")
        .unwrap()
        .current_dir(folder)
        // No data set of the machine's owner is used.
        .env("TOCLIP_CACHE", &cache)
        .args(args)
        .output()
        .unwrap();
    let cache = cache.display().to_string();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&cache, "CACHE");
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The sections of a report as people read them.
fn sections(json: &serde_json::Value) -> String {
    let mut text = String::new();
    let list = |value: &serde_json::Value| value.as_array().unwrap().clone();
    let string = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    for section in list(&json["sections"]) {
        text += &format!("\n{}\n{}\n", string(&section["title"]), string(&section["settings"]));
        for claim in list(&section["claims"]) {
            let [verdict, paper, measured] =
                ["verdict", "paper", "measured"].map(|k| string(&claim[k]));
            text += &format!("[{verdict}] {paper}\n    {measured}\n");
        }
        for note in list(&section["notes"]) {
            text += &format!("* {}\n", string(&note));
        }
        text += &format!("> {}\n", string(&section["command"]));
    }
    text
}

#[test]
fn the_report_says_what_was_reproduced() {
    let root = tempfile::tempdir().unwrap();
    let args = ["reproduce", "--quick", "--seed", "1", "--json", "--out", "r"];
    let (code, out, err) = toclip(root.path(), &args);
    assert_eq!(code, 0, "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    insta::assert_snapshot!("report", sections(&json));
    insta::assert_snapshot!("files", names(&root.path().join("r")).join("\n"));
    let page = std::fs::read_to_string(root.path().join("r/report.html")).unwrap();
    assert!(page.contains("0.01075") && page.contains("exact compensation"));
    assert_eq!(names(root.path()), ["r"], "nothing is left beside it");
    // The experiment beside the report runs by itself.
    let args = ["run", "r/experiments/figure-4b.toml", "--methods", "ode", "--out", "again"];
    assert_eq!(toclip(root.path(), &args).0, 0);
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let root = tempfile::tempdir().unwrap();
    let args = ["reproduce", "1a", "--quick", "--json", "--seed", "7"];
    let json = || -> serde_json::Value {
        let (code, out, err) = toclip(root.path(), &args);
        assert_eq!(code, 0, "{err}");
        serde_json::from_str(&out).unwrap()
    };
    let (first, second) = (json(), json());
    assert_eq!(first["sections"], second["sections"]);
    assert_eq!(first["corrections"].as_array().unwrap().len(), 13);
}

#[test]
fn errors_say_what_is_expected() {
    let root = tempfile::tempdir().unwrap();
    let error = |args: &[&str]| {
        let (code, out, err) = toclip(root.path(), args);
        assert!(code != 0 && out.is_empty(), "{args:?}: {out}");
        err
    };
    insta::assert_snapshot!(
        [error(&["reproduce", "2c"]), error(&["reproduce", "1c"]), error(&["reproduce", "1d"]),]
            .concat()
    );
    assert!(names(root.path()).is_empty());
}

#[test]
fn networks_are_drawn_without_any_files() {
    let root = tempfile::tempdir().unwrap();
    let (code, out, err) = toclip(root.path(), &["reproduce", "6", "7", "--out", "r"]);
    assert_eq!(code, 0, "{out}{err}");
    for name in ["figure-6-1.svg", "figure-6-4.png", "figure-7.svg", "figure-6-resnet18-mse.csv"] {
        assert!(root.path().join("r").join(name).exists(), "{name}");
    }
    let svg = std::fs::read_to_string(root.path().join("r/figure-6-1.svg")).unwrap();
    for part in ["ResNet-18", "unclipped fraction (the paper's)", "batch form", "direct", "c = 0.1"]
    {
        assert!(svg.contains(part), "{part}");
    }
}

#[test]
fn a_folder_in_the_way_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("mine")).unwrap();
    std::fs::write(root.path().join("mine/thesis.tex"), "x").unwrap();
    let (code, _, err) = toclip(root.path(), &["reproduce", "2a", "--out", "mine"]);
    assert!(code != 0 && err.contains("thesis.tex"), "{err}");
    assert_eq!(names(&root.path().join("mine")), ["thesis.tex"]);
    let (code, _, err) = toclip(root.path(), &["reproduce", "2a", "--out", "mine/thesis.tex"]);
    assert!(code != 0 && err.contains("file of that name"), "{err}");
    let (code, _, err) = toclip(root.path(), &["reproduce", "2a", "--out", "mine/thesis.tex/r"]);
    assert!(code != 0 && err.contains("error: "), "{err}");
    assert_eq!(names(root.path()), ["mine"]);
}

#[test]
fn schedules_are_compared_in_words_and_written_as_tables() {
    let root = tempfile::tempdir().unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/figure-4b.toml");
    let (code, out, err) = toclip(root.path(), &["schedule", file, "--out", "s"]);
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains(
            "it ends at a risk of 0.01075, 87% below the 0.08245 of unclipped SGD. It reaches the final \
             risk of unclipped SGD at t = 4.6 of 15."
        ),
        "{out}"
    );
    let table =
        std::fs::read_to_string(root.path().join("s/figure-4b.schedule.max_ccc.csv")).unwrap();
    assert!(table.starts_with("t,step,eta,c,step_size,clip_norm,risk\n"));
    assert_eq!(table.lines().count(), 202);
    assert!(!table.contains("NaN"));
}

#[test]
fn noise_without_variance_is_no_special_case() {
    let root = tempfile::tempdir().unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/figure-1b.toml");
    let (code, out, err) = toclip(root.path(), &["schedule", file, "--json"]);
    assert_eq!(code, 0, "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let verdict = json["verdict"].as_str().unwrap();
    assert!(verdict.starts_with("Clip at") && verdict.contains("unclipped SGD diverges"), "{out}");
    assert!(json["notes"].to_string().contains("not defined"), "{out}");
    let ways = json["schedules"].as_array().unwrap();
    let best = ways.iter().find(|way| way["schedule"] == "max_ccc").unwrap();
    assert!(best["final_risk"].as_f64().unwrap() > 0.0);
    assert!(ways[0]["final_risk"].is_null());
}
