//! Checks that hold for any bytes.

use std::fs::{create_dir_all, write};

use toclip_logs::{
    AdviceOptions, Format, Framework, Log, ReadOptions, Result, advise, find_logs, load, load_files,
};

/// Reads the bytes and asks for advice; panics if the result is not as documented.
pub fn check(bytes: &[u8], format: Option<Format>) {
    check_with(bytes, &ReadOptions { format, ..ReadOptions::default() });
}

fn check_with(bytes: &[u8], options: &ReadOptions) {
    check_log(load(bytes, options), options, &|options| check_with(bytes, options));
}

/// Checks a log that was read; `again` reads it with other options.
fn check_log(log: Result<Log>, options: &ReadOptions, again: &dyn Fn(&ReadOptions)) {
    match log {
        Ok(log) => {
            assert!(!log.points.is_empty() || !log.non_finite.is_empty());
            assert!(log.points.windows(2).all(|w| w[0].step < w[1].step));
            assert!(log.points.iter().all(|p| p.norm.is_finite() && p.norm >= 0.0));
            log.findings.iter().for_each(|f| assert!(!f.sentence().is_empty()));
            assert!(log.summary.columns.iter().all(|c| !c.name.contains(char::is_control)));
            match advise(&log, &AdviceOptions::default()) {
                Ok(advice) => {
                    assert!(!advice.verdict(Framework::of(&log)).headline.is_empty());
                }
                Err(error) => panic!("no advice: {error}"),
            }
            if !options.unscale && log.points.iter().any(|p| p.loss_scale > 0.0) {
                again(&ReadOptions { unscale: true, ..options.clone() });
            }
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control), "{error:?}"),
    }
}

/// Reads the parts of `bytes` as the metrics of an MLflow run.
pub fn check_run(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let metrics = folder.path().join("metrics");
    create_dir_all(&metrics).and_then(|()| write(folder.path().join("meta.yaml"), "")).unwrap();
    let parts = bytes.split(|byte| *byte == 0);
    for (name, part) in ["grad_norm", "loss", "lr", "grad_norm.a"].iter().zip(parts) {
        write(metrics.join(name), part).unwrap();
    }
    let options = ReadOptions::default();
    for log in find_logs(folder.path(), &options).unwrap_or_default() {
        check_log(load_files(&log, &options, &mut |_| {}), &options, &|_| {});
    }
}

/// Reads a small log with `bytes` as the settings beside it.
pub fn check_beside(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = |name: &str| folder.path().join(name);
    write(path("log.csv"), "step,grad_norm\n1,2\n2,3\n").unwrap();
    write(path("ds_config.json"), bytes).unwrap();
    write(path("hparams.yaml"), bytes).unwrap();
    let options = ReadOptions::default();
    let found = find_logs(&path("log.csv"), &options).expect("a file is itself");
    let summary = load_files(&found[0], &options, &mut |_| {}).expect("the log is readable").summary;
    assert!(summary.clip.is_none_or(|clip| clip > 0.0));
    assert!(summary.batch_size.is_none_or(|size| size >= 1.0 && size.is_finite()));
    let sources = summary.sources;
    for source in [sources.clip, sources.batch_size, sources.optimizer].into_iter().flatten() {
        assert!(!source.contains(char::is_control), "{source:?}");
    }
}
