//! What random methods have in common: one run is a function of a seed and an index.

use super::Trajectory;
use crate::batch::Rule;
use crate::error::{Error, Result};
use crate::noise::Noise;
use crate::schedule::Policy;

/// A random path of the risk: C-SGD or C-HSGD, in any of their forms.
pub trait Simulator: std::fmt::Debug + Send + Sync {
    /// Run number `index` of the ensemble with this `seed`, saved at the given increasing times.
    ///
    /// The result depends on nothing else, in particular not on which thread computes it or
    /// whether other runs are computed.
    fn run(&self, seed: u64, index: u64, times: &[f64]) -> Trajectory;
}

/// Refuses what cannot be simulated in batches.
pub(crate) fn check_batches(rule: Rule, policy: &dyn Policy) -> Result<()> {
    if rule.output_count() > 1 {
        return Err(Error::Invalid(format!(
            "C-SGD is simulated with one output, not {}; the ODE, the integral equation and C-HSGD \
             know more of them",
            rule.output_count()
        )));
    }
    if rule.size() > 1 && policy.session().is_some() {
        return Err(Error::Invalid(
            "an online rule watches one residual a step: give it a batch of one, or a rule that is \
             told the risk"
                .into(),
        ));
    }
    Ok(())
}

/// The risk above which a path counts as diverged: ten orders of magnitude over all that was there
/// at the start, so that no path which comes back is cut off.
pub(crate) fn divergence_limit(risk: f64, noise: &dyn Noise, policy: &dyn Policy) -> f64 {
    let start = noise.clipped(risk, policy.at(0.0, risk).c).m2;
    1e10 * risk.max(if start.is_finite() { start } else { 0.0 }).max(f64::MIN_POSITIVE)
}
