//! The threshold with the largest CCC, all along the path.

use super::proportional::compensated;
use super::{Control, Policy, Schedule};
use crate::criteria::{BestAlongRisk, BestThreshold, Optimum, best_threshold};
use crate::factors::kernel::Moments;
use crate::factors::step::Step;
use crate::factors::table::{FactorTable, TablePoint};
use crate::numerics::risk_table::EVERYWHERE;
use std::sync::{Arc, OnceLock};

/// Nodes of the table for each e-fold of the risk.
const PER_FOLD: f64 = 25.0;
/// The table covers $e^{\pm 46}$, twenty orders of magnitude to each side of the scale of the
/// noise.
const FOLDS: f64 = 46.0;

/// $c^\ast(t) = \arg\max_c \mu_c^2/\nu_c$ with the compensated rate $\eta/\mu$ (paper, equations
/// 14–15).
///
/// By Theorem 4 it never ends above unclipped SGD with the same $\eta$, and ends below it if CCC >
/// 1 anywhere along the path. Where the supremum of CCC is one, $c^\ast = \infty$.
///
/// $c^\ast$ depends on the risk alone, and a search for it costs some hundred evaluations; so
/// it is looked up in a table over $\ln R$, filled where it is used, by cubic interpolation. CCC is
/// flat at its maximum, so the error of the table enters only squared, below $10^{-13}$. Where the
/// best threshold jumps from one peak to another the search is done in full.
///
/// Batches, and rules other than clipping, have factors that take long to compute. There the best
/// threshold is followed from one risk to the next, and both are tabulated.
///
/// ```
/// use std::sync::Arc;
/// use toclip::{noise::{Gaussian, Rademacher}, policy::{MaxCcc, Policy, Schedule}};
/// let policy = MaxCcc::new(Schedule::constant(0.4)?, Arc::new(Rademacher::from_sigma(0.8, 0.2)?));
/// let at = policy.at(0.0, 0.212463084976552);
/// assert!((at.c - 0.643391870523656).abs() < 1e-6);
/// let gaussian = MaxCcc::new(Schedule::constant(0.4)?, Arc::new(Gaussian::new(0.8)?));
/// assert_eq!(gaussian.at(0.0, 0.2).c, f64::INFINITY);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MaxCcc {
    eta: Schedule,
    step: Step<'static>,
    table: Arc<Table>,
    slow: Option<Slow>,
}

/// Tables that replace the search and the factors where these are slow.
#[derive(Debug, Clone)]
struct Slow {
    best: Arc<BestAlongRisk>,
    factors: FactorTable,
}

/// $\ln c^\ast$ at $\ln R$ = `origin` + k/`PER_FOLD`.
#[derive(Debug)]
struct Table {
    origin: f64,
    nodes: Vec<OnceLock<f64>>,
}

impl MaxCcc {
    /// From the learning rate of unclipped SGD and the noise.
    pub fn new(eta: Schedule, step: impl Into<Step<'static>>) -> Self {
        let step = step.into();
        let features = step.features(0.0);
        let scale = features.iter().map(|f| f.at.abs() + f.width).fold(0.0, f64::max);
        let centre = if scale > 0.0 { 2.0 * scale.ln() } else { 0.0 };
        let nodes = (0..=(2.0 * FOLDS * PER_FOLD) as usize).map(|_| OnceLock::new()).collect();
        let table = Arc::new(Table { origin: centre - FOLDS, nodes });
        let slow = FactorTable::new(&step)
            .map(|factors| Slow { best: Arc::new(BestAlongRisk::new()), factors });
        MaxCcc { eta, step, table, slow }
    }

    /// $c^\ast$ at risk $r$; infinite where not clipping is best.
    pub fn threshold(&self, r: f64) -> f64 {
        let tabulated = match &self.slow {
            Some(slow) => slow.best.at(&self.step, r).0.map(|optimum| match optimum {
                Optimum::At(c) => c,
                Optimum::Unclipped => f64::INFINITY,
                Optimum::Small => self.small(r),
            }),
            None => self.interpolated(r),
        };
        tabulated.unwrap_or_else(|| self.searched(r))
    }

    /// $\mu$ and $m^{(2)}$ at this threshold, which is that of [`threshold`](Self::threshold).
    pub(super) fn moments(&self, r: f64, c: f64) -> Moments {
        match &self.slow {
            Some(slow) => {
                let at = TablePoint { r, c, span: self.threshold_span(r) };
                slow.factors.moments(&self.step, at, |r| self.threshold(r))
            }
            None => self.step.moments(r, c),
        }
    }

    fn searched(&self, r: f64) -> f64 {
        match best_threshold(&self.step, r) {
            Ok(BestThreshold { c, .. }) if c > 0.0 => c,
            Ok(BestThreshold { ccc, .. }) if r > 0.0 && ccc < f64::INFINITY => self.small(r),
            // Only at R = 0, where no step has a descent to keep.
            _ => f64::INFINITY,
        }
    }

    /// For batches $\mu \propto c$ and $m^{(2)} = c^2$ towards zero: every threshold that clips all of
    /// them is equally good.
    fn small(&self, r: f64) -> f64 {
        let features = self.step.features(r).into_iter();
        1e-3 * features.map(|f| f.at.abs().max(f.width)).fold(f64::INFINITY, f64::min)
    }

    fn interpolated(&self, r: f64) -> Option<f64> {
        let place = (r.ln() - self.table.origin) * PER_FOLD;
        let k = place.floor();
        if !(k >= 1.0 && k + 2.0 < self.table.nodes.len() as f64) {
            return None;
        }
        let node = |offset: usize| {
            let i = k as usize - 1 + offset;
            *self.table.nodes[i]
                .get_or_init(|| self.searched((self.table.origin + i as f64 / PER_FOLD).exp()).ln())
        };
        let y = [node(0), node(1), node(2), node(3)];
        if y.iter().all(|&c| c == f64::INFINITY) {
            return Some(f64::INFINITY);
        }
        // A jump between peaks shows as a second difference that a smooth curve does not have.
        let bends = [y[0] - 2.0 * y[1] + y[2], y[1] - 2.0 * y[2] + y[3]];
        if !bends.iter().all(|b| b.abs() < 0.005) {
            return None;
        }
        let x = place - k;
        let weights = [
            -x * (x - 1.0) * (x - 2.0) / 6.0,
            (x + 1.0) * (x - 1.0) * (x - 2.0) / 2.0,
            -(x + 1.0) * x * (x - 2.0) / 2.0,
            (x + 1.0) * x * (x - 1.0) / 6.0,
        ];
        Some(y.iter().zip(weights).map(|(y, w)| y * w).sum::<f64>().exp())
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
        self.slow.as_ref().map_or(EVERYWHERE, |slow| slow.best.at(&self.step, r).1)
    }

    fn breakpoints(&self) -> Vec<f64> {
        self.eta.breakpoints()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
