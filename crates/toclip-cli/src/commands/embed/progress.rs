//! Finished batches on disk, so that an interrupted run can go on.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::experiment::store::{append, next};
use crate::progress;

const MAGIC: &[u8] = b"toclip embeddings 1\n";

/// A file of finished batches, open for more: a header and records, each with a checksum, so that a
/// torn end is seen and cut off.
#[derive(Debug)]
pub struct Progress {
    path: PathBuf,
    file: File,
}

/// The vectors of a batch, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    pub batch: usize,
    pub vectors: Vec<f32>,
}

impl Progress {
    /// Opens the file, new or with what is in it. `identity` is what the vectors depend on.
    pub fn open(path: &Path, identity: &Value) -> Result<(Self, Vec<Done>)> {
        let mut header = MAGIC.to_vec();
        append(&mut header, identity.to_string().as_bytes());
        let (mut file, bytes) = progress::open(path, &header, "toclip embed")?;
        let name = path.display();
        let mut rest = bytes.strip_prefix(MAGIC).unwrap_or_default();
        let saved = next(&mut rest).and_then(|header| serde_json::from_slice::<Value>(header).ok());
        let Some(saved) = saved else {
            bail!("{name} is not the progress of toclip embed; move it away or give another --out");
        };
        if saved != *identity {
            bail!(
                "{name} holds the progress of another run ({}); give that command again, or \
                 another --out, or delete the file to start over",
                difference(&saved, identity)
            );
        }
        let mut done = Vec::new();
        let mut good = rest.len();
        while let Some(batch) = next(&mut rest).and_then(decode) {
            done.push(batch);
            good = rest.len();
        }
        let end = (bytes.len() - good) as u64;
        file.set_len(end).with_context(|| format!("cannot write {name}"))?;
        file.seek(SeekFrom::Start(end))?;
        Ok((Progress { path: path.into(), file }, done))
    }

    /// Appends a finished batch.
    pub fn add(&mut self, done: &Done) -> Result<()> {
        let mut bytes = (done.batch as u64).to_le_bytes().to_vec();
        bytes.extend(done.vectors.iter().flat_map(|x| x.to_le_bytes()));
        let mut record = Vec::new();
        append(&mut record, &bytes);
        let written = self.file.write_all(&record);
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file: the vectors are where they belong.
    pub fn remove(self) -> Result<()> {
        let Progress { path, file } = self;
        drop(file);
        std::fs::remove_file(&path).with_context(|| format!("cannot delete {}", path.display()))
    }
}

fn decode(record: &[u8]) -> Option<Done> {
    let (batch, rest) = record.split_first_chunk::<8>()?;
    let (numbers, &[]) = rest.as_chunks::<4>() else { return None };
    let vectors = numbers.iter().map(|x| f32::from_le_bytes(*x)).collect();
    Some(Done { batch: usize::try_from(u64::from_le_bytes(*batch)).ok()?, vectors })
}

/// The first thing that differs, in words.
fn difference(saved: &Value, now: &Value) -> String {
    let before = saved.as_object().into_iter().flatten();
    for (key, value) in before {
        if now.get(key) != Some(value) {
            let is = now.get(key).unwrap_or(&Value::Null);
            return format!("its {key} was {value} and is {is}");
        }
    }
    "from another version".into()
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
