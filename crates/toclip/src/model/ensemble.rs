//! Ensembles of runs on a generalised linear model.

use super::{GlmPath, GlmSgd, MeasuredPath, Measures, Quantity};
use crate::ensemble::{Ensemble, Statistics, check_probabilities};
use crate::error::{Error, Result};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

/// Loss, error rate, angle and calibration over an ensemble, at each saved time.
///
/// A run that has diverged is left out from then on, and counted, as in
/// [`Summary`](crate::ensemble::Summary).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GlmSummary {
    /// $t$, as far as any run went.
    pub times: Vec<f64>,
    /// The number of runs.
    pub runs: u64,
    /// How many runs there are at each time.
    pub alive: Vec<u64>,
    /// Index of each diverged run, and when it diverged.
    pub diverged: BTreeMap<u64, f64>,
    /// The probabilities of the quantiles.
    pub probabilities: Vec<f64>,
    /// $Q$.
    pub q: Statistics,
    /// $P$.
    pub p: Statistics,
    /// The loss.
    pub loss: Statistics,
    /// The error rate; `None` where labels are not classes.
    pub error_rate: Option<Statistics>,
    /// The angle, in radians.
    pub angle: Statistics,
    /// The calibration slope; NaN at times at which no run has one, as at a start from zero. `None`
    /// where labels are not 0 and 1.
    pub calibration: Option<Statistics>,
}

impl GlmSgd {
    /// All runs of an ensemble, and their statistics.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use toclip::ensemble::Ensemble;
    /// use toclip::model::{GlmSgd, Logistic, TeacherModes};
    /// use toclip::policy::{OpenLoop, Schedule};
    /// use toclip::spectrum::{Spectrum, Start};
    /// let modes = TeacherModes::new(&Spectrum::isotropic(100)?, &Start::Uniform { norm: 3.0 })?;
    /// let policy = Arc::new(OpenLoop::unclipped(Schedule::constant(1.0)?));
    /// let sgd = GlmSgd::new(&modes, Arc::new(Logistic::new(0.0)?), policy)?;
    /// let summary = sgd.ensemble(&Ensemble::new(20, 1), &[0.0, 4.0])?;
    /// assert!(summary.loss.mean[1] < summary.loss.mean[0]);
    /// assert_eq!(summary.alive, [20, 20]);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Ensemble::run`].
    pub fn ensemble(&self, ensemble: &Ensemble, times: &[f64]) -> Result<GlmSummary> {
        let runs = self.runs(ensemble, times, &|| ())?;
        GlmSummary::of(self, times, &runs, &ensemble.probabilities)
    }

    /// All runs of an ensemble, with their index; `tick` is called after each.
    ///
    /// # Errors
    /// As [`Ensemble::run`].
    pub fn runs(
        &self,
        ensemble: &Ensemble,
        times: &[f64],
        tick: &(dyn Fn() + Sync),
    ) -> Result<BTreeMap<u64, GlmPath>> {
        ensemble.all(times, tick, |index| self.run(ensemble.seed, index, times))
    }

    /// Those runs that are not yet finished, each handed to `on_finished`, as
    /// [`Ensemble::run_missing`]. Once `cancel` is set no further run is begun.
    ///
    /// # Errors
    /// As [`Ensemble::run`].
    pub fn run_missing(
        &self,
        ensemble: &Ensemble,
        times: &[f64],
        finished: &BTreeSet<u64>,
        cancel: &AtomicBool,
        on_finished: &(dyn Fn(u64, GlmPath) + Sync),
    ) -> Result<u64> {
        ensemble.each_missing(times, finished, cancel, &|index| {
            on_finished(index, self.run(ensemble.seed, index, times));
        })
    }
}

impl GlmSummary {
    /// The statistics of runs saved at `times`, however they were computed.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are no runs, or one of them is longer than `times`;
    /// [`Error::Parameter`] for a probability outside $\[0, 1\]$.
    pub fn of(
        sgd: &GlmSgd,
        times: &[f64],
        runs: &BTreeMap<u64, GlmPath>,
        probabilities: &[f64],
    ) -> Result<Self> {
        let measured = runs.iter().map(|(&index, run)| (index, run.measured(sgd.model())));
        Self::of_measured(times, &measured.collect(), probabilities)
    }

    /// The statistics of runs whose loss, error rate, angle and calibration are known, as those of
    /// [`GlmStream`](super::GlmStream).
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_measured(
        times: &[f64],
        runs: &BTreeMap<u64, MeasuredPath>,
        probabilities: &[f64],
    ) -> Result<Self> {
        check_probabilities(probabilities)?;
        if runs.is_empty() {
            return Err(Error::Invalid("statistics of an ensemble need at least one run".into()));
        }
        if runs.values().any(|run| run.times.len() > times.len()) {
            return Err(Error::Invalid(
                "a run has more saved times than the ensemble: they belong to different experiments"
                    .into(),
            ));
        }
        let measures: Vec<&[Measures]> = runs.values().map(|run| &run.measures[..]).collect();
        let alive: Vec<u64> = (0..times.len())
            .map(|k| measures.iter().filter(|run| run.len() > k).count() as u64)
            .take_while(|&alive| alive > 0)
            .collect();
        let statistics = |value: &dyn Fn(&MeasuredPath, usize) -> Option<f64>| {
            let mut statistics = Statistics::of_quantiles(probabilities.len());
            for k in 0..alive.len() {
                let column: Vec<f64> = runs.values().filter_map(|run| value(run, k)).collect();
                statistics
                    .push(if column.is_empty() { vec![f64::NAN] } else { column }, probabilities);
            }
            statistics
        };
        let measured = |quantity: Quantity| {
            statistics(&|run, k| run.measures.get(k).and_then(|measures| measures.get(quantity)))
        };
        let classes = measures.iter().copied().flatten().any(|m| m.error_rate.is_some());
        let calibrated = measures.iter().copied().flatten().any(|m| m.calibration.is_some());
        let ended = runs.iter().filter_map(|(&index, run)| Some((index, run.stop.diverged_at()?)));
        Ok(GlmSummary {
            times: times[..alive.len()].to_vec(),
            runs: runs.len() as u64,
            diverged: ended.collect(),
            probabilities: probabilities.to_vec(),
            q: statistics(&|run, k| run.overlaps.get(k).map(|at| at.q)),
            p: statistics(&|run, k| run.overlaps.get(k).map(|at| at.p)),
            loss: measured(Quantity::Loss),
            error_rate: classes.then(|| measured(Quantity::ErrorRate)),
            angle: measured(Quantity::Angle),
            calibration: calibrated.then(|| measured(Quantity::Calibration)),
            alive,
        })
    }
}
