//! $\mu$ and $m^{(2)}$ along the risk, for steps whose factors take long to compute.

use crate::kernel::Moments;
use crate::parallel::map_timed;
use crate::risk_table::{Filled, RiskTable};
use crate::rule::Rule;
use crate::schedule::Policy;
use crate::step::Step;
use std::sync::Arc;

/// Points on a panel, and the error it may have: ODEs at a tolerance of $10^{-8}$ do not see it.
const POINTS: usize = 16;
const TOLERANCE: f64 = 1e-12;

/// $\mu_{c(R)}(R)$ and $m^{(2)}_{c(R)}(R)$ of a step with a threshold that is a function of the risk.
///
/// A path asks for the factors some hundred times, mostly along a few e-folds of the risk, where
/// sixteen values on a panel give them to twelve digits ([`RiskTable`]). Steps with cheap factors
/// (one residual, clipped or normalised) have no table.
#[derive(Debug, Clone)]
pub(crate) struct FactorTable {
    table: Arc<RiskTable<2, POINTS>>,
}

impl FactorTable {
    /// An empty table; `None` for a step whose factors are cheap.
    pub fn new(step: &Step<'_>) -> Option<Self> {
        let table = || Arc::new(RiskTable::new(step.narrowest(), TOLERANCE));
        step.is_slow().then(|| FactorTable { table: table() })
    }

    /// The factors at risk $r$ under the threshold `c`, which is `threshold(r)`.
    pub fn moments(
        &self,
        step: &Step<'_>,
        r: f64,
        c: f64,
        threshold: impl Fn(f64) -> f64,
    ) -> Moments {
        // Without a threshold there are closed forms.
        if c == f64::INFINITY && *step.rule() != Rule::Optimal {
            return step.moments(r, c);
        }
        let fill = |risks: &[f64]| {
            // Thresholds one by one: they may come from a table that is filled only once.
            let points: Vec<(f64, f64)> = risks.iter().map(|&r| (r, threshold(r))).collect();
            Filled::Values(map_timed(&points, |&(r, c)| {
                let x = step.moments(r, c);
                [x.mu, x.m2]
            }))
        };
        match self.table.at(r, &fill) {
            Some([mu, m2]) => Moments { mu, m2 },
            None => step.moments(r, c),
        }
    }

    /// The same under a policy, whose threshold at this moment is `c`: from the table if it is a
    /// function of the risk, or if there is none.
    pub fn under_policy(&self, step: &Step<'_>, policy: &dyn Policy, r: f64, c: f64) -> Moments {
        if *step.rule() == Rule::Optimal {
            return self.moments(step, r, c, |_| c);
        }
        match policy.threshold_at(r) {
            Some(_) => self.moments(step, r, c, |r| policy.threshold_at(r).unwrap_or(f64::NAN)),
            None => step.moments(r, c),
        }
    }
}
