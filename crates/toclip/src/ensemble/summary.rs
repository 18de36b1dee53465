//! The statistics of an ensemble.

use super::{EnsembleError, Sketch, check_probabilities};
use crate::dynamics::Trajectory;
use crate::error::{Error, Result};
use crate::model::Quantity;
use crate::numerics::sum::compensated;
use serde::Serialize;
use std::collections::BTreeMap;

/// $R$ and $D$ over an ensemble, at each saved time.
///
/// A run that has diverged is left out of the statistics from then on, and counted: `alive` is the
/// number of runs behind each column. Times that no run reached are left out, so the table has no
/// NaN.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
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
    /// $R$.
    pub risk: Statistics,
    /// $D$.
    pub distance: Statistics,
    /// Loss, error rate, angle and calibration; `None` for least squares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measures: Option<MeasureStatistics>,
}

/// The statistics of a generalised linear model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasureStatistics {
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

impl MeasureStatistics {
    /// The statistics of one quantity; `None` where the model does not have it.
    pub fn get(&self, quantity: Quantity) -> Option<&Statistics> {
        match quantity {
            Quantity::Loss => Some(&self.loss),
            Quantity::ErrorRate => self.error_rate.as_ref(),
            Quantity::Angle => Some(&self.angle),
            Quantity::Calibration => self.calibration.as_ref(),
        }
    }

    /// Those of runs that have measures; `times` of them are reached.
    fn of(runs: &[&Trajectory], times: usize, probabilities: &[f64]) -> Option<Self> {
        let measures = |run: &Trajectory, k: usize| run.measures.as_ref()?.get(k).copied();
        let overlaps = |run: &Trajectory, k: usize| run.overlaps.as_ref()?.get(k).copied();
        let all = || runs.iter().filter_map(|run| run.measures.as_deref()).flatten();
        all().next()?;
        let statistics = |value: &dyn Fn(&Trajectory, usize) -> Option<f64>| {
            let mut statistics = Statistics::of_quantiles(probabilities.len());
            for k in 0..times {
                let column: Vec<f64> = runs.iter().filter_map(|run| value(run, k)).collect();
                let column = if column.is_empty() { vec![f64::NAN] } else { column };
                statistics.push(column, probabilities);
            }
            statistics
        };
        let of = |quantity: Quantity| statistics(&|run, k| measures(run, k)?.get(quantity));
        let has = |quantity: Quantity| all().any(|m| m.get(quantity).is_some());
        Some(MeasureStatistics {
            q: statistics(&|run, k| Some(overlaps(run, k)?.q)),
            p: statistics(&|run, k| Some(overlaps(run, k)?.p)),
            loss: of(Quantity::Loss),
            error_rate: has(Quantity::ErrorRate).then(|| of(Quantity::ErrorRate)),
            angle: of(Quantity::Angle),
            calibration: has(Quantity::Calibration).then(|| of(Quantity::Calibration)),
        })
    }
}

/// Statistics of one quantity, one number for each time.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Statistics {
    /// The mean.
    pub mean: Vec<f64>,
    /// The standard error of the mean; zero for a single run.
    pub standard_error: Vec<f64>,
    /// The median.
    pub median: Vec<f64>,
    /// The quantile for each of the probabilities.
    pub quantiles: Vec<Vec<f64>>,
    /// The smallest.
    pub min: Vec<f64>,
    /// The largest.
    pub max: Vec<f64>,
}

impl Summary {
    /// The statistics of a measure of a model; `None` where the runs do not have it.
    pub fn get(&self, quantity: Quantity) -> Option<&Statistics> {
        self.measures.as_ref()?.get(quantity)
    }

    /// The statistics of runs saved at `times`, however they were computed.
    ///
    /// Quantiles interpolate linearly between order statistics (type 7 of Hyndman and Fan, 1996).
    ///
    /// # Errors
    /// [`Error::Ensemble`] if there are no runs, or one of them is longer than `times`;
    /// [`Error::Parameter`] for a probability outside $\[0, 1\]$.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use toclip::dynamics::{Counts, Stop, Trajectory};
    /// use toclip::ensemble::Summary;
    /// let run = |r: f64| Trajectory {
    ///     times: vec![0.0], risk: vec![r], distance: vec![2.0 * r],
    ///     path: None, overlaps: None, measures: None,
    ///     stop: Stop::Finished, counts: Counts::default(),
    /// };
    /// let runs = BTreeMap::from([(0, run(1.0)), (1, run(4.0)), (2, run(2.0))]);
    /// let summary = Summary::of(&[0.0], &runs, &[0.25])?;
    /// assert_eq!(summary.risk.median, [2.0]);
    /// assert_eq!(summary.risk.quantiles, [[1.5]]);
    /// assert_eq!(summary.distance.max, [8.0]);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn of(
        times: &[f64],
        runs: &BTreeMap<u64, Trajectory>,
        probabilities: &[f64],
    ) -> Result<Self> {
        check_probabilities(probabilities)?;
        if runs.is_empty() {
            return Err(Error::Ensemble(EnsembleError::NoRuns));
        }
        if let Some((index, run)) = runs.iter().find(|(_, run)| run.risk.len() > times.len()) {
            return Err(Error::Ensemble(EnsembleError::OtherTimes {
                index: *index,
                saved: run.risk.len(),
                expected: times.len(),
            }));
        }
        let mut alive = Vec::new();
        let mut risk = Statistics::of_quantiles(probabilities.len());
        let mut distance = risk.clone();
        for k in 0..times.len() {
            let column = |of: fn(&Trajectory) -> &Vec<f64>| -> Vec<f64> {
                runs.values().filter_map(|run| of(run).get(k).copied()).collect()
            };
            let risks = column(|run| &run.risk);
            if risks.is_empty() {
                break;
            }
            alive.push(risks.len() as u64);
            risk.push(risks, probabilities);
            distance.push(column(|run| &run.distance), probabilities);
        }
        let diverged =
            runs.iter().filter_map(|(&index, run)| Some((index, run.stop.diverged_at()?)));
        let all: Vec<&Trajectory> = runs.values().collect();
        Ok(Summary {
            measures: MeasureStatistics::of(&all, alive.len(), probabilities),
            times: times[..alive.len()].to_vec(),
            runs: runs.len() as u64,
            alive,
            diverged: diverged.collect(),
            probabilities: probabilities.to_vec(),
            risk,
            distance,
        })
    }

    pub(super) fn of_sketches(
        times: &[f64],
        runs: u64,
        diverged: BTreeMap<u64, f64>,
        sketches: &[(Sketch, Sketch)],
        probabilities: &[f64],
    ) -> Self {
        let reached = sketches.partition_point(|(risk, _)| risk.count() > 0);
        let sketches = &sketches[..reached];
        let mut risk = Statistics::of_quantiles(probabilities.len());
        let mut distance = risk.clone();
        for (r, d) in sketches {
            risk.push_sketch(r, probabilities);
            distance.push_sketch(d, probabilities);
        }
        let alive = sketches.iter().map(|(risk, _)| risk.count()).collect();
        let (times, probabilities) = (times[..reached].to_vec(), probabilities.to_vec());
        Summary { times, runs, alive, diverged, probabilities, risk, distance, measures: None }
    }
}

impl Statistics {
    pub(crate) fn of_quantiles(count: usize) -> Self {
        Statistics { quantiles: vec![Vec::new(); count], ..Statistics::default() }
    }

    pub(crate) fn push(&mut self, mut values: Vec<f64>, probabilities: &[f64]) {
        let n = values.len() as f64;
        let mean = compensated(values.iter().copied()) / n;
        let squares = compensated(values.iter().map(|v| (v - mean).powi(2)));
        self.mean.push(mean);
        self.standard_error.push((squares / (n - 1.0).max(1.0) / n).sqrt());
        values.sort_by(f64::total_cmp);
        self.median.push(quantile(&values, 0.5));
        for (column, p) in self.quantiles.iter_mut().zip(probabilities) {
            column.push(quantile(&values, *p));
        }
        self.min.push(values[0]);
        self.max.push(values[values.len() - 1]);
    }

    fn push_sketch(&mut self, sketch: &Sketch, probabilities: &[f64]) {
        self.mean.push(sketch.mean());
        self.standard_error.push(sketch.standard_error());
        self.median.push(sketch.quantile(0.5));
        for (column, p) in self.quantiles.iter_mut().zip(probabilities) {
            column.push(sketch.quantile(*p));
        }
        self.min.push(sketch.min());
        self.max.push(sketch.max());
    }
}

/// The quantile of sorted values, which are not none.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let place = p * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let (low, high) = (sorted[below], sorted[above]);
    if low == high {
        // Of infinite values too, which have no difference.
        return low;
    }
    low + (place - below as f64) * (high - low)
}
