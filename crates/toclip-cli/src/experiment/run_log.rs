//! The finished runs of an experiment as records of a progress log.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;
use toclip::dynamics::{Counts, Stop, Trajectory};

use super::identity;
use super::{Experiment, FinishedRun, Method, Problem, RunSink};
use crate::output::{Identity, ProgressLog};

/// A file of finished runs, open for more.
#[derive(Debug)]
pub struct RunLog(ProgressLog);

impl RunLog {
    /// Opens the file at `path`, new or with the runs in it. `resume` says whether there may be any.
    pub fn open(
        path: &Path,
        inputs: Value,
        resume: bool,
        times: &[f64],
    ) -> Result<(Self, Vec<FinishedRun>)> {
        let identity = Identity { command: "toclip run", pieces: "runs", inputs };
        let (log, finished) =
            ProgressLog::open(path, &identity, resume, |record| decode(record, times))?;
        Ok((RunLog(log), finished))
    }

    /// [`RunLog::open`] for the runs of an experiment.
    pub fn for_run(
        path: &Path,
        experiment: &Experiment,
        problem: &Problem,
        resume: bool,
    ) -> Result<(Self, Vec<FinishedRun>)> {
        RunLog::open(path, identity::of(experiment, problem)?, resume, &problem.times)
    }

    /// Appends a finished run.
    pub fn add(&mut self, method: Method, index: u64, run: &Trajectory) -> Result<()> {
        self.0.add(&encode(method, index, run))
    }

    /// Makes sure that what was added survives a power failure.
    pub fn sync(&self) -> Result<()> {
        self.0.sync()
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl RunSink for RunLog {
    fn keep(
        &mut self,
        method: Method,
        index: u64,
        run: &Trajectory,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.add(method, index, run)?)
    }
}

fn encode(method: Method, index: u64, run: &Trajectory) -> Vec<u8> {
    let place = Method::ALL.iter().position(|m| *m == method).unwrap_or_default() as u64;
    let (kind, t) = match run.stop {
        Stop::Diverged { t } => (1, t),
        Stop::TargetReached { t } => (2, t),
        Stop::InfiniteVariance { t } => (3, t),
        _ => (0, 0.0),
    };
    let Counts { steps, rejected, evaluations, .. } = run.counts;
    let whole = [place, index, kind, t.to_bits(), steps, rejected, evaluations];
    let numbers = run.risk.iter().chain(&run.distance).map(|x| x.to_bits());
    whole.into_iter().chain(numbers).flat_map(u64::to_le_bytes).collect()
}

fn decode(record: &[u8], times: &[f64]) -> Option<FinishedRun> {
    let (words, &[]) = record.as_chunks::<8>() else { return None };
    let words: Vec<u64> = words.iter().map(|w| u64::from_le_bytes(*w)).collect();
    let (&[place, index, kind, t, steps, rejected, evaluations], numbers) =
        words.split_first_chunk::<7>()?;
    let t = f64::from_bits(t);
    let stop = match kind {
        0 => Stop::Finished,
        1 => Stop::Diverged { t },
        2 => Stop::TargetReached { t },
        3 => Stop::InfiniteVariance { t },
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
    Some(FinishedRun { method: *Method::ALL.get(usize::try_from(place).ok()?)?, index, run })
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
    fn runs_read_back_bit_for_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        let open = || RunLog::open(&path, json!({ "seed": 1 }), true, &TIMES).unwrap();
        let (mut store, none) = open();
        assert!(none.is_empty());
        store.add(Method::Sgd, 7, &run(1.5, 3)).unwrap();
        store.add(Method::Hsgd, 2, &run(0.1, 2)).unwrap();
        drop(store);
        let expected = [
            FinishedRun { method: Method::Sgd, index: 7, run: run(1.5, 3) },
            FinishedRun { method: Method::Hsgd, index: 2, run: run(0.1, 2) },
        ];
        assert_eq!(open().1, expected);
    }

    #[test]
    fn every_reason_to_stop_reads_back() {
        let t = 0.75;
        for stop in [
            Stop::Finished,
            Stop::Diverged { t },
            Stop::TargetReached { t },
            Stop::InfiniteVariance { t },
        ] {
            let run = Trajectory { stop, ..run(1.0, 2) };
            let read = decode(&encode(Method::Hsgd, 0, &run), &TIMES).unwrap();
            assert_eq!(read.run.stop, stop);
        }
    }

    #[test]
    fn a_record_of_another_form_is_not_a_run() {
        let record = encode(Method::Sgd, 7, &run(1.5, 3));
        assert!(decode(&record, &TIMES).is_some());
        assert!(decode(&record[1..], &TIMES).is_none());
        assert!(decode(&record[8..], &TIMES).is_none());
        assert!(decode(&record, &TIMES[..2]).is_none());
    }
}
