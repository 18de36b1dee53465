//! What random methods have in common: one run is a function of a seed and an index.

use super::Trajectory;
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

/// The risk above which a path counts as diverged: ten orders of magnitude over all that was there
/// at the start, so that no path which comes back is cut off.
pub(crate) fn divergence_limit(risk: f64, noise: &dyn Noise, policy: &dyn Policy) -> f64 {
    let start = noise.clipped(risk, policy.at(0.0, risk).c).m2;
    1e10 * risk.max(if start.is_finite() { start } else { 0.0 }).max(f64::MIN_POSITIVE)
}
