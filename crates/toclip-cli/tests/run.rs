//! `toclip run` from outside: what it writes, what it says, and that nothing can make the tables
//! come out differently.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

use assert_cmd::Command;
use assert_cmd::cargo::cargo_bin;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Small enough for a test.
const EXPERIMENT: &str = r#"
name = "A test"
spectrum = { kind = "power_law", dim = 60, exponent = 0.5 }
start = { kind = "uniform", norm = 1.0 }
noise = { family = "student_t", df = 1.0, scale = 0.5 }
time = 4.0
learning_rate = 0.6
clip = 0.4
points = 21
methods = ["ode", "volterra", "hsgd", "sgd"]
ensemble = { runs = 40, seed = 3, confidence = 0.8 }
"#;

fn folder(text: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("e.toml"), text).unwrap();
    folder
}

fn toclip(folder: &Path, args: &str) -> Command {
    let mut command = Command::new(cargo_bin!("toclip"));
    command.current_dir(folder).args(args.split_whitespace());
    command
}

/// What a command prints that succeeds.
fn prints(folder: &Path, args: &str) -> String {
    let output = toclip(folder, args).assert().success().get_output().clone();
    String::from_utf8(output.stdout).unwrap()
}

/// The same without the lines that differ from run to run.
fn summary(folder: &Path, args: &str) -> String {
    let text = prints(folder, args);
    text.lines()
        .filter(|line| !line.starts_with("Time: "))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// The message of a command that fails.
fn says(folder: &Path, args: &str) -> String {
    let output = toclip(folder, args).assert().failure().get_output().clone();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("error: ") && text.lines().count() == 1, "{text}");
    text
}

/// Every file in a folder, with its bytes; not what a killed process had not finished writing.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap()))
        .filter(|(name, _)| !name.starts_with(".toclip-"))
        .collect()
}

fn rows(table: &str) -> Vec<csv::StringRecord> {
    csv::Reader::from_reader(table.as_bytes()).records().map(Result::unwrap).collect()
}

fn start(folder: &Path, args: &str) -> Child {
    std::process::Command::new(cargo_bin!("toclip"))
        .current_dir(folder)
        .args(args.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_run_writes_tables_plots_and_a_summary() {
    let folder = folder(EXPERIMENT);
    insta::assert_snapshot!(summary(folder.path(), "run e.toml"));
    let written = files(&folder.path().join("results"));
    let names: Vec<&str> = written.keys().map(String::as_str).collect();
    let expected = ["e.json", "e.png", "e.svg", "e.trajectory.csv", "e.trajectory.parquet"];
    assert_eq!(names, expected);

    let table = std::str::from_utf8(&written["e.trajectory.csv"]).unwrap();
    assert!(!table.contains("NaN"));
    let rows = rows(table);
    assert_eq!(rows.len(), 4 * 21);
    // The integral equation and the ODE are two ways to the same curve.
    let risk = |method: &str, k: usize| -> f64 {
        rows.iter().filter(|r| &r[0] == method).nth(k).unwrap()[2].parse().unwrap()
    };
    for k in 0..21 {
        assert!((risk("ode", k) / risk("volterra", k) - 1.0).abs() < 1e-7);
    }

    let about: serde_json::Value = serde_json::from_slice(&written["e.json"]).unwrap();
    assert_eq!(about["toclip"], env!("CARGO_PKG_VERSION"));
    assert_eq!(about["experiment"]["ensemble"]["runs"], 40);
    assert!(about["report"]["largest_gap"]["relative"].as_f64().unwrap() < 0.5);
    // The experiment in the metadata gives the same files when it is run.
    let toml = about["toml"].as_str().unwrap();
    let other = self::folder(toml);
    toclip(other.path(), "run e.toml").assert().success();
    assert_eq!(files(&other.path().join("results")), written);
    let parquet = &written["e.trajectory.parquet"];
    assert!(parquet.windows(toml.len()).any(|w| w == toml.as_bytes()));
}

#[test]
fn threads_and_options_on_the_command_line() {
    let folder = folder(EXPERIMENT);
    let at = |args: &str, out: &str| {
        toclip(folder.path(), &format!("run e.toml {args} --out {out}")).assert().success();
        files(&folder.path().join(out))
    };
    let one = at("--threads 1", "one");
    assert_eq!(one, at("--threads 3", "three"));
    let other = at("--seed 4", "seed");
    assert_ne!(one["e.trajectory.csv"], other["e.trajectory.csv"]);

    let few = prints(folder.path(), "run e.toml --methods ode,sgd --runs 5 --json --out few");
    let few: serde_json::Value = serde_json::from_str(&few).unwrap();
    assert_eq!(few["report"]["methods"][1]["runs"], 5);
    assert_eq!(few["report"]["methods"].as_array().unwrap().len(), 2);
    assert!(few["seconds"]["sgd"].is_number() && few["files"].as_array().unwrap().len() == 5);
    let quiet = toclip(folder.path(), "run e.toml --quiet --out q").assert().success();
    assert!(quiet.get_output().stdout.is_empty() && quiet.get_output().stderr.is_empty());
}

#[test]
fn divergence_is_told_and_leaves_partial_tables() {
    let text = EXPERIMENT
        .replace("learning_rate = 0.6", "learning_rate = 9.0")
        .replace("clip = 0.4", "clip = \"none\"")
        .replace("family = \"student_t\", df = 1.0, scale", "family = \"gaussian\", sigma")
        .replace("time = 4.0", "time = 60.0");
    let folder = folder(&text);
    insta::assert_snapshot!(summary(folder.path(), "run e.toml"));
    let table = std::fs::read_to_string(folder.path().join("results/e.trajectory.csv")).unwrap();
    let rows = rows(&table);
    assert!(rows.len() < 4 * 21 && rows.len() >= 4, "{table}");
    assert!(rows.iter().all(|r| r[2].parse::<f64>().unwrap().is_finite()), "{table}");
    assert!(!table.contains("NaN"));
}

#[test]
fn mistakes_get_one_clear_line() {
    let folder = folder(EXPERIMENT);
    let write = |text: &str| std::fs::write(folder.path().join("e.toml"), text).unwrap();
    std::fs::write(folder.path().join("taken"), "").unwrap();
    let mut all = String::new();
    for args in [
        "run gone.toml",
        "run e.toml --out taken",
        "run e.toml --out taken --methods ode",
        "run e.toml --methods ode,ode",
    ] {
        all += &format!("$ toclip {args}\n{}", says(folder.path(), args));
    }
    for (before, after) in [
        ("learning_rate = 0.6", "learning_rat = 0.6"),
        ("kind = \"power_law\", dim = 60, exponent = 0.5", "kind = \"file\", path = \"k.csv\""),
        ("family = \"student_t\"", "family = \"student\""),
        ("clip = 0.4", "clip = nan"),
        ("clip = 0.4", "clip = { kind = \"proportional\" }"),
        ("clip = 0.4", "clip = { kind = \"cosine\", from = 1, over = 2 }"),
        ("learning_rate = 0.6", "learning_rate = \"greedy\""),
        ("learning_rate = 0.6", "learning_rate = inf"),
        ("time = 4.0", "time = 1e18"),
        ("runs = 40", "runs = 0"),
        ("runs = 40", "runs = 100000000000"),
    ] {
        write(&EXPERIMENT.replace(before, after));
        all += &format!("{after}\n{}", says(folder.path(), "run e.toml"));
    }
    write(
        "criteria = { curves = [\"ccc\"], risk = 1, threshold = [0.1, 2] }\n\
           noise = { family = \"student_t\", df = 1, scale = 1 }",
    );
    for args in ["run e.toml", "run e.toml --runs 3", "schedule e.toml"] {
        all += &format!("$ toclip {args} (criteria)\n{}", says(folder.path(), args));
    }
    insta::assert_snapshot!(all);
    for args in ["run e.toml --runs 0", "schedule e.toml --runs 0"] {
        let output = toclip(folder.path(), args).assert().failure().get_output().clone();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("expected an integer from 1 to 1e9"), "{text}");
    }
}

#[test]
fn a_learning_rate_that_is_too_large_is_named_as_the_cause() {
    let text = EXPERIMENT
        .replace("learning_rate = 0.6", "learning_rate = 1e200")
        .replace("family = \"student_t\", df = 1.0, scale", "family = \"gaussian\", sigma")
        .replace("clip = 0.4", "clip = inf");
    let folder = folder(&text);
    insta::assert_snapshot!(summary(folder.path(), "run e.toml --methods ode"));
}

#[test]
fn criteria_are_curves_in_a_table_a_plot_and_a_summary() {
    let folder = folder(
        r#"
name = "Two noises"
[criteria]
curves = ["csc", "ccc"]
risk = 3.0
threshold = [0.1, 15.0]
points = 50
noises = [
    { label = "Gaussian", noise = { family = "gaussian", sigma = 5.0 } },
    { noise = { family = "laplace", sigma = 5.0 } },
]
"#,
    );
    insta::assert_snapshot!(summary(folder.path(), "run e.toml"));
    let written = files(&folder.path().join("results"));
    let names: Vec<&str> = written.keys().map(String::as_str).collect();
    assert_eq!(names, ["e.criteria.csv", "e.criteria.parquet", "e.json", "e.png", "e.svg"]);
    assert_eq!(rows(std::str::from_utf8(&written["e.criteria.csv"]).unwrap()).len(), 50);
    // The experiment in the JSON gives the same files when it is run.
    let about: serde_json::Value = serde_json::from_slice(&written["e.json"]).unwrap();
    let other = self::folder(about["toml"].as_str().unwrap());
    toclip(other.path(), "run e.toml").assert().success();
    assert_eq!(files(&other.path().join("results")), written);
    // Both in one file.
    let both =
        format!("{EXPERIMENT}criteria = {{ curves = ['max_ccc'], risk = [0.1, 1], points = 3 }}\n")
            .replace("family = \"student_t\", df = 1.0, scale", "family = \"gaussian\", sigma");
    let both = self::folder(&both);
    toclip(both.path(), "run e.toml --methods ode").assert().success();
    let names: Vec<String> = files(&both.path().join("results")).into_keys().collect();
    assert_eq!(names.len(), 9, "{names:?}");
}

#[test]
fn every_policy_runs() {
    let gaussian = EXPERIMENT
        .replace("family = \"student_t\", df = 1.0, scale", "family = \"laplace\", sigma");
    for policy in [
        "learning_rate = 0.6\nclip = \"inf\"",
        "learning_rate = \"greedy\"\nclip = \"max_ccc\"",
        "learning_rate = 0.6\nclip = { kind = \"online\", memory = 100 }",
        "learning_rate = 6.0\nclip = \"none\"\nmargin = 0.9",
        "learning_rate = inf\nclip = 2.0\nmargin = { kind = \"predicted\", margin = 0.5, time = 4 }",
    ] {
        let folder = folder(&gaussian.replace("learning_rate = 0.6\nclip = 0.4", policy));
        let args = "run e.toml --methods ode,sgd --runs 3 --json";
        let found: serde_json::Value = serde_json::from_str(&prints(folder.path(), args)).unwrap();
        let methods = found["report"]["methods"].as_array().unwrap();
        for method in methods {
            assert!(method["end"]["risk"].as_f64().unwrap() < 0.5, "{policy}: {method}");
        }
    }
}

#[test]
fn schedule_compares_the_rule_of_the_file() {
    let mut all = String::new();
    for clip in ["0.9", "\"none\"", "\"max_ccc\"", "{ kind = \"proportional\", kappa = 0.5 }"] {
        let text = EXPERIMENT
            .replace("family = \"student_t\", df = 1.0, scale", "family = \"laplace\", sigma")
            .replace("clip = 0.4", &format!("clip = {clip}"));
        let folder = folder(&text);
        all += &format!("clip = {clip}\n{}\n", prints(folder.path(), "schedule e.toml"));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_run_names_what_its_factors_leave_out() {
    let at = |more: &str| {
        let text = EXPERIMENT
            .replace(
                "family = \"student_t\", df = 1.0, scale = 0.5",
                "family = \"rademacher\", lambda = 1.0, p = 0.2",
            )
            .replace("norm = 1.0", "norm = 0.03")
            .replace("clip = 0.4", "clip = 1.0")
            .replace("[\"ode\", \"volterra\", \"hsgd\", \"sgd\"]", "[\"ode\"]");
        let folder = folder(&format!("{text}{more}\n"));
        prints(folder.path(), "run e.toml")
    };
    // The threshold is among the outliers: skipping moves away from the solution.
    assert!(at("rule = \"skip\"").contains("below 0: the rule moves away"));
    assert!(at("momentum = { kind = \"average\", beta = 0.9 }").contains("momentum with β = 0.9"));
    assert!(at("privacy = { noise_multiplier = 0.1 }").contains("noise multiplier of 0.1"));
}

#[test]
fn rules_for_coordinates_need_the_coordinates_of_the_covariance() {
    let spectrum = "kind = \"power_law\", dim = 60, exponent = 0.5";
    let text = EXPERIMENT
        .replace(spectrum, "kind = \"file\", path = \"k.csv\"")
        .replace("[\"ode\", \"volterra\", \"hsgd\", \"sgd\"]", "[\"ode\"]");
    let folder = folder(&format!("{text}rule = \"by_value\"\n"));
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("k.csv", "2,0.5\n0.5,1\n");
    let dense = says(folder.path(), "run e.toml");
    assert!(dense.contains("a 2 x 2 covariance that is not"), "{dense}");
    write("k.csv", "2,0\n0,1\n");
    let found = summary(folder.path(), "run e.toml");
    assert!(found.contains("a diagonal 2 x 2 covariance"), "{found}");
    assert!(found.contains("on average over the directions"), "{found}");
    write("e.toml", &format!("{text}groups = [{{ size = 1 }}, {{ size = 1 }}]\n"));
    let groups = says(folder.path(), "run e.toml");
    assert!(groups.contains("groups: groups are coordinates"), "{groups}");
}

#[test]
fn files_beside_the_experiment_are_read() {
    let spectrum = "kind = \"power_law\", dim = 60, exponent = 0.5";
    let noise = "family = \"student_t\", df = 1.0, scale = 0.5";
    let text = EXPERIMENT
        .replace(spectrum, "kind = \"file\", path = \"k.csv\"")
        .replace(noise, "family = \"empirical\", file = \"r.csv\"");
    let folder = folder(&text);
    let values: Vec<String> = (1..=30).map(|j| format!("{}", 3.0 / f64::from(j))).collect();
    std::fs::write(folder.path().join("k.csv"), values.join("\n")).unwrap();
    std::fs::write(folder.path().join("r.csv"), "-1\n0.5\n0.5\n").unwrap();
    let inside = folder.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    insta::assert_snapshot!(summary(&inside, "run ../e.toml"));
}

/// Many runs, so that a kill at a random moment hits one of them.
fn long(runs: usize) -> String {
    EXPERIMENT.replace("runs = 40", &format!("runs = {runs}")).replace("time = 4.0", "time = 40.0")
}

/// Starts a run and kills it with SIGKILL, again and again until it comes to its end.
fn killed(folder: &Path, threads: u64, mut pause: impl FnMut() -> u64) -> usize {
    for kills in 0.. {
        let mut child = start(folder, &format!("run e.toml --resume --threads {threads}"));
        // A little longer each time, so that there is an end.
        std::thread::sleep(Duration::from_millis(pause() + 10 * kills as u64));
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
        }
        let status = child.wait().unwrap();
        if status.code().is_some() {
            assert!(status.success(), "{status}");
            return kills;
        }
    }
    unreachable!()
}

/// Many runs of logistic regression.
const LONG_GLM: &str = r#"
model = { kind = "logistic", flips = 0.2 }
teacher = { kind = "uniform", norm = 4.0 }
spectrum = { kind = "power_law", dim = 60, exponent = 0.5 }
time = 40.0
learning_rate = 1.0
clip = 0.3
points = 9
methods = ["ode", "sgd"]
ensemble = { runs = 200, seed = 3 }
"#;

fn kill_and_compare(text: &str, rounds: u64, longest: u64) -> usize {
    let whole = folder(text);
    toclip(whole.path(), "run e.toml").assert().success();
    let expected = files(&whole.path().join("results"));
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut kills = 0;
    for round in 0..rounds {
        let broken = folder(text);
        kills += killed(broken.path(), 1 + round % 2, || {
            random = random.wrapping_mul(0xda94_2042_e4dd_58b5).wrapping_add(1);
            5 + (random >> 33) % longest
        });
        let found = files(&broken.path().join("results"));
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (name, bytes) in &expected {
            assert!(found[name] == *bytes, "{name} differs in round {round}");
        }
    }
    kills
}

#[test]
fn a_killed_run_resumes_to_the_same_bytes() {
    kill_and_compare(&long(200), 3, 200);
}

#[test]
fn a_killed_classification_resumes_to_the_same_bytes() {
    let kills = kill_and_compare(LONG_GLM, 3, 100);
    assert!(kills >= 3, "only {kills} kills");
}

#[test]
#[ignore = "takes a minute: kills a run at random moments, many times"]
fn a_run_killed_many_times_resumes_to_the_same_bytes() {
    let kills = kill_and_compare(&long(1000), 15, 600);
    println!("{kills} kills");
    assert!(kills >= 15, "only {kills} kills");
}

/// Waits until so much progress is saved.
fn wait_for_progress(folder: &Path, child: &mut Child) {
    let progress = folder.join("results/e.progress");
    while std::fs::metadata(&progress).map_or(0, |m| m.len()) < 50_000 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was stopped");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn resuming_checks_the_experiment() {
    let text = long(100_000);
    let folder = folder(&text);
    let mut child = start(folder.path(), "run e.toml");
    wait_for_progress(folder.path(), &mut child);
    let error = says(folder.path(), "run e.toml --resume");
    assert!(error.contains("another toclip run is writing to"), "{error}");
    child.kill().unwrap();
    child.wait().unwrap();
    let error = says(folder.path(), "run e.toml");
    assert!(error.contains("finished runs of an interrupted toclip run; add --resume"), "{error}");
    let error = says(folder.path(), "run e.toml --resume --seed 9");
    assert!(error.contains("cannot resume") && error.contains("seed was 3 and is 9"), "{error}");
    let changed = text.replace("clip = 0.4", "clip = 0.5");
    std::fs::write(folder.path().join("e.toml"), changed).unwrap();
    let error = says(folder.path(), "run e.toml --resume");
    assert!(error.contains("clip was 0.4 and is 0.5"), "{error}");
    // Fewer runs than are saved: the same runs, the same tables as from the start.
    std::fs::write(folder.path().join("e.toml"), &text).unwrap();
    toclip(folder.path(), "run e.toml --resume --runs 3").assert().success();
    toclip(folder.path(), "run e.toml --out fresh --runs 3").assert().success();
    assert_eq!(files(&folder.path().join("results")), files(&folder.path().join("fresh")));
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_and_says_how_to_go_on() {
    let folder = folder(&long(100_000));
    let mut child = start(folder.path(), "run e.toml");
    wait_for_progress(folder.path(), &mut child);
    let interrupt = ["-INT", &child.id().to_string()];
    assert!(std::process::Command::new("kill").args(interrupt).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("runs are saved in results/e.progress"), "{text}");
    assert!(text.contains("toclip run e.toml --out results --resume"), "{text}");
    assert!(!folder.path().join("results/e.trajectory.csv").exists());
}

#[test]
fn the_schema_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let schema: serde_json::Value = serde_json::from_str(&prints(folder.path(), "schema")).unwrap();
    assert!(schema["properties"]["clip"].is_object());
}

#[test]
fn the_rate_of_theorem_1_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let args = "convergence --dims 100,1000,10000 --runs 60 --time 1 --sigma 0.5 --json \
                --plot r.svg --out r.csv";
    let rate: serde_json::Value = serde_json::from_str(&prints(folder.path(), args)).unwrap();
    let slope = rate["rate"]["slope"].as_f64().unwrap();
    // The standard error of the slope is near 0.02; the seed is fixed.
    assert!((slope + 0.5).abs() < 0.1, "{slope}");
    let table = std::fs::read_to_string(folder.path().join("r.csv")).unwrap();
    assert_eq!(rows(&table).len(), 3);
    assert!(folder.path().join("r.svg").exists());
    let refused = toclip(folder.path(), "convergence --clip 0").assert().failure();
    let error = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(error.contains("expected a positive number, or none for no clipping"), "{error}");
    assert!(
        says(folder.path(), "convergence --noise gaussian,laplace")
            .contains("--noise takes one family here, not 2")
    );
}
