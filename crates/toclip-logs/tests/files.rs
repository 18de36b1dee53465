//! What people type: files, and folders of runs as their writers leave them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use std::fs::{copy, create_dir_all, read_to_string, write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use toclip_logs::{
    Error, Finding, Format, Log, LogFiles, OptimizerKind, ReadOptions, find_logs, join_event_files,
    load_files,
};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn find(path: &Path) -> Vec<LogFiles> {
    find_logs(path, &ReadOptions::default()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn load(log: &LogFiles) -> Log {
    load_files(log, &ReadOptions::default(), &mut |_| {}).unwrap()
}

/// The only log of a path.
fn only(path: &Path) -> (LogFiles, Log) {
    let found = find(path);
    assert_eq!(found.len(), 1, "{found:?}");
    (found[0].clone(), load(&found[0]))
}

/// A folder with copies of fixtures, and other files with the text given.
fn folder(copies: &[(&str, &str)], files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| {
        let path = folder.path().join(name);
        create_dir_all(path.parent().unwrap()).unwrap();
        path
    };
    for (from, to) in copies {
        copy(data(from), path(to)).unwrap();
    }
    files.iter().for_each(|(to, text)| write(path(to), text).unwrap());
    folder
}

fn names(folder: &TempDir) -> Vec<String> {
    let start = folder.path().display().to_string();
    let relative = |log: &LogFiles| log.name.strip_prefix(&start).unwrap().replace('\\', "/");
    find(folder.path()).iter().map(relative).collect()
}

fn check_truth(log: &Log) {
    let truth = read_to_string(data("truth.csv")).unwrap();
    assert_eq!(log.points.len(), 40);
    for (point, line) in log.points.iter().zip(truth.lines().skip(1)) {
        let cells: Vec<f64> = line.split(',').map(|c| c.parse().unwrap()).collect();
        assert_eq!(point.step, cells[0]);
        let read = [point.norm, point.loss.unwrap(), point.learning_rate];
        for (read, true_value) in read.iter().zip(&cells[1..]) {
            assert!((read - true_value).abs() <= 1e-6 * true_value, "{read} {true_value}");
        }
    }
}

#[test]
fn a_file_is_itself() {
    let (files, log) = only(&data("log.jsonl"));
    assert_eq!(files.files, [data("log.jsonl")]);
    assert_eq!(files.name, data("log.jsonl").display().to_string());
    assert_eq!(files.size(), common::bytes("log.jsonl").len() as u64);
    check_truth(&log);
    let error = find_logs(Path::new("not/there"), &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Io(_)), "{error}");
}

#[test]
fn a_resumed_tensorboard_run_is_joined_in_the_order_of_time() {
    let (files, log) = only(&data("resumed"));
    let order: Vec<_> = files.files.iter().map(|f| f.file_name().unwrap().to_owned()).collect();
    assert!(order[0] == "events.out.tfevents.999999999.host.1.0" && order.len() == 2);
    check_truth(&log);
    assert!(log.findings.contains(&Finding::Restarts { count: 1, replaced: 8 }));
    // The same, when the shell listed the files.
    let mut named: Vec<LogFiles> = files.files.iter().rev().flat_map(|file| find(file)).collect();
    named.push(find(&data("log.jsonl")).remove(0));
    let joined = join_event_files(named);
    assert_eq!(joined.len(), 2);
    assert_eq!(joined[0].files, files.files);
    assert_eq!(joined[0].name, files.name);
}

#[test]
fn runs_in_folders_are_told_apart() {
    let event = "events.out.tfevents.1700000000.host.1.0";
    let folder = folder(
        &[
            ("events.simple_value", &format!("runs/b10/{event}")),
            ("events.tensor", &format!("runs/b9/{event}")),
            ("run.wandb", "wandb/offline-run-1-abc/run-abc.wandb"),
            ("lightning.csv", "lightning_logs/version_0/metrics.csv"),
            ("star.trainer_state.json", "out/checkpoint-500/trainer_state.json"),
            ("trainer_state.json", "out/checkpoint-1000/trainer_state.json"),
            ("events.tensor", &format!("out/runs/x/{event}")),
        ],
        &[
            ("wandb/offline-run-1-abc/logs/debug.log", "grad_norm: 1\n"),
            ("lightning_logs/version_0/hparams.yaml", "batch_size: 16\n"),
            (&format!("runs/b9/empty/{event}"), ""),
            (".hidden/x.jsonl", "{\"grad_norm\": 1}\n"),
            ("table.csv", "step,grad_norm\n1,2\n"),
        ],
    );
    let expected = [
        "/lightning_logs/version_0/metrics.csv",
        "/out/checkpoint-1000/trainer_state.json",
        "/runs/b9",
        "/runs/b10",
        "/wandb/offline-run-1-abc/run-abc.wandb",
    ];
    assert_eq!(names(&folder), expected);
}

#[test]
fn plain_files_are_taken_if_there_is_nothing_else() {
    let folder = folder(
        &[("log.jsonl", "a/log.jsonl"), ("megatron.log", "b/train.log")],
        &[
            ("data.csv", "id,age\n1,3\n2,4\n"),
            ("notes.txt", "hello\n"),
            ("b/empty.jsonl", ""),
            ("c/table.csv.gz", ""),
        ],
    );
    write(folder.path().join("c/table.csv.gz"), common::gzip(&common::bytes("truth.csv"))).unwrap();
    assert_eq!(names(&folder), ["/a/log.jsonl", "/b/train.log", "/c/table.csv.gz"]);
    let options = ReadOptions { norm: Some("age".into()), ..ReadOptions::default() };
    assert_eq!(find_logs(folder.path(), &options).unwrap().len(), 1);
}

#[test]
fn a_folder_without_logs_says_what_was_looked_for() {
    let empty = folder(&[], &[("data.csv", "name,age\nx,3\n")]);
    let error = find_logs(empty.path(), &ReadOptions::default()).unwrap_err();
    insta::assert_snapshot!(error.to_string());
    // Runs without norms are found, and say so when they are read.
    let event = folder(&[], &[("v/version_0/metrics.csv", "step,train_loss\n1,2\n")]);
    let found = find(event.path());
    let error = load_files(&found[0], &ReadOptions::default(), &mut |_| {}).unwrap_err();
    assert!(matches!(error, Error::NoNorm { format: Format::Csv, .. }), "{error}");
}

#[test]
fn wandb_runs_have_their_configuration() {
    let (_, log) = only(&data("run.wandb"));
    check_truth(&log);
    let summary = &log.summary;
    assert_eq!(summary.format, Format::Wandb);
    assert_eq!((summary.clip, summary.batch_size), (Some(1.0), Some(32.0)));
    assert_eq!(summary.optimizer, Some(OptimizerKind::Adam));
    insta::assert_snapshot!(format!("{:#?}", summary.sources));
}

#[test]
fn mlflow_runs_have_their_parameters() {
    let (files, log) = only(&data("mlflow_run"));
    assert_eq!(files.name, data("mlflow_run").display().to_string());
    check_truth(&log);
    let summary = &log.summary;
    assert_eq!(summary.format, Format::Mlflow);
    assert_eq!((summary.clip, summary.batch_size), (Some(1.0), Some(32.0)));
    assert_eq!(summary.optimizer, Some(OptimizerKind::Sgd));
    assert_eq!(
        summary.sources.clip.as_deref(),
        Some("max_grad_norm = 1.0 in params/max_grad_norm")
    );
    // The file of the norm alone.
    let (_, log) = only(&data("mlflow_run/metrics/train/grad_norm"));
    assert_eq!((log.points.len(), log.points[0].step, log.points[0].norm), (40, 1.0, 1.0747));
    assert_eq!(log.summary.batch_size, Some(32.0));
}

#[test]
fn settings_come_from_the_files_beside_the_log() {
    let settings = |files: &[(&str, &str)], log: &str| {
        let folder = folder(&[("trainer_state.json", log)], files);
        let summary = only(&folder.path().join(log)).1.summary;
        (summary.clip, summary.batch_size, summary.optimizer, summary.sources.batch_size)
    };
    let says = |text: &str| Some(text.to_owned());
    let ds = r#"{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4,
                 "gradient_accumulation_steps": 2, "gradient_clipping": 0.5,
                 "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}"#;
    assert_eq!(
        settings(&[("ds_config.json", ds)], "trainer_state.json"),
        (
            Some(0.5),
            Some(64.0),
            Some(OptimizerKind::Adam),
            says("global_batch_size = 64 in ds_config.json")
        )
    );
    // The arguments are above the checkpoint.
    let args = r#"{"per_device_train_batch_size": 2, "gradient_accumulation_steps": 8,
                   "world_size": 4, "max_grad_norm": 0.0, "optim": "sgd"}"#;
    let of = "per_device_train_batch_size = 2 × gradient_accumulation_steps = 8 × world_size = 4";
    assert_eq!(
        settings(&[("training_args.json", args)], "checkpoint-5/trainer_state.json"),
        (
            Some(f64::INFINITY),
            Some(64.0),
            Some(OptimizerKind::Sgd),
            says(&format!("{of} in ../training_args.json"))
        )
    );
    // The folder of another run is not beside it.
    let other =
        [("../args.json", args), ("config.json", "{\"hidden_size\": 3}"), ("args.yaml", "[")];
    assert_eq!(settings(&other[1..], "x/trainer_state.json"), (None, None, None, None));
}

#[test]
fn the_batch_size_of_a_trainer_state() {
    let state = r#"{"global_step": 2, "log_history": [
        {"step": 1, "grad_norm": 1.5, "loss": 2.0}, {"step": 2, "grad_norm": 1.25, "loss": 1.5}],
        "logging_steps": 1, "train_batch_size": 8, "trial_name": null}"#;
    let accumulation = r#"{"gradient_accumulation_steps": 4}"#;
    let folder = folder(&[], &[("trainer_state.json", state), ("args.json", accumulation)]);
    let (_, log) = only(&folder.path().join("trainer_state.json"));
    assert_eq!((log.summary.batch_size, log.norms()), (Some(32.0), vec![1.5, 1.25]));
    let source = "train_batch_size = 8 × gradient_accumulation_steps = 4 in the log and args.json";
    assert_eq!(log.summary.sources.batch_size.as_deref(), Some(source));
}
