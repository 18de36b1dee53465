//! The finished runs of an experiment as records of a progress log.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;
use toclip::dynamics::{Counts, Stop, Trajectory};
use toclip::model::{GlmPath, Overlaps};

use super::{FinishedRun, Method, RunSink};
use crate::output::{Identity, ProgressLog};

/// A run that a log can keep: numbers at each saved time, why it stopped and what it cost.
pub trait LoggedRun: Sized {
    /// How many numbers there are at each time.
    const COLUMNS: usize;

    /// The numbers, column by column.
    fn columns(&self) -> Vec<Vec<f64>>;

    /// Why it stopped and what it cost.
    fn end(&self) -> (Stop, Counts);

    /// The run again; the columns are as many as [`Self::COLUMNS`], each as long as `times`.
    fn from_columns(times: &[f64], columns: &[&[f64]], stop: Stop, counts: Counts) -> Self;
}

impl LoggedRun for Trajectory {
    const COLUMNS: usize = 2;

    fn columns(&self) -> Vec<Vec<f64>> {
        vec![self.risk.clone(), self.distance.clone()]
    }

    fn end(&self) -> (Stop, Counts) {
        (self.stop, self.counts)
    }

    fn from_columns(times: &[f64], columns: &[&[f64]], stop: Stop, counts: Counts) -> Self {
        let [risk, distance] = [0, 1].map(|i| columns[i].to_vec());
        Trajectory { times: times.to_vec(), risk, distance, path: None, stop, counts }
    }
}

impl LoggedRun for GlmPath {
    const COLUMNS: usize = 4;

    fn columns(&self) -> Vec<Vec<f64>> {
        let of = |get: fn(&Overlaps) -> f64| self.overlaps.iter().map(get).collect();
        vec![of(|at| at.q), of(|at| at.p), of(|at| at.v), self.distance.clone()]
    }

    fn end(&self) -> (Stop, Counts) {
        (self.stop, self.counts)
    }

    fn from_columns(times: &[f64], columns: &[&[f64]], stop: Stop, counts: Counts) -> Self {
        let at = |k: usize| Overlaps { q: columns[0][k], p: columns[1][k], v: columns[2][k] };
        let overlaps = (0..times.len()).map(at).collect();
        GlmPath { times: times.to_vec(), overlaps, distance: columns[3].to_vec(), stop, counts }
    }
}

/// Opens the progress log of an experiment at `path`, new or with the runs in it. `resume` says whether
/// there may be any.
pub fn open_run_log<R: LoggedRun>(
    path: &Path,
    inputs: Value,
    resume: bool,
    times: &[f64],
) -> Result<(ProgressLog, Vec<FinishedRun<R>>)> {
    let identity = Identity { command: "toclip run", pieces: "runs", inputs };
    ProgressLog::open(path, &identity, resume, |record| decode(record, times))
}

impl<R: LoggedRun> RunSink<R> for ProgressLog {
    fn keep(
        &mut self,
        method: Method,
        index: u64,
        run: &R,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.add(&encode(method, index, run))?)
    }
}

fn encode(method: Method, index: u64, run: &impl LoggedRun) -> Vec<u8> {
    let place = Method::ALL.iter().position(|m| *m == method).unwrap_or_default() as u64;
    let (stop, Counts { steps, rejected, evaluations, .. }) = run.end();
    let (kind, t) = match stop {
        Stop::Diverged { t } => (1, t),
        Stop::TargetReached { t } => (2, t),
        Stop::InfiniteVariance { t } => (3, t),
        _ => (0, 0.0),
    };
    let whole = [place, index, kind, t.to_bits(), steps, rejected, evaluations];
    let numbers = run.columns().into_iter().flatten().map(f64::to_bits);
    whole.into_iter().chain(numbers).flat_map(u64::to_le_bytes).collect()
}

fn decode<R: LoggedRun>(record: &[u8], times: &[f64]) -> Option<FinishedRun<R>> {
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
    let saved = numbers.len() / R::COLUMNS;
    if numbers.len() != saved * R::COLUMNS || saved > times.len() {
        return None;
    }
    let all: Vec<f64> = numbers.iter().map(|x| f64::from_bits(*x)).collect();
    let columns: Vec<&[f64]> = (0..R::COLUMNS).map(|i| &all[i * saved..][..saved]).collect();
    let counts = Counts { steps, rejected, evaluations };
    let run = R::from_columns(&times[..saved], &columns, stop, counts);
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
        let open = || open_run_log(&path, json!({ "seed": 1 }), true, &TIMES).unwrap();
        let (mut store, none): (_, Vec<FinishedRun>) = open();
        assert!(none.is_empty());
        store.keep(Method::Sgd, 7, &run(1.5, 3)).unwrap();
        store.keep(Method::Hsgd, 2, &run(0.1, 2)).unwrap();
        drop(store);
        let expected = [
            FinishedRun { method: Method::Sgd, index: 7, run: run(1.5, 3) },
            FinishedRun { method: Method::Hsgd, index: 2, run: run(0.1, 2) },
        ];
        assert_eq!(open().1, expected);
    }

    #[test]
    fn runs_of_generalised_linear_models_read_back_bit_for_bit() {
        let at = |q: f64| Overlaps { q, p: 0.1 * q, v: 9.0 };
        let run = GlmPath {
            times: TIMES[..2].to_vec(),
            overlaps: vec![at(0.0), at(1.0 / 3.0)],
            distance: vec![9.0, 8.7],
            stop: Stop::Diverged { t: 0.75 },
            counts: Counts { steps: 9, rejected: 0, evaluations: 0 },
        };
        let record = encode(Method::Sgd, 4, &run);
        let read: FinishedRun<GlmPath> = decode(&record, &TIMES).unwrap();
        assert_eq!(read, FinishedRun { method: Method::Sgd, index: 4, run });
        assert!(decode::<GlmPath>(&record[..record.len() - 8], &TIMES).is_none());
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
            let read: FinishedRun = decode(&encode(Method::Hsgd, 0, &run), &TIMES).unwrap();
            assert_eq!(read.run.stop, stop);
        }
    }

    #[test]
    fn a_record_of_another_form_is_not_a_run() {
        let record = encode(Method::Sgd, 7, &run(1.5, 3));
        let read = decode::<Trajectory>;
        assert!(read(&record, &TIMES).is_some());
        assert!(read(&record[1..], &TIMES).is_none());
        assert!(read(&record[8..], &TIMES).is_none());
        assert!(read(&record, &TIMES[..2]).is_none());
    }
}
