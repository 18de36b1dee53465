//! The runs in a folder.

use std::collections::VecDeque;
use std::fs::read_dir;
use std::path::{Path, PathBuf};

use super::{FileUse, LogFiles};
use crate::Result;

/// Folders that are searched: more of them are not a folder of logs.
const MOST_FOLDERS: usize = 20_000;
const DEEPEST: usize = 8;
/// Files without a known structure that are considered.
const MOST_FILES: usize = 1000;

/// The logs in a folder.
#[derive(Default)]
pub(super) struct FolderLogs {
    /// Runs that a known writer wrote.
    pub runs: Vec<LogFiles>,
    /// Other files that may be logs.
    pub files: Vec<LogFiles>,
}

/// Searches a folder.
pub(super) fn search(folder: &Path) -> Result<FolderLogs> {
    let mut found = FolderLogs::default();
    let mut waiting = VecDeque::from([(folder.to_owned(), 0)]);
    let mut searched = 0;
    while let Some((folder, depth)) = waiting.pop_front() {
        let contents = match Contents::of(&folder) {
            // Folders inside that cannot be opened are skipped.
            Err(_) if depth > 0 => continue,
            contents => contents?,
        };
        let inside = contents.runs(&folder, &mut found);
        searched += 1;
        if searched < MOST_FOLDERS && depth < DEEPEST {
            waiting.extend(inside.into_iter().map(|folder| (folder, depth + 1)));
        }
    }
    found.runs.sort_by_cached_key(|log| natural(&log.name));
    found.files.sort_by_cached_key(|log| natural(&log.name));
    Ok(found)
}

/// The files and folders in a folder.
struct Contents {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

impl Contents {
    fn of(folder: &Path) -> Result<Self> {
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        for entry in read_dir(folder)?.flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else { continue };
            if name(&path).starts_with('.') {
                continue;
            }
            // A link to a folder, such as `latest-run`, would be a second copy or a circle.
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() || path.is_file() {
                files.push(path);
            }
        }
        files.sort();
        folders.sort();
        Ok(Self { files, folders })
    }

    fn has(&self, wanted: &str) -> bool {
        self.files.iter().any(|path| name(path) == wanted)
    }

    /// Adds the runs of this folder; returns the folders in which there may be others.
    fn runs(self, folder: &Path, found: &mut FolderLogs) -> Vec<PathBuf> {
        let one = |path: &PathBuf| LogFiles::new(path, vec![path.clone()], FileUse::Joined);
        let wandb: Vec<&PathBuf> =
            self.files.iter().filter(|f| name(f).ends_with(".wandb")).collect();
        if !wandb.is_empty() {
            found.runs.extend(wandb.into_iter().map(one));
            return Vec::new();
        }
        let metrics = folder.join("metrics");
        if self.has("meta.yaml") && self.folders.contains(&metrics) {
            found.runs.extend(mlflow_run(folder, &metrics));
            return Vec::new();
        }
        if let Some(state) = self.trainer_state() {
            found.runs.push(one(&state));
            // The checkpoints have the beginning of the same history, TensorBoard all of it.
            let other = |path: &PathBuf| checkpoint(path).is_none() && name(path) != "runs";
            return self.folders.into_iter().filter(other).collect();
        }
        let lightning = self.has("hparams.yaml") || name(folder).starts_with("version_");
        if lightning && self.has("metrics.csv") {
            found.runs.push(one(&folder.join("metrics.csv")));
            return self.folders;
        }
        let mut events: Vec<PathBuf> =
            self.files.iter().filter(|file| is_event_file(file)).cloned().collect();
        if !events.is_empty() {
            events.sort_by_key(|file| event_order(file));
            found.runs.push(LogFiles::new(folder, events, FileUse::Joined));
            return self.folders;
        }
        let room = MOST_FILES.saturating_sub(found.files.len());
        found.files.extend(self.files.iter().filter(|file| may_be_log(file)).take(room).map(one));
        self.folders
    }

    /// The history of a Hugging Face trainer: of the finished run, or in the last checkpoint.
    fn trainer_state(&self) -> Option<PathBuf> {
        let state = "trainer_state.json";
        let own = self.files.iter().find(|path| name(path) == state).cloned();
        own.or_else(|| {
            let checkpoints =
                self.folders.iter().filter_map(|path| Some((checkpoint(path)?, path)));
            let states = checkpoints.map(|(step, path)| (step, path.join(state)));
            states.filter(|(_, path)| path.is_file()).max_by_key(|(step, _)| *step).map(|(_, p)| p)
        })
    }
}

/// The metrics of a run in the MLflow file store; those with a slash in their names are in folders.
fn mlflow_run(run: &Path, metrics: &Path) -> Option<LogFiles> {
    let (mut files, mut names) = (Vec::new(), Vec::new());
    let mut waiting = vec![metrics.to_owned()];
    while let Some(folder) = waiting.pop() {
        let Ok(contents) = Contents::of(&folder) else { continue };
        waiting.extend(contents.folders.into_iter().filter(|_| names.len() < MOST_FOLDERS));
        for file in contents.files {
            let parts = file.strip_prefix(metrics).ok()?.iter().map(|part| part.to_string_lossy());
            names.push(parts.collect::<Vec<_>>().join("/"));
            files.push(file);
        }
    }
    (!files.is_empty()).then(|| LogFiles::new(run, files, FileUse::Metrics(names)))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The step of a folder `checkpoint-500`.
fn checkpoint(path: &Path) -> Option<u64> {
    name(path).strip_prefix("checkpoint-")?.parse().ok()
}

pub(super) fn is_event_file(path: &Path) -> bool {
    name(path).contains("tfevents")
}

/// Event files in the order in which they were begun: `events.out.tfevents.<seconds>.<host>…`.
pub(super) fn event_order(path: &Path) -> (u64, String) {
    let name = name(path);
    let after = name.split_once("tfevents.").map_or("", |(_, after)| after);
    let seconds = after.split('.').next().and_then(|seconds| seconds.parse().ok());
    (seconds.unwrap_or(0), name)
}

fn may_be_log(path: &Path) -> bool {
    let name = name(path).to_lowercase();
    let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
    [".jsonl", ".csv", ".log", ".txt"].iter().any(|end| name.ends_with(end))
}

/// A key that puts `version_10` after `version_9`.
fn natural(name: &str) -> Vec<(u64, String)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let text = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let number =
            rest[text..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |n| text + n);
        key.push((0, rest[..text].to_owned()));
        key.push((rest[text..number].parse().unwrap_or(u64::MAX), rest[text..number].to_owned()));
        rest = &rest[number..];
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_names() {
        let mut names = ["version_10", "version_9", "a", "version_9b"];
        names.sort_by_cached_key(|name| natural(name));
        assert_eq!(names, ["a", "version_9", "version_9b", "version_10"]);
        let first = event_order(Path::new("x/events.out.tfevents.999.host.1.0"));
        assert!(first < event_order(Path::new("x/events.out.tfevents.1000.host.1.0")));
    }
}
