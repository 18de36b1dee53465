//! The finished batches of an embedding as records of a progress log.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use crate::output::{Identity, ProgressLog};

/// A file of finished batches, open for more.
#[derive(Debug)]
pub struct Progress(ProgressLog);

/// The vectors of a batch, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    pub batch: usize,
    pub vectors: Vec<f32>,
}

impl Progress {
    /// Opens the file, new or with the batches in it. `inputs` is what the vectors depend on.
    pub fn open(path: &Path, inputs: &Value) -> Result<(Self, Vec<Done>)> {
        let identity =
            Identity { command: "toclip embed", pieces: "batches", inputs: inputs.clone() };
        let (log, done) = ProgressLog::open(path, &identity, true, decode)?;
        Ok((Progress(log), done))
    }

    /// Appends a finished batch.
    pub fn add(&mut self, done: &Done) -> Result<()> {
        let mut bytes = (done.batch as u64).to_le_bytes().to_vec();
        bytes.extend(done.vectors.iter().flat_map(|x| x.to_le_bytes()));
        self.0.add(&bytes)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Removes the file, once the vectors are in the results.
    pub fn remove(self) -> Result<()> {
        self.0.remove()
    }
}

fn decode(record: &[u8]) -> Option<Done> {
    let (batch, rest) = record.split_first_chunk::<8>()?;
    let (numbers, &[]) = rest.as_chunks::<4>() else { return None };
    let vectors = numbers.iter().map(|x| f32::from_le_bytes(*x)).collect();
    Some(Done { batch: usize::try_from(u64::from_le_bytes(*batch)).ok()?, vectors })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_added_is_there_and_a_torn_end_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let (path, identity) = (folder.path().join("p"), json!({ "lines": 3 }));
        let (mut progress, none) = Progress::open(&path, &identity).unwrap();
        assert!(none.is_empty());
        let header = std::fs::metadata(&path).unwrap().len() as usize;
        let all = [
            Done { batch: 4, vectors: vec![1.5, -2.0] },
            Done { batch: 0, vectors: vec![0.25; 3] },
        ];
        all.iter().for_each(|done| progress.add(done).unwrap());
        let busy = Progress::open(&path, &identity).unwrap_err().to_string();
        assert!(busy.contains("another toclip embed"), "{busy}");
        drop(progress);
        let whole = std::fs::read(&path).unwrap();
        for length in header..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let (_, done) = Progress::open(&path, &identity).unwrap();
            assert_eq!(done, all[..done.len()]);
            assert_eq!(done.len() == 2, length == whole.len());
            assert!(std::fs::metadata(&path).unwrap().len() as usize <= length);
        }
    }

    #[test]
    fn another_run_is_refused_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        drop(Progress::open(&path, &json!({ "lines": 3 })).unwrap());
        let says = |identity| Progress::open(&path, &identity).unwrap_err().to_string();
        assert!(says(json!({ "lines": 4 })).contains("its lines was 3 and is 4"));
        std::fs::write(&path, "notes").unwrap();
        assert!(says(json!({ "lines": 3 })).contains("is not the progress"));
    }
}
