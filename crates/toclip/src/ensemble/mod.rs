//! Ensembles: many runs of a simulation, and statistics of their risks $R$ and distances $D$.
//!
//! - [`Ensemble::run`] keeps every run: memory proportional to runs × saved times, exact quantiles;
//! - [`Ensemble::stream`] keeps counts only: memory proportional to the saved times, quantiles to a
//!   stated relative error, for very many runs;
//! - [`Ensemble::run_missing`] passes on every run as it finishes and can be interrupted;
//!   [`Summary::of`] computes the statistics of runs from any source.
//!
//! Run number $i$ is a function of the seed and $i$, and statistics are taken in the order of the
//! indices: the bits do not depend on the number of threads.

mod error;
mod sketch;
mod summary;

pub use error::EnsembleError;
pub use sketch::Sketch;
pub use summary::{MeasureStatistics, Statistics, Summary};

use crate::dynamics::{Simulator, TimesError, Trajectory};
use crate::error::{Error, Result};
use crate::parallel::{for_each_long, map_long};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Called with the number of finished runs while an ensemble is computed.
pub type Progress<'a> = &'a (dyn Fn(u64) + Sync);

/// $N$ runs from one seed.
///
/// | field | default | meaning |
/// |---|---|---|
/// | `runs` | | $N \ge 1$ |
/// | `seed` | | seed of the whole ensemble; run $i$ is replayed by `simulator.run(seed, i, times)` |
/// | `probabilities` | 0.1, 0.9 | quantiles to report in addition to the median |
/// | `threads` | all cores | how many threads to use; changes no bit of the result |
///
/// ```
/// use toclip::Problem;
/// use toclip::dynamics::{Collapsed, Simulator};
/// use toclip::ensemble::Ensemble;
/// use toclip::noise::Gaussian;
/// use toclip::policy::OpenLoop;
/// use toclip::spectrum::{Modes, Spectrum, Start};
///
/// let modes = Modes::new(&Spectrum::isotropic(100)?, &Start::Uniform { norm: 1.0 })?;
/// let problem = Problem::new(modes, Gaussian::new(0.5)?, OpenLoop::constant(0.7, 0.9)?)?;
/// let sgd = Collapsed::new(&problem)?;
/// let times = [0.0, 1.0, 2.0];
/// let band = Ensemble::new(100, 1).confidence(0.8)?.run(&sgd, &times, None)?;
/// let (low, high) = (&band.risk.quantiles[0], &band.risk.quantiles[1]);
/// assert!(low[2] < band.risk.median[2] && band.risk.median[2] < high[2]);
/// assert_eq!(band.alive, [100, 100, 100]);
/// // Any run again, by its index.
/// let run = sgd.run(1, 42, &times);
/// assert!(band.risk.min[2] <= run.risk[2] && run.risk[2] <= band.risk.max[2]);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Ensemble {
    /// $N$, the number of runs.
    pub runs: u64,
    /// The seed of the ensemble.
    pub seed: u64,
    /// The probabilities of the quantiles to report.
    pub probabilities: Vec<f64>,
    /// The number of threads; `None` for all cores.
    pub threads: Option<usize>,
}

/// The number of runs in memory at once when streaming: enough to keep every core busy.
const ROUND: u64 = 1024;

impl Ensemble {
    /// $N$ runs from `seed`, with an 80% band, on all cores.
    pub fn new(runs: u64, seed: u64) -> Self {
        Ensemble { runs, seed, probabilities: vec![0.1, 0.9], threads: None }
    }

    /// The same with the central band that holds this fraction of the runs.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless the fraction is between 0 and 1.
    ///
    /// ```
    /// use toclip::ensemble::Ensemble;
    /// assert_eq!(Ensemble::new(10, 1).confidence(0.5)?.probabilities, [0.25, 0.75]);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn confidence(mut self, confidence: f64) -> Result<Self> {
        if !(confidence > 0.0 && confidence < 1.0) {
            return Err(Error::parameter("confidence", confidence, "give a number in (0, 1)"));
        }
        self.probabilities = vec![0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence];
        Ok(self)
    }

    /// The same on this many threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// All runs, and the statistics of $R$ and $D$ at the given times.
    ///
    /// # Errors
    /// [`Error::Parameter`], [`Error::Times`] or [`Error::Ensemble`] for an ensemble without runs,
    /// impossible probabilities, times that do not increase, or threads that cannot be started.
    pub fn run(
        &self,
        simulator: &dyn Simulator,
        times: &[f64],
        progress: Option<Progress<'_>>,
    ) -> Result<Summary> {
        let (finished, done) = (Mutex::new(BTreeMap::new()), AtomicU64::new(0));
        let keep = |index, run| {
            lock(&finished).insert(index, run);
            if let Some(progress) = progress {
                progress(done.fetch_add(1, Ordering::Relaxed) + 1);
            }
        };
        self.run_missing(simulator, times, &BTreeSet::new(), &AtomicBool::new(false), &keep)?;
        let finished = finished.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        Summary::of(times, &finished, &self.probabilities)
    }

    /// Those runs that are not yet finished, each handed to `on_finished` with its index, from
    /// whichever thread and in whichever order they end. Returns how many were run.
    ///
    /// Once `cancel` is set no further run is begun; those under way are finished.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_missing(
        &self,
        simulator: &dyn Simulator,
        times: &[f64],
        finished: &BTreeSet<u64>,
        cancel: &AtomicBool,
        on_finished: &(dyn Fn(u64, Trajectory) + Sync),
    ) -> Result<u64> {
        self.check(times)?;
        let count = AtomicU64::new(0);
        let runs = usize::try_from(self.runs).unwrap_or(usize::MAX);
        on_threads(self.threads, || {
            // One run is one task: they are long, and some may end early. An error ends them all.
            for_each_long(0..runs, |index| {
                let index = index as u64;
                if cancel.load(Ordering::Relaxed) {
                    return false;
                }
                if !finished.contains(&index) {
                    on_finished(index, simulator.run(self.seed, index, times));
                    count.fetch_add(1, Ordering::Relaxed);
                }
                true
            });
        })?;
        Ok(count.into_inner())
    }

    /// All runs without keeping them: quantiles by a [`Sketch`], off by at most `accuracy`
    /// relative to the nearest order statistic; means, extremes and counts exact.
    ///
    /// # Errors
    /// As [`run`](Self::run), and for an accuracy outside $[10^{-6}, 0.5]$.
    pub fn stream(
        &self,
        simulator: &dyn Simulator,
        times: &[f64],
        accuracy: f64,
        progress: Option<Progress<'_>>,
    ) -> Result<Summary> {
        self.check(times)?;
        let empty = Sketch::new(accuracy)?;
        let mut sketches = vec![(empty.clone(), empty); times.len()];
        let mut diverged = BTreeMap::new();
        let mut first = 0;
        while first < self.runs {
            let round: Vec<u64> = (first..self.runs.min(first + ROUND)).collect();
            let run = |&index: &u64| simulator.run(self.seed, index, times);
            let runs: Vec<Trajectory> = on_threads(self.threads, || map_long(&round, run))?;
            // In the order of the indices, so that sums do not depend on which run finished first.
            for (&index, run) in round.iter().zip(&runs) {
                for ((risk, distance), (r, d)) in
                    sketches.iter_mut().zip(run.risk.iter().zip(&run.distance))
                {
                    risk.add(*r);
                    distance.add(*d);
                }
                if let Some(t) = run.stop.diverged_at() {
                    diverged.insert(index, t);
                }
            }
            first += round.len() as u64;
            if let Some(progress) = progress {
                progress(first);
            }
        }
        Ok(Summary::of_sketches(times, self.runs, diverged, &sketches, &self.probabilities))
    }

    fn check(&self, times: &[f64]) -> Result<()> {
        if self.runs == 0 {
            return Err(Error::parameter("runs", 0.0, "an ensemble needs at least one run"));
        }
        check_probabilities(&self.probabilities)?;
        let allowed = times.iter().all(|t| t.is_finite() && *t >= 0.0) && times.is_sorted();
        if times.is_empty() || !allowed {
            return Err(Error::Times(TimesError::Ensemble));
        }
        Ok(())
    }
}

const MOST_THREADS: usize = 1024;

/// Runs `work` in a pool of `threads` threads, or in the global one.
pub fn on_threads<T: Send>(threads: Option<usize>, work: impl FnOnce() -> T + Send) -> Result<T> {
    let Some(threads) = threads else { return Ok(work()) };
    if threads == 0 {
        return Err(Error::parameter("threads", 0.0, "give at least 1, or none for all cores"));
    }
    // Starting a million of them takes minutes and cannot be interrupted.
    if threads > MOST_THREADS {
        let why = "give at most 1024";
        return Err(Error::parameter("threads", threads as f64, why));
    }
    #[cfg(feature = "rayon")]
    {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let refused = |e: &dyn std::error::Error| {
            Error::Ensemble(EnsembleError::Threads { threads, reason: e.to_string() })
        };
        let pool = pool.map_err(|e| refused(&e))?;
        if rayon::current_thread_index().is_none() {
            return Ok(pool.install(work));
        }
        // While a thread of a pool waits for another pool, it begins other work of its own pool, which may
        // wait in turn, until the stack overflows. A plain thread only waits.
        std::thread::scope(|scope| {
            let waits = std::thread::Builder::new().spawn_scoped(scope, || pool.install(work));
            match waits.map_err(|e| refused(&e))?.join() {
                Ok(done) => Ok(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
    #[cfg(not(feature = "rayon"))]
    Ok(work())
}

pub(crate) fn check_probabilities(probabilities: &[f64]) -> Result<()> {
    match probabilities.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        Some(p) => Err(Error::parameter("probability", *p, "probabilities must lie in [0, 1]")),
        None => Ok(()),
    }
}

/// Data of a thread that panicked are consistent: insertions do not stop half-way.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamics::{Counts, Stop};
    use crate::sim::{Purpose, scalar_rng};
    use rand::RngExt;

    #[test]
    #[cfg(feature = "rayon")]
    fn a_thread_that_waits_for_another_pool_begins_nothing_else() {
        use rayon::prelude::*;
        use std::cell::Cell;
        thread_local!(static DEPTH: Cell<usize> = const { Cell::new(0) });
        let deepest = on_threads(Some(2), || {
            let one = |k: u64| {
                let depth = DEPTH.get() + 1;
                DEPTH.set(depth);
                let sum =
                    on_threads(Some(1), || (0..1000 * k).into_par_iter().sum::<u64>()).unwrap();
                assert_eq!(sum, (0..1000 * k).sum::<u64>());
                DEPTH.set(depth - 1);
                depth
            };
            (0..200).into_par_iter().map(one).max()
        });
        assert_eq!(deepest.unwrap(), Some(1));
    }

    /// Uniform numbers; every fifth run ends after its second time.
    #[derive(Debug)]
    struct Dice;

    impl Simulator for Dice {
        fn run(&self, seed: u64, index: u64, times: &[f64]) -> Trajectory {
            let mut rng = scalar_rng(seed, index, Purpose::Noise);
            let length = if index % 5 == 4 { times.len().min(2) } else { times.len() };
            let risk: Vec<f64> = (0..length).map(|_| rng.random()).collect();
            let distance = risk.iter().map(|r| 2.0 * r).collect();
            let stop = if length < times.len() {
                Stop::Diverged { t: times[length] }
            } else {
                Stop::Finished
            };
            let times = times[..length].to_vec();
            Trajectory {
                times,
                risk,
                distance,
                path: None,
                overlaps: None,
                measures: None,
                stop,
                counts: Counts::default(),
            }
        }
    }

    const TIMES: [f64; 4] = [0.0, 1.0, 2.0, 3.0];

    #[test]
    fn threads_change_no_bit() {
        let bytes = |summary: Summary| serde_json::to_string(&summary).unwrap();
        let ensemble = Ensemble::new(2500, 3);
        let one = ensemble.clone().threads(1);
        let run = bytes(one.run(&Dice, &TIMES, None).unwrap());
        let stream = bytes(one.stream(&Dice, &TIMES, 0.01, None).unwrap());
        for threads in [2, 5] {
            let other = ensemble.clone().threads(threads);
            assert_eq!(run, bytes(other.run(&Dice, &TIMES, None).unwrap()));
            assert_eq!(stream, bytes(other.stream(&Dice, &TIMES, 0.01, None).unwrap()));
        }
        assert_eq!(run, bytes(ensemble.run(&Dice, &TIMES, None).unwrap()));
    }

    #[test]
    fn diverged_runs_are_counted_and_left_out() {
        let ensemble = Ensemble { probabilities: vec![0.2], ..Ensemble::new(100, 3) };
        let summary = ensemble.run(&Dice, &TIMES, None).unwrap();
        assert_eq!(summary.alive, [100, 100, 80, 80]);
        assert_eq!(summary.diverged.len(), 20);
        assert_eq!(summary.diverged[&4], 2.0);
        // Independently, for one time.
        let mut risks: Vec<f64> =
            (0..100).filter_map(|i| Dice.run(3, i, &TIMES).risk.get(2).copied()).collect();
        let mean = risks.iter().sum::<f64>() / 80.0;
        assert!((summary.risk.mean[2] - mean).abs() < 1e-15);
        risks.sort_by(f64::total_cmp);
        assert_eq!(summary.risk.min[2], risks[0]);
        assert!((summary.risk.median[2] - 0.5 * (risks[39] + risks[40])).abs() < 1e-15);
        let fifth = risks[15] + 0.8 * (risks[16] - risks[15]);
        assert!((summary.risk.quantiles[0][2] - fifth).abs() < 1e-15);
        let variance = risks.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / 79.0;
        assert!((summary.risk.standard_error[2] - (variance / 80.0).sqrt()).abs() < 1e-15);
        assert_eq!(summary.distance.max[2], 2.0 * risks[79]);
    }

    #[test]
    fn where_all_have_diverged_the_table_ends() {
        let run = Dice.run(3, 4, &TIMES);
        let summary = Summary::of(&TIMES, &BTreeMap::from([(4, run)]), &[0.5]).unwrap();
        assert_eq!(summary.times, [0.0, 1.0]);
        assert_eq!(summary.risk.mean.len(), 2);
        assert_eq!(summary.risk.standard_error, [0.0, 0.0]);
    }

    #[test]
    fn streaming_is_within_its_accuracy() {
        let ensemble = Ensemble::new(3000, 9);
        let exact = ensemble.run(&Dice, &TIMES, None).unwrap();
        let last = AtomicU64::new(0);
        let progress = |done| last.store(done, Ordering::Relaxed);
        let stream = ensemble.stream(&Dice, &TIMES, 0.01, Some(&progress)).unwrap();
        assert_eq!(last.into_inner(), 3000);
        assert_eq!((&stream.alive, &stream.diverged), (&exact.alive, &exact.diverged));
        assert_eq!((&stream.risk.min, &stream.risk.max), (&exact.risk.min, &exact.risk.max));
        for k in 0..4 {
            assert!((stream.risk.mean[k] / exact.risk.mean[k] - 1.0).abs() < 1e-13);
            let errors = stream.risk.standard_error[k] / exact.risk.standard_error[k];
            assert!((errors - 1.0).abs() < 1e-12);
            let at = |i| Dice.run(9, i, &TIMES).risk.get(k).copied();
            let mut risks: Vec<f64> = (0..3000).filter_map(at).collect();
            risks.sort_by(f64::total_cmp);
            for (column, p) in stream.risk.quantiles.iter().zip(&stream.probabilities) {
                let nearest = risks[(p * (risks.len() - 1) as f64).round() as usize];
                assert!((column[k] / nearest - 1.0).abs() <= 0.01 * (1.0 + 1e-9));
            }
        }
    }

    #[test]
    fn a_run_cut_short_is_continued() {
        let ensemble = Ensemble::new(50, 3).threads(2);
        let whole = ensemble.run(&Dice, &TIMES, None).unwrap();
        let runs = Mutex::new(BTreeMap::new());
        let cancel = AtomicBool::new(false);
        let first = |index, run| {
            let mut runs = lock(&runs);
            runs.insert(index, run);
            cancel.store(runs.len() >= 20, Ordering::Relaxed);
        };
        let count = ensemble.run_missing(&Dice, &TIMES, &BTreeSet::new(), &cancel, &first).unwrap();
        assert!((20..50).contains(&count), "{count}");
        let finished: BTreeSet<u64> = lock(&runs).keys().copied().collect();
        let go = AtomicBool::new(false);
        let rest = |index, run| {
            assert!(lock(&runs).insert(index, run).is_none());
        };
        let more = ensemble.run_missing(&Dice, &TIMES, &finished, &go, &rest).unwrap();
        assert_eq!(count + more, 50);
        assert_eq!(Summary::of(&TIMES, &lock(&runs), &[0.1, 0.9]).unwrap(), whole);
    }

    #[test]
    fn impossible_ensembles_are_refused_with_a_message() {
        let message =
            |e: Ensemble, times: &[f64]| e.run(&Dice, times, None).unwrap_err().to_string();
        let good = Ensemble::new(1, 1);
        assert!(message(Ensemble::new(0, 1), &TIMES).contains("runs = 0"));
        assert!(message(good.clone().threads(0), &TIMES).contains("threads = 0"));
        assert!(message(good.clone().threads(1_000_000), &TIMES).contains("threads = 1000000"));
        let odd = Ensemble { probabilities: vec![1.5], ..good.clone() };
        assert!(message(odd, &TIMES).contains("probability = 1.5"));
        for times in [&[][..], &[1.0, 0.0], &[-1.0], &[f64::NAN]] {
            assert!(message(good.clone(), times).contains("increasing"));
        }
        assert!(good.clone().confidence(1.0).is_err());
        assert!(good.stream(&Dice, &TIMES, 0.0, None).is_err());
        assert!(Summary::of(&TIMES, &BTreeMap::new(), &[]).is_err());
        let long = BTreeMap::from([(0, Dice.run(1, 0, &TIMES))]);
        assert!(Summary::of(&TIMES[..1], &long, &[]).unwrap_err().to_string().contains("run 0"));
    }
}
