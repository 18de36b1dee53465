//! Watches logs that are still being written.
//!
//! A log is read again whenever its files changed. That survives everything that happens to files: they
//! are cut, replaced, rotated, or end in the middle of a line. Reading is fast (a gigabyte in seconds),
//! and the pause grows with the time that it takes.

use std::collections::{BTreeMap, HashSet};
use std::fs::metadata;
use std::mem::{Discriminant, discriminant};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, bail};
use serde_json::{Value, json};
use toclip_logs::{Action, Finding};

use super::{Args, LogReport, LogSource, report, sources};
use crate::output::interrupt::{INTERRUPTED, listen};
use crate::output::{say, tell};
use toclip_words::short;

/// The pause between two looks, at least.
const PAUSE: Duration = Duration::from_secs(1);
/// At most one part in this many of the time is spent on reading.
const SHARE: u32 = 10;

/// Watches until Ctrl-C.
pub fn run(args: &Args) -> Result<ExitCode> {
    let (found, mut missing) = sources(args);
    if let Some((name, error)) = missing.pop() {
        return Err(error.context(name));
    }
    if found.iter().any(|source| matches!(source, LogSource::StandardInput)) {
        bail!("standard input cannot be followed; give a file");
    }
    listen(None)?;
    if !args.quiet {
        let names: Vec<String> = found.iter().map(LogSource::name).collect();
        tell!("following {}; Ctrl-C ends it", names.join(", "));
    }
    let mut watched: BTreeMap<String, WatchedLog> = BTreeMap::new();
    loop {
        let start = Instant::now();
        // A folder may have another run by now, or a run another file.
        for source in sources(args).0 {
            watched.entry(source.name()).or_default().look(&source, args);
        }
        let pause = PAUSE.max(start.elapsed() * SHARE);
        let end = Instant::now() + pause;
        while Instant::now() < end {
            if INTERRUPTED.load(Ordering::Relaxed) {
                return Ok(ExitCode::SUCCESS);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A log, and the findings already printed for it.
#[derive(Default)]
struct WatchedLog {
    state: FileState,
    said: HashSet<FindingKey>,
    /// The last recommendation that was printed.
    recommended: Option<(Action, Option<f64>)>,
    error: String,
}

impl WatchedLog {
    /// Reads the log if it changed, and prints new findings.
    fn look(&mut self, source: &LogSource, args: &Args) {
        let state = file_state(source);
        if state == self.state {
            return;
        }
        self.state = state;
        match report(source, args) {
            Ok(report) => {
                self.error.clear();
                self.tell(&report, args.json);
            }
            // A log may be empty for a while, or have no norm yet; that is printed once.
            Err(error) => {
                let error = format!("{error:#}");
                if error != self.error {
                    tell!("{}: {error}", source.name());
                    self.error = error;
                }
            }
        }
    }

    fn tell(&mut self, report: &LogReport, as_json: bool) {
        let findings = report.advice.findings.iter().filter(|finding| is_news(finding));
        let new: Vec<&Finding> = findings.filter(|f| !self.said.contains(&key(f))).collect();
        for finding in &new {
            self.said.insert(key(finding));
            line(report, finding.sentence(), json!({ "finding": finding }), as_json);
        }
        // A finding that has gone may come back.
        let now: HashSet<FindingKey> = report.advice.findings.iter().map(key).collect();
        self.said.retain(|said| now.contains(said));
        let recommendation = &report.advice.recommendation;
        let now = (recommendation.action, recommendation.threshold);
        if self.recommended.is_none_or(|before| differs(before, now)) {
            self.recommended = Some(now);
            let value = json!({ "recommendation": recommendation });
            line(report, format!("→ {}", report.verdict.headline), value, as_json);
        }
    }
}

fn line(report: &LogReport, text: String, mut value: Value, as_json: bool) {
    let step = report.advice.analysis.steps.1;
    if as_json {
        value["log"] = report.name.clone().into();
        value["step"] = step.into();
        value["text"] = text.into();
        say!("{value}");
    } else {
        say!("{} step {}: {text}", report.name, short(step));
    }
}

/// Whether a recommendation has changed; a threshold changes a little with every estimate.
fn differs(before: (Action, Option<f64>), now: (Action, Option<f64>)) -> bool {
    let moved = match (before.1, now.1) {
        (Some(a), Some(b)) => !(0.7..1.4).contains(&(a / b)),
        (a, b) => a.is_some() != b.is_some(),
    };
    before.0 != now.0 || moved
}

/// Size and time of the last change of each file.
type FileState = Vec<Option<(u64, Option<SystemTime>)>>;

fn file_state(source: &LogSource) -> FileState {
    let LogSource::Files(files) = source else { return Vec::new() };
    let state = |data: std::fs::Metadata| (data.len(), data.modified().ok());
    files.files.iter().map(|file| metadata(file).ok().map(state)).collect()
}

/// Whether a finding is worth a line while the log grows: not that its last row is incomplete.
fn is_news(finding: &Finding) -> bool {
    !matches!(finding, Finding::Truncated | Finding::Subsampled { .. } | Finding::Healthy { .. })
}

/// The key by which a finding counts as already printed: its kind, and for spikes and non-finite steps
/// also their number.
type FindingKey = (Discriminant<Finding>, usize);

fn key(finding: &Finding) -> FindingKey {
    let count = match finding {
        Finding::Spikes { events, .. } => events.len(),
        Finding::NonFiniteSteps { steps } => steps.len(),
        _ => 0,
    };
    (discriminant(finding), count)
}
