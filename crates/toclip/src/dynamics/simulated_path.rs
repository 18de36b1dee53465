//! The loop over the steps of an iteration, and the path that it saves.

use super::{Counts, Stop, Trajectory};
use crate::model::Overlaps;

/// $k = \mathrm{round}(t d)$: the number of steps before time $t$ is saved.
pub(crate) fn steps_until(t: f64, dim: f64) -> u64 {
    (t * dim).round() as u64
}

/// Whether a risk counts as bounded; NaN does not.
pub(crate) fn within(risk: f64, limit: f64) -> bool {
    risk <= limit
}

/// A run of an iteration, which steps and is saved now and then.
pub(crate) trait Iteration {
    /// Makes step $k$, at time $t = k/d$; false if the path has diverged before it.
    fn step(&mut self, k: u64, t: f64) -> bool;

    /// Saves the present state as that of a time; false if the path has diverged.
    fn save(&mut self, time: f64) -> bool;
}

/// Steps until each of the times and saves it; `available` steps can be made, $d$ in a unit of time.
pub(crate) fn iterate(
    run: &mut impl Iteration,
    dim: f64,
    available: u64,
    times: &[f64],
) -> (Stop, Counts) {
    let mut k = 0;
    let ended = |stop: Stop, steps: u64| (stop, Counts { steps, ..Counts::default() });
    for &time in times {
        let target = steps_until(time, dim);
        if target > available {
            return ended(Stop::DataEnded { t: available as f64 / dim }, k);
        }
        while k < target {
            let t = k as f64 / dim;
            if !run.step(k, t) {
                return ended(Stop::Diverged { t }, k);
            }
            k += 1;
        }
        if !run.save(time) {
            return ended(Stop::Diverged { t: k as f64 / dim }, k);
        }
    }
    ended(Stop::Finished, k)
}

impl Trajectory {
    /// Adds a time.
    pub(crate) fn save(&mut self, t: f64, risk: f64, distance: f64) {
        self.times.push(t);
        self.risk.push(risk);
        self.distance.push(distance);
    }

    /// Adds a time of a generalised linear model.
    pub(crate) fn save_overlaps(&mut self, t: f64, overlaps: Overlaps, distance: f64) {
        self.save(t, overlaps.risk(), distance.max(0.0));
        self.overlaps.get_or_insert_default().push(overlaps);
    }

    /// The path with its end.
    pub(crate) fn ended(self, (stop, counts): (Stop, Counts)) -> Self {
        Trajectory { stop, counts, ..self }
    }
}
