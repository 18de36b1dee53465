//! The threshold with the largest CCC, all along the path.

use super::proportional::compensated;
use super::{Control, Policy, Schedule};
use crate::criteria::{BestAlongRisk, Optimum};
use crate::factors::kernel::Moments;
use crate::factors::step::Step;
use crate::factors::table::{FactorTable, TablePoint};
use std::sync::Arc;

/// Where CCC is highest as $c \to 0$, this share of the smallest scale of the residual stands for
/// zero: for batches $\mu \propto c$ and $m^{(2)} = c^2$ there, so every threshold that clips all of
/// them is equally good, to $10^{-6}$.
const NEAR_ZERO: f64 = 1e-3;

/// $c^\ast(t) = \arg\max_c \mu_c^2/\nu_c$ with the compensated rate $\eta/\mu$ (paper, equations
/// 14–15).
///
/// By Theorem 4 it never ends above unclipped SGD with the same $\eta$, and ends below it if CCC >
/// 1 anywhere along the path. Where the supremum of CCC is one, $c^\ast = \infty$.
///
/// $c^\ast$ depends on the risk alone, and a search for it costs some hundred evaluations; so it
/// is looked up in a table along the risk, filled where it is used. CCC is flat at its maximum, so
/// the error of the table enters only squared, below $10^{-11}$. Where the best threshold jumps from
/// one peak to another the search is done in full. Batches, and rules other than clipping, have
/// factors that take long to compute; those are tabulated as well.
///
/// ```
/// use toclip::{noise::{Gaussian, Rademacher}, policy::{MaxCcc, Policy, Schedule}};
/// let policy = MaxCcc::new(Schedule::constant(0.4)?, Rademacher::from_sigma(0.8, 0.2)?);
/// let at = policy.at(0.0, 0.212463084976552);
/// assert!((at.c - 0.643391870523656).abs() < 1e-6);
/// let gaussian = MaxCcc::new(Schedule::constant(0.4)?, Gaussian::new(0.8)?);
/// assert_eq!(gaussian.at(0.0, 0.2).c, f64::INFINITY);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MaxCcc {
    eta: Schedule,
    step: Step<'static>,
    best: Arc<BestAlongRisk>,
    factors: Option<FactorTable>,
}

impl MaxCcc {
    /// From the learning rate of unclipped SGD and the noise.
    pub fn new(eta: Schedule, step: impl Into<Step<'static>>) -> Self {
        let step = step.into();
        let factors = FactorTable::new(&step);
        MaxCcc { eta, step, best: Arc::default(), factors }
    }

    /// $c^\ast$ at risk $r$; infinite where not clipping is best.
    pub fn threshold(&self, r: f64) -> f64 {
        match self.best.at(&self.step, r).0 {
            Optimum::At(c) => c,
            Optimum::Small if r > 0.0 => {
                let features = self.step.features(r).into_iter();
                let scales = features.map(|f| f.at.abs().max(f.width));
                NEAR_ZERO * scales.fold(f64::INFINITY, f64::min)
            }
            // At R = 0 no step has a descent to keep.
            Optimum::Small | Optimum::Unclipped => f64::INFINITY,
        }
    }

    /// $\mu$ and $m^{(2)}$ at this threshold, which is that of [`threshold`](Self::threshold).
    pub(super) fn moments(&self, r: f64, c: f64) -> Moments {
        match &self.factors {
            Some(factors) => {
                let at = TablePoint { r, c, span: self.threshold_span(r) };
                factors.moments(&self.step, at, |r| self.threshold(r))
            }
            None => self.step.moments(r, c),
        }
    }
}

impl Policy for MaxCcc {
    fn at(&self, t: f64, r: f64) -> Control {
        let eta = self.eta.at(t);
        match self.threshold(r) {
            c if c.is_finite() => compensated(eta, c, self.moments(r, c)),
            c => Control { eta, c },
        }
    }

    fn uses_risk(&self) -> bool {
        true
    }

    fn threshold_at(&self, r: f64) -> Option<f64> {
        Some(self.at(0.0, r).c)
    }

    fn threshold_span(&self, r: f64) -> (f64, f64) {
        self.best.at(&self.step, r).1
    }

    fn breakpoints(&self) -> Vec<f64> {
        self.eta.breakpoints()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criteria::best_threshold;
    use crate::noise::{Laplace, Noise, Rademacher, StudentT};

    #[test]
    fn the_table_loses_nothing_against_the_search() {
        let noises: [Arc<dyn Noise>; 3] = [
            Arc::new(Rademacher::from_sigma(0.8, 0.2).unwrap()),
            Arc::new(Laplace::new(2.0).unwrap()),
            Arc::new(StudentT::new(1.0, 0.5).unwrap()),
        ];
        for noise in noises {
            let policy = MaxCcc::new(Schedule::constant(0.4).unwrap(), noise.clone());
            for k in 0..60 {
                let r = 1e-6 * 1.3f64.powi(k);
                let best = best_threshold(&*noise, r).unwrap();
                let x = noise.clipped(r, policy.threshold(r));
                let lost = 1.0 - x.mu * x.mu / x.m2 / best.efficiency;
                assert!(lost < 1e-10, "{noise:?} at R = {r}: {lost:e}");
            }
        }
    }
}
