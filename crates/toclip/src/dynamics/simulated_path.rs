//! The saved part of a simulated path.

use super::{Counts, Stop, Trajectory};

/// $k = \mathrm{round}(t d)$: the number of steps before time $t$ is saved.
pub(crate) fn steps_until(t: f64, dim: f64) -> u64 {
    (t * dim).round() as u64
}

/// Whether a risk counts as bounded; NaN does not.
pub(super) fn within(risk: f64, limit: f64) -> bool {
    risk <= limit
}

/// A trajectory in the making.
pub(super) struct SimulatedPath {
    pub(super) steps: u64,
    times: Vec<f64>,
    risk: Vec<f64>,
    distance: Vec<f64>,
}

impl SimulatedPath {
    pub(super) fn new(expected: usize) -> Self {
        let empty = || Vec::with_capacity(expected);
        Self { steps: 0, times: empty(), risk: empty(), distance: empty() }
    }

    pub(super) fn save(&mut self, t: f64, risk: f64, distance: f64) {
        self.times.push(t);
        self.risk.push(risk);
        self.distance.push(distance);
    }

    pub(super) fn diverged(self, t: f64) -> Trajectory {
        self.finish(Stop::Diverged { t })
    }

    pub(super) fn finish(self, stop: Stop) -> Trajectory {
        let counts = Counts { steps: self.steps, ..Counts::default() };
        let Self { times, risk, distance, .. } = self;
        Trajectory {
            times,
            risk,
            distance,
            path: None,
            overlaps: None,
            measures: None,
            stop,
            counts,
        }
    }
}
