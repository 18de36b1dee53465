//! The files that make up a log. Users give a file, or a folder with runs in it.

mod folder;
mod settings_files;

use std::cell::{Cell, RefCell};
use std::fs::{File, metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::read::{RunSettings, is_norm, read_joined, read_metrics};
use crate::{Error, Log, LogRow, ReadOptions, ReadSummary, Result, series};

/// How much of each log in a folder is read to see whether it has gradient norms.
const PEEK: u64 = 1 << 18;

/// The files of one log, and the settings found beside them.
#[derive(Clone, Debug, PartialEq)]
pub struct LogFiles {
    /// The name for people: the path of the file, or of the folder of the run.
    pub name: String,
    /// The files in the order in which they are read.
    pub files: Vec<PathBuf>,
    kind: FileUse,
    settings: RunSettings,
}

/// How the files make up the log.
#[derive(Clone, Debug, PartialEq)]
enum FileUse {
    /// Each continues the one before.
    Joined,
    /// Each has the metric of this name.
    Metrics(Vec<String>),
}

/// Finds the logs that a path means: the file itself, or the runs in a folder.
///
/// In a folder these are, at any depth: TensorBoard runs (the event files of one folder, in the order
/// of time), W&B runs (`run-*.wandb`), runs of the MLflow file store, `trainer_state.json` of the
/// Hugging Face trainer (in the output folder or its last checkpoint), Lightning's `metrics.csv`; and
/// only if there is none of them, files that end in `.jsonl`, `.csv`, `.log` or `.txt`, also
/// compressed. Runs without gradient norms are left out if others have them.
///
/// # Errors
///
/// [`Error::Io`] if the path cannot be read, [`Error::NoLogs`] for a folder without logs.
pub fn find_logs(path: &Path, options: &ReadOptions) -> Result<Vec<LogFiles>> {
    if !metadata(path)?.is_dir() {
        return Ok(vec![LogFiles::new(path, vec![path.to_owned()], FileUse::Joined)]);
    }
    let found = folder::search(path)?;
    let (with, without): (Vec<LogFiles>, Vec<LogFiles>) =
        found.runs.into_iter().partition(|log| log.may_have_norms(options));
    if !with.is_empty() {
        return Ok(with);
    }
    let files = found.files.into_iter().filter(|log| log.may_have_norms(options));
    let files: Vec<LogFiles> = files.collect();
    match (files.is_empty(), without.is_empty()) {
        (false, _) => Ok(files),
        // Reading them gives an error that names the missing norm.
        (true, false) => Ok(without),
        (true, true) => Err(Error::NoLogs),
    }
}

/// Joins TensorBoard event files that were named one by one, if they are of the same folder.
pub fn join_event_files(logs: Vec<LogFiles>) -> Vec<LogFiles> {
    let mut joined: Vec<LogFiles> = Vec::new();
    for log in logs {
        let folder = |log: &LogFiles| {
            let mut folders = log.files.iter().map(|file| file.parent());
            let events = log.files.iter().all(|file| folder::is_event_file(file));
            folders.next().flatten().filter(|_| events).map(Path::to_owned)
        };
        let mine = folder(&log);
        match joined.iter_mut().find(|other| mine.is_some() && folder(other) == mine) {
            Some(other) => {
                other.files.extend(log.files);
                other.files.sort_by_key(|file| folder::event_order(file));
                other.files.dedup();
                other.name = mine.unwrap_or_default().display().to_string();
            }
            None => joined.push(log),
        }
    }
    joined
}

/// Reads a log as [`read`](crate::read()) does. `progress` is told how many bytes were read, as they
/// are.
///
/// # Errors
///
/// As [`read`](crate::read()).
pub fn read_files(
    log: &LogFiles,
    options: &ReadOptions,
    progress: &mut dyn FnMut(u64),
    visit: &mut dyn FnMut(&LogRow),
) -> Result<ReadSummary> {
    log.read(options, progress, visit, &Cell::new(u64::MAX))
}

/// Loads a log as [`load`](crate::load()) does. `progress` is told how many bytes were read, as they
/// are.
///
/// # Errors
///
/// As [`load`](crate::load()).
pub fn load_files(
    log: &LogFiles,
    options: &ReadOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Log> {
    series::collect(options, |visit| read_files(log, options, progress, visit))
}

impl LogFiles {
    fn new(name: &Path, files: Vec<PathBuf>, kind: FileUse) -> Self {
        let settings = files.first().map(|file| settings_files::settings(file)).unwrap_or_default();
        Self { name: name.display().to_string(), files, kind, settings }
    }

    /// The size of the files in bytes, without files whose size is unknown.
    pub fn size(&self) -> u64 {
        self.files.iter().filter_map(|file| metadata(file).ok()).map(|data| data.len()).sum()
    }

    /// Whether the beginning of the log leaves it possible that the log has gradient norms.
    fn may_have_norms(&self, options: &ReadOptions) -> bool {
        if let FileUse::Metrics(names) = &self.kind {
            return options.norm.is_some() || names.iter().any(|name| is_norm(name));
        }
        let left = Cell::new(PEEK);
        match self.read(options, &mut |_| {}, &mut |_| {}, &left) {
            // A graph or pictures may come before the first norm.
            Err(Error::NoNorm { .. } | Error::UnknownColumn { .. }) => left.get() == 0,
            Err(Error::Empty) => false,
            _ => true,
        }
    }

    /// Reads at most `left` bytes.
    fn read(
        &self,
        options: &ReadOptions,
        progress: &mut dyn FnMut(u64),
        visit: &mut dyn FnMut(&LogRow),
        left: &Cell<u64>,
    ) -> Result<ReadSummary> {
        if let FileUse::Metrics(names) = &self.kind {
            let metrics: Vec<(&str, &Path)> = names
                .iter()
                .map(String::as_str)
                .zip(self.files.iter().map(PathBuf::as_path))
                .collect();
            return read_metrics(&metrics, options, &self.settings, progress, visit);
        }
        let progress = RefCell::new(progress);
        let readers = self.files.iter().map(|path| {
            let reader = Metered { file: File::open(path)?, left, progress: &progress };
            Ok(Box::new(reader) as Box<dyn Read + '_>)
        });
        read_joined(readers, options, &self.settings, visit)
    }
}

/// A file that is read up to a limit and reports its progress.
struct Metered<'a, 'b> {
    file: File,
    left: &'a Cell<u64>,
    progress: &'a RefCell<&'b mut dyn FnMut(u64)>,
}

impl Read for Metered<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left.get()).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.file.read(&mut buffer[..most])?;
        self.left.set(self.left.get() - count as u64);
        (self.progress.borrow_mut())(count as u64);
        Ok(count)
    }
}
