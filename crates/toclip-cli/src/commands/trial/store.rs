//! The finished cells of a trial on disk: one line each, so that Ctrl-C loses none.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use toclip_trial::{Effort, Measurement};

use crate::progress;

/// A file of finished cells, open for more.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: File,
}

impl Store {
    /// Opens the file, new or with what is in it. `resume` says whether something may be.
    pub fn open(path: &Path, effort: &Effort, resume: bool) -> Result<(Self, Vec<Measurement>)> {
        let identity = json!({
            "toclip trial": env!("CARGO_PKG_VERSION"),
            "effort": serde_json::to_value(effort)?,
        });
        let header = format!("{identity}\n");
        let (mut file, bytes) = progress::open(path, header.as_bytes(), "toclip trial")?;
        let name = path.display();
        // A process killed while it wrote leaves a line without an end: it is not counted.
        let mut lines = bytes.split_inclusive(|b| *b == b'\n').filter(|l| l.ends_with(b"\n"));
        let header = lines.next().unwrap_or_default();
        let saved: Option<Value> = serde_json::from_slice(header).ok();
        let Some(saved) = saved.filter(|saved| saved.get("toclip trial").is_some()) else {
            bail!(
                "{name} is not a progress file of toclip trial; move it away or give another --out"
            );
        };
        let mut cells = Vec::new();
        let mut end = header.len();
        for line in lines {
            let Ok(cell) = serde_json::from_slice(line) else { break };
            cells.push(cell);
            end += line.len();
        }
        if !resume && !cells.is_empty() {
            bail!(
                "{name} holds {} finished cells of an interrupted trial: add --resume to continue \
                 it, or delete the file to start over",
                cells.len()
            );
        }
        if saved != identity {
            if !cells.is_empty() {
                bail!(
                    "cannot resume from {name}: it was begun with {saved}, and this is {identity}; \
                     give the same options, or delete the file to start over"
                );
            }
            file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0)))?;
            file.write_all(format!("{identity}\n").as_bytes())?;
            end = identity.to_string().len() + 1;
        }
        file.set_len(end as u64).with_context(|| format!("cannot write {name}"))?;
        file.seek(SeekFrom::Start(end as u64))?;
        Ok((Store { path: path.into(), file }, cells))
    }

    /// Appends a finished cell.
    pub fn add(&mut self, cell: &Measurement) -> Result<()> {
        let line = serde_json::to_string(cell)? + "\n";
        let written = self.file.write_all(line.as_bytes());
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Deletes the file, once its cells are in the results.
    pub fn remove(self) -> Result<()> {
        drop(self.file);
        std::fs::remove_file(&self.path)
            .with_context(|| format!("cannot delete {}", self.path.display()))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toclip_trial::Contender;

    fn cell(problem: &str) -> Measurement {
        serde_json::from_value(json!({
            "problem": problem, "rule": Contender::Huber, "eta": 0.1 + 0.2, "at_edge": false,
            "log_risk": [-1.0 / 3.0, 1e-300], "diverged": 0, "clipped": 0.5, "acted": 1.0, "began": 3.0,
            "shrunk": 0.9,
        }))
        .unwrap()
    }

    #[test]
    fn cells_come_back_and_every_torn_tail_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/p");
        let effort = Effort::quick(1);
        let (mut store, none) = Store::open(&path, &effort, false).unwrap();
        assert!(none.is_empty());
        let header = std::fs::metadata(&path).unwrap().len() as usize;
        store.add(&cell("a/1")).unwrap();
        let first = std::fs::metadata(&path).unwrap().len() as usize;
        store.add(&cell("b/8")).unwrap();
        drop(store);
        let whole = std::fs::read(&path).unwrap();
        for length in header..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let (mut store, cells) = Store::open(&path, &effort, true).unwrap();
            let expected = usize::from(length >= first) + usize::from(length == whole.len());
            assert_eq!(cells, [cell("a/1"), cell("b/8")][..expected]);
            store.add(&cell("c/64")).unwrap();
            drop(store);
            let (_, again) = Store::open(&path, &effort, true).unwrap();
            assert_eq!(again.last(), Some(&cell("c/64")), "{length}");
        }
    }

    #[test]
    fn what_cannot_be_continued_is_refused_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        let effort = Effort::quick(1);
        let says = |effort: &Effort, resume| {
            Store::open(&path, effort, resume).map(|_| ()).unwrap_err().to_string()
        };
        // Nothing in it: begun anew.
        drop(Store::open(&path, &Effort::full(2), false).unwrap());
        let (mut store, _) = Store::open(&path, &effort, false).unwrap();
        store.add(&cell("a/1")).unwrap();
        assert!(says(&effort, true).contains("another toclip trial"));
        drop(store);
        assert!(says(&effort, false).contains("add --resume"));
        assert!(says(&Effort::quick(2), true).contains("begun with"));
        assert_eq!(Store::open(&path, &effort, true).unwrap().1.len(), 1);
        std::fs::write(&path, "notes\n").unwrap();
        assert!(says(&effort, true).contains("is not a progress file"));
    }
}
