//! The interface of random methods: one run is a function of a seed and an index.

use super::Trajectory;
use crate::error::{Error, Result};
use crate::schedule::Policy;
use crate::step::Step;

/// A random path of the risk: C-SGD or C-HSGD, in any of their forms.
pub trait Simulator: std::fmt::Debug + Send + Sync {
    /// Run number `index` of the ensemble with this `seed`, saved at the given increasing times.
    ///
    /// The result depends on nothing else, in particular not on which thread computes it or
    /// whether other runs are computed.
    fn run(&self, seed: u64, index: u64, times: &[f64]) -> Trajectory;
}

/// Refuses steps that C-SGD does not simulate.
pub(crate) fn check_simulated(step: &Step<'_>, policy: &dyn Policy) -> Result<()> {
    if !step.rule().is_radial() {
        return Err(Error::Invalid(format!(
            "C-SGD does not simulate the rule `{}`",
            step.rule().name()
        )));
    }
    let batch = step.batch();
    if batch.output_count() > 1 {
        return Err(Error::Invalid(format!(
            "C-SGD is simulated with one output, not {}; the ODE, the integral equation and C-HSGD \
             support several",
            batch.output_count()
        )));
    }
    if batch.size() > 1 && policy.session().is_some() {
        return Err(Error::Invalid(
            "an online policy needs one residual a step: use a batch of one, or a policy that knows \
             the risk"
                .into(),
        ));
    }
    Ok(())
}

/// The risk above which a path counts as diverged: ten orders of magnitude above the start, so that
/// no path that recovers is cut off.
pub(crate) fn divergence_limit(risk: f64, step: &Step<'_>, policy: &dyn Policy) -> f64 {
    let start = step.residual_moments(risk, policy.at(0.0, risk).c).m2;
    1e10 * risk.max(if start.is_finite() { start } else { 0.0 }).max(f64::MIN_POSITIVE)
}
