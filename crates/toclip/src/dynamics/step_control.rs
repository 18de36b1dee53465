//! Steps through time that are as long as their error estimate allows.

use super::solver::stretches;
use super::{Counts, Stop};
use crate::error::{Error, Result};
use crate::policy::Policy;

/// An equation that is solved step by step.
pub(crate) trait Stepper {
    /// How steps are chosen.
    const CONTROL: StepControl;

    /// Saves the start if it was asked for; why the path already ends there, if it does.
    fn start(&mut self) -> Option<Stop>;

    /// The time that has been reached.
    fn time(&self) -> f64;

    /// Begins a stretch on which the policy is smooth, after a step that would have been followed by
    /// one of length `h`, or at the start with `h` = 0: the length of the next step, or why the path
    /// ends.
    fn begin(&mut self, h: f64, end: f64) -> std::result::Result<f64, Stop>;

    /// The longest step that is possible now.
    fn longest(&self) -> f64 {
        f64::INFINITY
    }

    /// Tries a step: its error over the allowed error.
    fn attempt(&mut self, step: TimeStep) -> f64;

    /// Whether the step just tried has a solution; asked only of steps that are to be kept.
    fn is_solved(&mut self, step: TimeStep) -> bool;

    /// Saves the times inside the step just tried; why the path ends in it, if it does.
    fn save(&mut self, step: TimeStep) -> Option<Stop>;

    /// Makes the end of the step just tried the start of the next.
    fn advance(&mut self, to: f64);
}

/// A step from $t$ to `to` $= t + h$.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeStep {
    pub t: f64,
    pub h: f64,
    pub to: f64,
    /// No evaluation is made after this time: the policy may jump at the end of the stretch, and
    /// stages there must still see its value before the jump.
    pub latest: f64,
}

/// How the length of steps follows their errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepControl {
    /// Steps tried at most: more mean that the horizon is far too long, or that the policy chatters.
    pub most_steps: u64,
    /// The error of a step is proportional to this power of its length.
    pub order: f64,
    /// The least factor from a step that is refused to the next try.
    pub least_retry: f64,
    /// The least and the largest factor from a step to the one after it.
    pub range: (f64, f64),
    /// The steps as the error message calls them: `"steps of the ODE"`.
    pub unit: &'static str,
    /// How to need fewer of them, for the error message.
    pub remedy: &'static str,
}

/// How to need fewer steps where the policy may depend on the risk.
pub(crate) const SHORTEN: &str =
    "use a shorter time, a looser tolerance, or a policy that does not oscillate with the risk";

/// Solves an equation up to `last`.
///
/// # Errors
/// [`Error::TooManySteps`] for more steps than [`StepControl::most_steps`].
pub(crate) fn solve<S: Stepper>(
    solver: &mut S,
    policy: &dyn Policy,
    last: f64,
) -> Result<(Stop, Counts)> {
    let StepControl { most_steps, order, least_retry, range, unit, remedy } = S::CONTROL;
    let mut counts = Counts::default();
    if let Some(stop) = solver.start() {
        return Ok((stop, counts));
    }
    let mut next = 0.0;
    for end in stretches(policy, last) {
        next = match solver.begin(next, end) {
            Ok(next) => next,
            Err(stop) => return Ok((stop, counts)),
        };
        let (latest, least) = (end.next_down(), 8.0 * f64::EPSILON * end);
        let mut growth = range.1;
        while solver.time() < end {
            let t = solver.time();
            if counts.steps + counts.rejected >= most_steps {
                return Err(Error::TooManySteps { most: most_steps, unit, t, last, remedy });
            }
            let left = end - t;
            let h = next.min(solver.longest());
            // Two halves rather than a step and a sliver.
            let h = if h >= left { left } else { h.min(0.5 * left) };
            let step = TimeStep { t, h, to: if h == left { end } else { t + h }, latest };
            let error = solver.attempt(step);
            let factor = 0.9 * error.powf(-1.0 / order);
            if error > 1.0 && h > least {
                counts.rejected += 1;
                next = h * factor.clamp(least_retry, 0.9);
                growth = 1.0;
                continue;
            }
            // A step that is as small as steps can be may still have no solution.
            if !solver.is_solved(step) {
                return Ok((Stop::Diverged { t }, counts));
            }
            counts.steps += 1;
            if let Some(stop) = solver.save(step) {
                return Ok((stop, counts));
            }
            solver.advance(step.to);
            next = h * factor.clamp(range.0, growth);
            growth = range.1;
        }
    }
    Ok((Stop::Finished, counts))
}
