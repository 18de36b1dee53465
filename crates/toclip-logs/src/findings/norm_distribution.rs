//! The distribution of the norms.

use serde::Serialize;
use toclip::monitor::{Drift, Monitor, SecondMoment, Tail};

use super::quantile;
use crate::Log;

/// The distribution of the norms over the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NormDistribution {
    /// Quantiles at 0, 1, 10, 50, 90, 99 and 100 percent of the norms as logged.
    pub quantiles: [f64; 7],
    /// The tail of ordinary norms relative to their scale; `None` if there are too few.
    pub tail: Option<Tail>,
    /// The consequence of the tail for $E G^2$.
    pub second_moment: Option<SecondMoment>,
    /// Whether the distribution relative to the scale changed, and by how much the scale did.
    pub drift: Option<Drift>,
}

impl NormDistribution {
    pub(super) fn new(log: &Log, ordinary: &Monitor) -> Self {
        let mut sorted = log.norms();
        sorted.sort_by(f64::total_cmp);
        let tail = ordinary.tail();
        Self {
            quantiles: [0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0].map(|p| quantile(&sorted, p)),
            tail,
            second_moment: tail.map(|tail| tail.second_moment()),
            drift: ordinary.drift(),
        }
    }
}
