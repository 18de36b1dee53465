//! The progress of a long run on disk: what is finished stays finished, whatever happens.
//!
//! The file is a header and records, each a length, its bytes and a checksum of them. Records are
//! only ever appended. A process killed while it writes leaves a torn record at the end, which is
//! seen by its length or checksum and cut off.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use toclip::dynamics::{Counts, Stop, Trajectory};

use super::identity::{self, Digest};
use super::{Experiment, Finished, Keep, Method, Problem};
use crate::progress;

const MAGIC: &[u8] = b"toclip progress 1\n";
/// How long finished runs may be in the hands of the system only: the loss of power, not the end of
/// the process, could take them.
const SYNC_EVERY: Duration = Duration::from_secs(5);

/// A file of finished runs, open for more.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: File,
    synced: Instant,
}

impl Store {
    /// Opens the file at `path`, new or with what is in it. `resume` says whether something may be.
    pub fn open(
        path: &Path,
        identity: &Value,
        resume: bool,
        times: &[f64],
    ) -> Result<(Self, Vec<Finished>)> {
        let mut header = MAGIC.to_vec();
        append(&mut header, identity.to_string().as_bytes());
        let (mut file, bytes) = progress::open(path, &header, "toclip run")?;
        let name = path.display();
        let Some(mut rest) = bytes.strip_prefix(MAGIC) else {
            bail!("{name} is not a progress file of toclip; move it away or give another --out");
        };
        let saved = next(&mut rest).and_then(|header| serde_json::from_slice::<Value>(header).ok());
        let Some(saved) = saved else { bail!("the header of {name} is damaged; delete the file") };
        let mut finished = Vec::new();
        let mut good = rest.len();
        while let Some(record) = next(&mut rest) {
            match decode(record, times) {
                Some(run) => finished.push(run),
                None => break,
            }
            good = rest.len();
        }
        if !resume && !finished.is_empty() {
            bail!(
                "{name} holds {} finished runs of an interrupted run: add --resume to continue it, \
                 or delete the file to start over",
                finished.len()
            );
        }
        if saved != *identity {
            if resume && !finished.is_empty() {
                bail!(
                    "cannot resume from {name}: {}; undo the change, or delete the file to start over",
                    identity::difference(&saved, identity)
                );
            }
            // Nothing is lost: begin anew, under the lock that others look at.
            drop(file);
            std::fs::remove_file(path).with_context(|| format!("cannot replace {name}"))?;
            return Store::open(path, identity, false, times);
        }
        let end = (bytes.len() - good) as u64;
        file.set_len(end).with_context(|| format!("cannot write {name}"))?;
        file.seek(SeekFrom::Start(end))?;
        Ok((Store { path: path.into(), file, synced: Instant::now() }, finished))
    }

    /// [`Store::open`] for the runs of an experiment.
    pub fn for_run(
        path: &Path,
        experiment: &Experiment,
        problem: &Problem,
        resume: bool,
    ) -> Result<(Self, Vec<Finished>)> {
        Store::open(path, &identity::of(experiment, problem)?, resume, &problem.times)
    }

    /// Appends a finished run.
    pub fn add(&mut self, method: Method, index: u64, run: &Trajectory) -> Result<()> {
        let mut record = Vec::new();
        append(&mut record, &encode(method, index, run));
        let mut write = || -> std::io::Result<()> {
            self.file.write_all(&record)?;
            if self.synced.elapsed() > SYNC_EVERY {
                self.file.sync_data()?;
                self.synced = Instant::now();
            }
            Ok(())
        };
        write().with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Makes sure that what was added survives the loss of power.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().with_context(|| format!("cannot write {}", self.path.display()))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Keep for Store {
    fn keep(
        &mut self,
        method: Method,
        index: u64,
        run: &Trajectory,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.add(method, index, run)?)
    }
}

/// A length, the bytes and their checksum.
pub fn append(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend((bytes.len() as u64).to_le_bytes());
    to.extend(bytes);
    to.extend(Digest::of(bytes).to_le_bytes());
}

/// The bytes of the next record, if it is whole.
pub fn next<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (bytes, after) = after.split_at_checked(length)?;
    let (sum, after) = after.split_first_chunk::<8>()?;
    (u64::from_le_bytes(*sum) == Digest::of(bytes)).then(|| {
        *rest = after;
        bytes
    })
}

fn encode(method: Method, index: u64, run: &Trajectory) -> Vec<u8> {
    let place = Method::ALL.iter().position(|m| *m == method).unwrap_or_default() as u64;
    let (kind, t) = match run.stop {
        Stop::Diverged { t } => (1, t),
        Stop::TargetReached { t } => (2, t),
        _ => (0, 0.0),
    };
    let Counts { steps, rejected, evaluations, .. } = run.counts;
    let whole = [place, index, kind, t.to_bits(), steps, rejected, evaluations];
    let numbers = run.risk.iter().chain(&run.distance).map(|x| x.to_bits());
    whole.into_iter().chain(numbers).flat_map(u64::to_le_bytes).collect()
}

fn decode(record: &[u8], times: &[f64]) -> Option<Finished> {
    let (words, &[]) = record.as_chunks::<8>() else { return None };
    let words: Vec<u64> = words.iter().map(|w| u64::from_le_bytes(*w)).collect();
    let (&[place, index, kind, t, steps, rejected, evaluations], numbers) =
        words.split_first_chunk::<7>()?;
    let t = f64::from_bits(t);
    let stop = match kind {
        0 => Stop::Finished,
        1 => Stop::Diverged { t },
        2 => Stop::TargetReached { t },
        _ => return None,
    };
    let saved = numbers.len() / 2;
    let all: Vec<f64> = numbers.iter().map(|x| f64::from_bits(*x)).collect();
    let (risk, distance) = all.split_at(saved);
    if distance.len() != saved || saved > times.len() {
        return None;
    }
    let run = Trajectory {
        times: times[..saved].to_vec(),
        risk: risk.to_vec(),
        distance: distance.to_vec(),
        path: None,
        stop,
        counts: Counts { steps, rejected, evaluations },
    };
    Some(Finished { method: *Method::ALL.get(usize::try_from(place).ok()?)?, index, run })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TIMES: [f64; 3] = [0.0, 0.5, 1.0];

    fn run(x: f64, saved: usize) -> Trajectory {
        let stop = if saved == 3 { Stop::Finished } else { Stop::Diverged { t: 0.75 } };
        Trajectory {
            times: TIMES[..saved].to_vec(),
            risk: vec![x; saved],
            distance: vec![2.0 * x; saved],
            path: None,
            stop,
            counts: Counts { steps: 9, rejected: 1, evaluations: 5 },
        }
    }

    #[test]
    fn what_was_added_is_there_and_every_torn_tail_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let (path, identity) = (folder.path().join("p"), json!({ "seed": 1 }));
        let (mut store, none) = Store::open(&path, &identity, false, &TIMES).unwrap();
        assert!(none.is_empty());
        let header = std::fs::metadata(&path).unwrap().len() as usize;
        store.add(Method::Sgd, 7, &run(1.5, 3)).unwrap();
        let first = std::fs::metadata(&path).unwrap().len() as usize;
        store.add(Method::Hsgd, 2, &run(0.1, 2)).unwrap();
        drop(store);
        let whole = std::fs::read(&path).unwrap();
        for length in header..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let (mut store, finished) = Store::open(&path, &identity, true, &TIMES).unwrap();
            let expected = usize::from(length >= first) + usize::from(length == whole.len());
            assert_eq!(finished.len(), expected, "{length} bytes");
            // What comes after the cut is read again.
            store.add(Method::Sgd, 3, &run(9.0, 3)).unwrap();
            drop(store);
            let (_, again) = Store::open(&path, &identity, true, &TIMES).unwrap();
            assert_eq!(again[..expected], finished[..]);
            assert_eq!(
                again[expected],
                Finished { method: Method::Sgd, index: 3, run: run(9.0, 3) }
            );
        }
        std::fs::write(&path, &whole).unwrap();
        let (_, both) = Store::open(&path, &identity, true, &TIMES).unwrap();
        assert_eq!(both[1], Finished { method: Method::Hsgd, index: 2, run: run(0.1, 2) });
    }

    #[test]
    fn a_flipped_bit_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let (path, identity) = (folder.path().join("p"), json!({}));
        let (mut store, _) = Store::open(&path, &identity, false, &TIMES).unwrap();
        let header = std::fs::metadata(&path).unwrap().len() as usize;
        store.add(Method::Sgd, 0, &run(1.0, 3)).unwrap();
        drop(store);
        let whole = std::fs::read(&path).unwrap();
        for place in header..whole.len() {
            let mut bad = whole.clone();
            bad[place] ^= 1;
            std::fs::write(&path, bad).unwrap();
            let (_, finished) = Store::open(&path, &identity, true, &TIMES).unwrap();
            assert!(finished.is_empty(), "byte {place}");
        }
    }

    #[test]
    fn another_experiment_is_refused_in_words_and_an_empty_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        let (one, two) = (json!({ "seed": 1 }), json!({ "seed": 2 }));
        drop(Store::open(&path, &one, false, &TIMES).unwrap());
        let (mut store, _) = Store::open(&path, &two, true, &TIMES).unwrap();
        store.add(Method::Sgd, 0, &run(1.0, 3)).unwrap();
        let says = |resume, identity| {
            Store::open(&path, identity, resume, &TIMES).unwrap_err().to_string()
        };
        assert!(says(true, &two).contains("another toclip run"));
        drop(store);
        assert!(says(true, &one).contains("seed was 2 and is 1"), "{}", says(true, &one));
        assert!(says(false, &two).contains("add --resume"));
        std::fs::write(&path, "notes").unwrap();
        assert!(says(true, &one).contains("is not a progress file"));
    }
}
