//! The finished runs of an experiment as records of a progress log.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;
use toclip::dynamics::{Counts, Stop, Trajectory};
use toclip::model::Overlaps;

use super::{FinishedRun, Method, RunSink};
use crate::output::{Identity, ProgressLog};

/// The columns of a run: risk and distance, and $Q$, $P$ and $V$ of a model.
fn columns(run: &Trajectory) -> Vec<Vec<f64>> {
    let mut columns = vec![run.risk.clone(), run.distance.clone()];
    if let Some(overlaps) = &run.overlaps {
        let of = |get: fn(&Overlaps) -> f64| overlaps.iter().map(get).collect();
        columns.extend([of(|at| at.q), of(|at| at.p), of(|at| at.v)]);
    }
    columns
}

/// The log of an experiment's runs, and those that were finished before.
///
/// # Errors
/// As [`ProgressLog::open`].
pub fn open_run_log(
    path: &Path,
    inputs: Value,
    resume: bool,
    times: &[f64],
) -> Result<(ProgressLog, Vec<FinishedRun>)> {
    let identity = Identity { command: "toclip run", pieces: "runs", inputs };
    ProgressLog::open(path, &identity, resume, |record| decode(record, times))
}

impl RunSink for ProgressLog {
    fn keep(
        &mut self,
        method: Method,
        index: u64,
        run: &Trajectory,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.add(&encode(method, index, run))?)
    }
}

fn encode(method: Method, index: u64, run: &Trajectory) -> Vec<u8> {
    let place = Method::ALL.iter().position(|m| *m == method).unwrap_or_default() as u64;
    let Counts { steps, rejected, evaluations, .. } = run.counts;
    let (kind, t) = match run.stop {
        Stop::Diverged { t } => (1, t),
        Stop::TargetReached { t } => (2, t),
        Stop::InfiniteVariance { t } => (3, t),
        _ => (0, 0.0),
    };
    let columns = columns(run);
    let whole =
        [place, index, kind, t.to_bits(), steps, rejected, evaluations, columns.len() as u64];
    let numbers = columns.into_iter().flatten().map(f64::to_bits);
    whole.into_iter().chain(numbers).flat_map(u64::to_le_bytes).collect()
}

fn decode(record: &[u8], times: &[f64]) -> Option<FinishedRun> {
    let (words, &[]) = record.as_chunks::<8>() else { return None };
    let words: Vec<u64> = words.iter().map(|w| u64::from_le_bytes(*w)).collect();
    let (&[place, index, kind, t, steps, rejected, evaluations, count], numbers) =
        words.split_first_chunk::<8>()?;
    let t = f64::from_bits(t);
    let stop = match kind {
        0 => Stop::Finished,
        1 => Stop::Diverged { t },
        2 => Stop::TargetReached { t },
        3 => Stop::InfiniteVariance { t },
        _ => return None,
    };
    if !(count == 2 || count == 5) {
        return None;
    }
    let saved = numbers.len() / count as usize;
    if numbers.len() != saved * count as usize || saved > times.len() {
        return None;
    }
    let all: Vec<f64> = numbers.iter().map(|x| f64::from_bits(*x)).collect();
    let column = |i: usize| &all[i * saved..][..saved];
    let at = |k: usize| Overlaps { q: column(2)[k], p: column(3)[k], v: column(4)[k] };
    let run = Trajectory {
        times: times[..saved].to_vec(),
        risk: column(0).to_vec(),
        distance: column(1).to_vec(),
        path: None,
        overlaps: (count == 5).then(|| (0..saved).map(at).collect()),
        // Computed again from the overlaps.
        measures: None,
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
            overlaps: None,
            measures: None,
            stop,
            counts: Counts { steps: 9, rejected: 1, evaluations: 5 },
        }
    }

    #[test]
    fn runs_read_back_bit_for_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        let open = || open_run_log(&path, json!({ "seed": 1 }), true, &TIMES).unwrap();
        let (mut store, none) = open();
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
        let run = Trajectory {
            overlaps: Some(vec![at(0.0), at(1.0 / 3.0)]),
            stop: Stop::Diverged { t: 0.75 },
            ..run(1.5, 2)
        };
        let record = encode(Method::Sgd, 4, &run);
        let read = decode(&record, &TIMES).unwrap();
        assert_eq!(read, FinishedRun { method: Method::Sgd, index: 4, run });
        assert!(decode(&record[..record.len() - 8], &TIMES).is_none());
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
        let read = decode;
        assert!(read(&record, &TIMES).is_some());
        assert!(read(&record[1..], &TIMES).is_none());
        assert!(read(&record[8..], &TIMES).is_none());
        assert!(read(&record, &TIMES[..2]).is_none());
    }
}
