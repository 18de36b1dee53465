//! The interface of random methods: one run is a function of a seed and an index.

use super::Trajectory;
use crate::error::{Error, Result};
use crate::factors::step::Step;
use crate::policy::Policy;

/// A random path of the risk: C-SGD or C-HSGD, in any of their forms.
pub trait Simulator: std::fmt::Debug + Send + Sync {
    /// Run number `index` of the ensemble with this `seed`, saved at the given increasing times.
    ///
    /// The result depends on nothing else, in particular not on which thread computes it or
    /// whether other runs are computed.
    fn run(&self, seed: u64, index: u64, times: &[f64]) -> Trajectory;
}

/// Refuses rules that only full C-SGD, the ODE and C-HSGD support.
pub(crate) fn check_radial(step: &Step<'_>, method: &str) -> Result<()> {
    if step.rule().is_radial() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "the rule `{}` has one factor for each direction of the gradient, but {method} needs one \
         for all of them: use the ODE, full C-SGD or C-HSGD",
        step.rule().name()
    )))
}

/// Refuses compressed modes, which are not eigendirections.
pub(crate) fn check_whole(is_whole: bool) -> Result<()> {
    if is_whole {
        return Ok(());
    }
    Err(Error::Invalid(
        "C-SGD needs every eigendirection, and these modes are compressed: use the modes from before \
         `compress`"
            .into(),
    ))
}

/// Refuses steps that C-SGD does not simulate.
pub(crate) fn check_simulated(step: &Step<'_>, policy: &dyn Policy, risk: f64) -> Result<()> {
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
    if step.privacy().is_some() && policy.session().is_some() {
        return Err(Error::Invalid(
            "an online policy looks at residuals, which are not private: use a policy that knows the \
             risk, or a schedule"
                .into(),
        ));
    }
    check_private(step, policy, risk)
}

/// The risk above which a path counts as diverged: ten orders of magnitude above the start, so that
/// no path that recovers is cut off.
pub(crate) fn divergence_limit(risk: f64, step: &Step<'_>, policy: &dyn Policy) -> f64 {
    let c = policy.at(0.0, risk).c;
    let finite = |x: f64| if x.is_finite() { x } else { 0.0 };
    let noise = finite(step.largest_m2(risk, c)).max(finite(step.private_variance(c)));
    1e10 * risk.max(noise).max(f64::MIN_POSITIVE)
}

/// Refuses private SGD without a threshold, where the noise would be infinite.
pub(crate) fn check_private(step: &Step<'_>, policy: &dyn Policy, risk: f64) -> Result<()> {
    if step.private_variance(policy.at(0.0, risk).c) < f64::INFINITY {
        return Ok(());
    }
    Err(Error::Invalid(
        "private SGD adds noise in proportion to the threshold: give a finite one".into(),
    ))
}
