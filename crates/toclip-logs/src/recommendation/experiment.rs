//! A short experiment for SGD: threshold and learning rate together.

use serde::Serialize;

use super::guard::two_digits;
use crate::findings::{TrainingCourse, median};
use crate::{Log, RunContext};

/// One run of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateExperiment {
    /// The threshold; `None` for no clipping.
    pub threshold: Option<f64>,
    /// The learning rate over the one in use.
    pub rate_times: f64,
    /// The learning rate, if the log has it.
    pub learning_rate: Option<f64>,
    /// How many steps to train from the same checkpoint or seed.
    pub steps: u64,
    /// What to compare: the smoothed loss at the end of these steps.
    pub compare: &'static str,
}

/// A small fixed threshold with larger rates, which beat every unclipped run of SGD on a transformer; the
/// present setting; and a lower rate without clipping, because a threshold that is always active acts
/// as one.
pub(super) fn for_sgd(log: &Log, course: &TrainingCourse, now: &RunContext) -> Vec<RateExperiment> {
    let norms: Vec<f64> = course.ordinary(&log.points).map(|p| p.norm).collect();
    let Some(median) = median(norms).filter(|m| *m > 0.0) else { return Vec::new() };
    let third = Some(two_digits(median / 3.0));
    let mut pairs = vec![(now.in_force(), 1.0)];
    pairs.extend(now.in_force().map(|_| (None, 1.0)));
    pairs.extend([(third, 1.0), (third, 3.0), (third, 10.0), (None, 0.3)]);
    pairs.into_iter().map(|(threshold, rate)| run(log, threshold, rate)).collect()
}

/// A lower rate, because spikes that come back all the time can mean that it is too large.
pub(super) fn lower_rate(log: &Log, now: &RunContext) -> Vec<RateExperiment> {
    [1.0, 0.3].map(|rate| run(log, now.in_force(), rate)).to_vec()
}

fn run(log: &Log, threshold: Option<f64>, rate_times: f64) -> RateExperiment {
    let length = match &log.points[..] {
        [first, .., last] => last.step - first.step,
        _ => 0.0,
    };
    RateExperiment {
        threshold,
        rate_times,
        learning_rate: log.learning_rates().reduce(f64::max).map(|r| two_digits(r * rate_times)),
        steps: two_digits((length / 10.0).clamp(200.0, 2000.0)) as u64,
        compare: "smoothed loss",
    }
}
