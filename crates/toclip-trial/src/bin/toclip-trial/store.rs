//! The finished cells of a trial as records of a progress log.

use std::path::Path;

use anyhow::Result;
use serde_json::json;
use toclip_trial::{Effort, Measurement};

use toclip_cli::output::{Identity, ProgressLog};

/// A file of finished cells, open for more.
#[derive(Debug)]
pub struct Store(ProgressLog);

impl Store {
    /// Opens the file, new or with the cells in it. `resume` says whether there may be any.
    pub fn open(path: &Path, effort: &Effort, resume: bool) -> Result<(Self, Vec<Measurement>)> {
        let inputs = json!({ "version": env!("CARGO_PKG_VERSION"), "effort": effort });
        let identity = Identity { command: "toclip-trial", pieces: "cells", inputs };
        let decode = |record: &[u8]| serde_json::from_slice(record).ok();
        let (log, cells) = ProgressLog::open(path, &identity, resume, decode)?;
        Ok((Store(log), cells))
    }

    /// Appends a finished cell.
    pub fn add(&mut self, cell: &Measurement) -> Result<()> {
        self.0.add(&serde_json::to_vec(cell)?)
    }

    /// Deletes the file, once its cells are in the results.
    pub fn remove(self) -> Result<()> {
        self.0.remove()
    }

    pub fn path(&self) -> &Path {
        self.0.path()
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
    fn a_trial_that_cannot_be_continued_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        let effort = Effort::quick(1);
        let says = |effort: &Effort, resume| {
            Store::open(&path, effort, resume).map(|_| ()).unwrap_err().to_string()
        };
        // An empty file is overwritten.
        drop(Store::open(&path, &Effort::full(2), false).unwrap());
        let (mut store, _) = Store::open(&path, &effort, false).unwrap();
        store.add(&cell("a/1")).unwrap();
        let mut said = vec![says(&effort, true)];
        drop(store);
        said.push(says(&effort, false));
        said.push(says(&Effort::quick(2), true));
        assert_eq!(Store::open(&path, &effort, true).unwrap().1.len(), 1);
        std::fs::write(&path, "notes\n").unwrap();
        said.push(says(&effort, true));
        let folder = folder.path().display().to_string();
        insta::assert_snapshot!(said.join("\n").replace(&folder, "FOLDER"));
    }
}
