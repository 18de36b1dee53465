//! Batches on all cores, saved as they are finished.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Result, anyhow, bail};
use toclip_embed::{Batches, Embedder};

use crate::output::ProgressLog;

/// The threads that can run at once.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The embeddings of a batch, one after the other: a record of the progress log.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedBatch {
    pub batch: usize,
    pub values: Vec<f32>,
}

impl FinishedBatch {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = (self.batch as u64).to_le_bytes().to_vec();
        bytes.extend(self.values.iter().flat_map(|x| x.to_le_bytes()));
        bytes
    }

    /// A batch from its record.
    pub fn decode(record: &[u8]) -> Option<Self> {
        let (batch, rest) = record.split_first_chunk::<8>()?;
        let (numbers, &[]) = rest.as_chunks::<4>() else { return None };
        let values = numbers.iter().map(|x| f32::from_le_bytes(*x)).collect();
        Some(Self { batch: usize::try_from(u64::from_le_bytes(*batch)).ok()?, values })
    }
}

/// The embeddings of all lines.
pub struct Embeddings {
    pub values: Vec<f32>,
    pub width: usize,
}

impl Embeddings {
    pub fn new(rows: usize, width: usize) -> Self {
        Embeddings { values: vec![0.0; rows * width], width }
    }

    /// Gives every line of a batch its vector; `false` where the batch is not of this text.
    fn fill(&mut self, batches: &Batches, done: &FinishedBatch) -> bool {
        let count =
            if done.batch < batches.len() { batches.sequences(done.batch).len() } else { 0 };
        if count == 0 || done.values.len() != count * self.width {
            return false;
        }
        for (vector, lines) in done.values.chunks(self.width).zip(batches.lines(done.batch)) {
            for line in lines {
                self.values[line * self.width..][..self.width].copy_from_slice(vector);
            }
        }
        true
    }
}

/// How batches are computed.
pub struct EmbeddingJob<'a> {
    pub embedder: &'a Embedder,
    pub batches: &'a Batches,
    pub threads: usize,
    pub cancel: &'a AtomicBool,
    /// Called after every finished batch.
    pub tick: &'a (dyn Fn(usize) + Sync),
}

impl EmbeddingJob<'_> {
    /// Computes the missing batches. If it is cancelled, returns the number of finished ones.
    pub fn run(
        &self,
        embeddings: &mut Embeddings,
        progress: &mut ProgressLog,
        done: Vec<FinishedBatch>,
    ) -> Result<Option<usize>> {
        let mut left = vec![true; self.batches.len()];
        for done in &done {
            if !embeddings.fill(self.batches, done) {
                bail!("{} belongs to another text; delete it", progress.path().display());
            }
            left[done.batch] = false;
            (self.tick)(done.batch);
        }
        let left: Vec<usize> = (0..left.len()).filter(|b| left[*b]).collect();
        let taken = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let sink = Mutex::new((embeddings, progress, 0));
        let worker = || -> Result<()> {
            while !self.cancel.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
                let Some(batch) = left.get(taken.fetch_add(1, Ordering::Relaxed)) else { break };
                let values = self.embedder.embed(&self.batches.sequences(*batch))?.concat();
                let done = FinishedBatch { batch: *batch, values };
                let mut sink = sink.lock().map_err(|_| anyhow!("a thread has failed"))?;
                sink.0.fill(self.batches, &done);
                sink.1.add(&done.encode())?;
                sink.2 += 1;
                (self.tick)(*batch);
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads.min(left.len()))
                .map(|_| {
                    scope.spawn(|| {
                        // The inference crate would share out every small product; a batch a
                        // thread keeps all cores busy with less waiting.
                        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
                        let result = alone.install(worker);
                        failed.fetch_or(result.is_err(), Ordering::Relaxed);
                        result
                    })
                })
                .collect();
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| Err(anyhow!("a thread has failed")))
            })
        })?;
        let finished = sink.into_inner().map_or(0, |sink| sink.2) + done.len();
        Ok((finished < self.batches.len()).then_some(finished))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Identity;
    use std::path::Path;

    fn open(path: &Path) -> (ProgressLog, Vec<FinishedBatch>) {
        let inputs = serde_json::json!({});
        let identity = Identity { command: "toclip embed", pieces: "batches", inputs };
        ProgressLog::open(path, &identity, true, FinishedBatch::decode).unwrap()
    }

    #[test]
    fn a_batch_survives_its_record() {
        let batch = FinishedBatch { batch: 4, values: vec![1.5, -2.0] };
        let record = batch.encode();
        assert_eq!(FinishedBatch::decode(&record), Some(batch));
        assert_eq!(FinishedBatch::decode(&record[..record.len() - 1]), None);
    }

    /// The model of the tests, and some lines of it, equal ones among them.
    fn setting() -> (Embedder, Batches) {
        let model =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../toclip-embed/tests/data/bert-tiny");
        let embedder = Embedder::open(&model, 512).unwrap();
        let line = |i: usize| format!("the {} games", "and ".repeat(i * 5 % 13));
        let ids = (0..60).map(|i| embedder.ids(&line(i)).unwrap()).collect();
        (embedder, Batches::new(ids))
    }

    #[test]
    fn an_interrupted_run_goes_on_to_the_same_bits_with_any_number_of_threads() {
        let (embedder, batches) = setting();
        assert_eq!((batches.len(), batches.distinct()), (13, 13));
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str| open(&folder.path().join(name));
        let run = |name: &str, threads: usize, most: usize| {
            let (mut progress, done) = open(name);
            let (cancel, count) = (AtomicBool::new(false), AtomicUsize::new(done.len()));
            let tick = |_| {
                if count.fetch_add(1, Ordering::Relaxed) >= most {
                    cancel.store(true, Ordering::Relaxed);
                }
            };
            let mut embeddings = Embeddings::new(60, embedder.width());
            let (embedder, batches, cancel) = (&embedder, &batches, &cancel);
            let work = EmbeddingJob { embedder, batches, threads, cancel, tick: &tick };
            let cancelled = work.run(&mut embeddings, &mut progress, done).unwrap();
            (embeddings.values, cancelled)
        };
        let (whole, cancelled) = run("whole", 1, 100);
        assert_eq!(cancelled, None);
        assert!(whole.chunks(embedder.width()).all(|row| row.iter().any(|x| *x != 0.0)));
        let (_, cancelled) = run("parts", 2, 3);
        assert!(cancelled.is_some_and(|n| (1..13).contains(&n)), "{cancelled:?}");
        let (resumed, cancelled) = run("parts", 3, 100);
        assert_eq!(cancelled, None);
        assert_eq!(resumed, whole);
        assert_eq!(open("parts").1.len(), 13);
    }

    #[test]
    fn progress_of_another_text_is_not_taken() {
        let (embedder, batches) = setting();
        let folder = tempfile::tempdir().unwrap();
        let (mut progress, _) = open(&folder.path().join("p"));
        let cancel = AtomicBool::new(false);
        let work = EmbeddingJob {
            embedder: &embedder,
            batches: &batches,
            threads: 1,
            cancel: &cancel,
            tick: &|_| {},
        };
        for (batch, numbers) in [(99, 16), (0, 3)] {
            let mut embeddings = Embeddings::new(60, embedder.width());
            let done = vec![FinishedBatch { batch, values: vec![0.0; numbers] }];
            let error = work.run(&mut embeddings, &mut progress, done).unwrap_err().to_string();
            assert!(error.contains("belongs to another text"), "{error}");
        }
    }
}
