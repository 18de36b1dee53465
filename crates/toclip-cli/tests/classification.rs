//! `toclip run` and `toclip schedule` on generalised linear models, from outside.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod support;

use support::run;

const EXPERIMENT: &str = r#"
name = "A classification"
model = { kind = "logistic", flips = 0.2 }
teacher = { kind = "uniform", norm = 4.0 }
spectrum = { kind = "power_law", dim = 60, exponent = 0.5 }
time = 4.0
learning_rate = 1.0
clip = 0.3
points = 9
methods = ["ode", "unclipped", "sgd"]
ensemble = { runs = 20, seed = 3 }
"#;

fn folder(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("e.toml"), text).unwrap();
    folder
}

#[test]
fn a_run_writes_tables_and_charts_and_says_how_it_ended() {
    let root = folder(EXPERIMENT);
    let (code, out, err) = run(root.path(), &["run", "e.toml", "--threads", "1"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let said: String =
        out.lines().filter(|l| !l.starts_with("Time: ")).map(|l| format!("{l}\n")).collect();
    insta::assert_snapshot!("run", said);
    let read =
        |name: &str| std::fs::read_to_string(root.path().join("results").join(name)).unwrap();
    let table = read("e.trajectory.csv");
    assert!(table.starts_with("method,t,loss,loss_mean,loss_low,loss_high,error_rate,"), "{table}");
    assert_eq!(table.lines().count(), 1 + 3 * 9);
    assert!(!table.contains("NaN") && table.contains("0.6931471805599453"));
    assert!(read("e.svg").contains("cross-entropy (nats)"));
    let json: serde_json::Value = serde_json::from_str(&read("e.json")).unwrap();
    assert_eq!(json["experiment"]["model"]["flips"], 0.2);
    assert_eq!(json["report"]["methods"][2]["runs"], 20);
    // The same bits on two threads.
    run(root.path(), &["run", "e.toml", "--threads", "2", "--out", "again", "--quiet"]);
    let again = std::fs::read_to_string(root.path().join("again/e.trajectory.csv")).unwrap();
    assert_eq!(table, again);
}

#[test]
fn schedules_are_tuned_clipped_and_not() {
    let root = folder(EXPERIMENT);
    let (code, out, err) = run(root.path(), &["schedule", "e.toml"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    // Rates are found to half a per cent, so their digits are not for a snapshot.
    for line in ["unclipped, best constant rate", "unclipped, best cosine rate", "as in the file"] {
        assert!(out.contains(line), "{out}");
    }
    assert!(out.contains("Do not clip: with tuned rates no threshold lowers the loss"), "{out}");
    let table = root.path().join("results/e.schedule.unclipped.csv");
    let table = std::fs::read_to_string(table).unwrap();
    assert!(table.starts_with("t,step,eta,c,step_size,clip_norm,loss,error_rate,angle"), "{table}");
}

/// The table of docs/classification.md: at a constant rate c = 0.48 ends 0.7% lower.
#[test]
fn the_verdict_names_threshold_and_gain() {
    let root = folder(
        "model = { kind = 'logistic', flips = 0.1 }\nteacher = { kind = 'uniform', norm = 3.0 }\n\
         spectrum = { kind = 'isotropic', dim = 1000 }\ntime = 10\nlearning_rate = 1\nclip = 0.1\n\
         methods = ['ode']",
    );
    let (_, out, err) = run(root.path(), &["schedule", "e.toml"]);
    let verdict = out.lines().find(|line| line.starts_with("Clip")).unwrap_or(&err);
    assert!(verdict.starts_with("Clip at c = 0.48"), "{verdict}");
    assert!(verdict.contains("0.5574 instead of 0.5611, 0.65% lower. That is less"), "{verdict}");
}

#[test]
fn what_is_not_possible_is_one_sentence() {
    let root = folder(EXPERIMENT);
    let mut said = String::new();
    for args in [
        &["run", "e.toml", "--resume"][..],
        &["run", "e.toml", "--methods", "hsgd"],
        &["schedule", "e.toml", "--runs", "5"],
    ] {
        let (code, out, err) = run(root.path(), args);
        assert!(code != 0 && out.is_empty() && err.lines().count() == 1, "{err}");
        said += &err;
    }
    insta::assert_snapshot!("refused", said);
}
