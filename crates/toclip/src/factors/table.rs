//! $\mu$ and $m^{(2)}$ along the risk, for steps whose factors take long to compute.

use crate::factors::kernel::Moments;
use crate::factors::step::Step;
use crate::numerics::risk_table::{EVERYWHERE, PanelValues, RiskTable, Span};
use crate::parallel::map_timed;
use crate::policy::Policy;
use crate::rule::Rule;
use std::sync::Arc;

/// The relative error of tabulated factors: ODEs at a tolerance of $10^{-8}$ do not see it.
const TOLERANCE: f64 = 1e-12;

/// $\mu_{c(R)}(R)$ and $m^{(2)}_{c(R)}(R)$ of a step with a threshold that is a function of the risk.
///
/// A path asks for the factors some hundred times, mostly along a few e-folds of the risk, where
/// sixteen values on a panel give them to twelve digits ([`RiskTable`]). Steps with cheap factors
/// (one residual, clipped or normalised) have no table.
#[derive(Debug, Clone)]
pub(crate) struct FactorTable {
    table: Arc<RiskTable<2>>,
}

/// A point at which the factors are needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TablePoint {
    /// The risk.
    pub r: f64,
    /// The threshold.
    pub c: f64,
    /// The risks around this one between which the threshold is a smooth curve; empty for none.
    pub span: Span,
}

impl TablePoint {
    /// For a threshold that is smooth everywhere.
    pub fn new(r: f64, c: f64) -> Self {
        TablePoint { r, c, span: EVERYWHERE }
    }
}

impl FactorTable {
    /// An empty table; `None` for a step whose factors are cheap.
    pub fn new(step: &Step<'_>) -> Option<Self> {
        step.is_slow().then(|| FactorTable { table: Arc::default() })
    }

    /// The factors at a risk and a threshold, which is `threshold` of it.
    pub fn moments(
        &self,
        step: &Step<'_>,
        TablePoint { r, c, span }: TablePoint,
        threshold: impl Fn(f64) -> f64,
    ) -> Moments {
        // Without a threshold there are closed forms; and next to a jump of the threshold no curve.
        if (c == f64::INFINITY && *step.rule() != Rule::Optimal) || span.0 >= span.1 {
            return step.moments(r, c);
        }
        let fill = |risks: &[f64]| {
            // Thresholds one by one: they may come from a table that is filled only once.
            let points: Vec<(f64, f64)> = risks.iter().map(|&r| (r, threshold(r))).collect();
            let factors = map_timed(&points, |&(r, c)| {
                let x = step.moments(r, c);
                [x.mu, x.m2]
            });
            Some(PanelValues::relative(factors, TOLERANCE))
        };
        match self.table.at(r, span, &fill).map(|piece| piece.values) {
            Some([mu, m2]) => Moments { mu, m2 },
            None => step.moments(r, c),
        }
    }

    /// The same under a policy whose threshold is now `c`: from the table if the threshold is a
    /// function of the risk, and for the rules that have none or only scale with it.
    pub fn under_policy(&self, step: &Step<'_>, policy: &dyn Policy, r: f64, c: f64) -> Moments {
        match step.rule() {
            Rule::Optimal => return self.moments(step, TablePoint::new(r, c), |_| c),
            Rule::Normalise if c < f64::INFINITY => {
                let unit = self.moments(step, TablePoint::new(r, 1.0), |_| 1.0);
                return Moments { mu: c * unit.mu, m2: c * c * unit.m2 };
            }
            _ => {}
        }
        match policy.threshold_at(r) {
            Some(_) => {
                let at = TablePoint { r, c, span: policy.threshold_span(r) };
                self.moments(step, at, |r| policy.threshold_at(r).unwrap_or(f64::NAN))
            }
            None => step.moments(r, c),
        }
    }
}
