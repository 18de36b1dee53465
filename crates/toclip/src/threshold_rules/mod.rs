//! Threshold rules in common use: one rule, one file.
//!
//! A rule gets the norm of each gradient before it is clipped, in the order of training, and
//! returns the threshold for it. It needs nothing else, so any rule can be replayed on a log of
//! norms as well as run inside a training loop.
//!
//! | rule | threshold | memory |
//! |---|---|---|
//! | [`Fixed`] | one number | none |
//! | [`AutoClip`] | a percentile of all norms so far, or of the last few | all of them, or the window |
//! | [`ZClip`] | mean plus $z$ standard deviations, and less for worse spikes | two numbers |
//! | [`HuberThreshold`] | $\kappa$ times the scale that the median shows | a window |
//! | [`EmpiricalCcc`] | where the CCC of the last norms is largest, with its rate | a window |
//! | [`SkipAbove`] | a multiple of the running median, above which a step is skipped | a window |
//! | [`Monitored`] | where the [monitor](crate::monitor) shows a gain, else none | constant |
//!
//! A step whose norm is not a number must be skipped whatever the threshold: rules then return the
//! threshold of [`ThresholdRule::next_step`] and do not update.

mod autoclip;
mod empirical_ccc;
mod fixed;
mod huber;
mod monitored;
mod skip_above;
mod sliding;
mod zclip;

pub use autoclip::AutoClip;
pub use empirical_ccc::EmpiricalCcc;
pub use fixed::Fixed;
pub use huber::HuberThreshold;
pub use monitored::Monitored;
pub use skip_above::SkipAbove;
pub use sliding::SlidingWindow;
pub use zclip::ZClip;

/// A rule for the threshold $c_k$ of step $k$, from the norms $G_1, \dots, G_k$ before clipping.
///
/// ```
/// use toclip::threshold_rules::{AutoClip, Fixed, ThresholdRule, clip_factor};
/// let mut rules: Vec<Box<dyn ThresholdRule>> =
///     vec![Box::new(Fixed::new(1.0)?), Box::new(AutoClip::new(50.0)?)];
/// let shrunk: Vec<f64> = rules
///     .iter_mut()
///     .map(|rule| [2.0, 4.0, 8.0].map(|norm| clip_factor(norm, rule.threshold(norm)))[2])
///     .collect();
/// assert_eq!(shrunk, [1.0 / 8.0, 4.0 / 8.0]);
/// # Ok::<(), toclip::Error>(())
/// ```
pub trait ThresholdRule: std::fmt::Debug + Send {
    /// The threshold for a gradient of this norm; infinite for no clipping.
    fn threshold(&mut self, norm: f64) -> f64;

    /// The factor for the learning rate of this step: $1/\mu$ for a rule that compensates for the
    /// descent that clipping removes, one for all others.
    fn rate_factor(&self) -> f64 {
        1.0
    }

    /// Whether a step above the threshold is skipped; all rules but [`SkipAbove`] clip it.
    fn skips(&self) -> bool {
        false
    }

    /// The factor for a gradient of this norm at this threshold: $\min(1, c/G)$, or zero for a step
    /// that is [skipped](Self::skips).
    fn factor(&self, norm: f64, threshold: f64) -> f64 {
        if self.skips() && norm > threshold { 0.0 } else { clip_factor(norm, threshold) }
    }

    /// The threshold and learning-rate factor for the next step before its norm is known; the rule
    /// is not updated.
    ///
    /// A step whose norm is not a number gets this threshold.
    ///
    /// ```
    /// use toclip::threshold_rules::{AutoClip, NextStep, ThresholdRule};
    /// let mut rule = AutoClip::new(50.0)?;
    /// assert_eq!(rule.next_step().threshold, f64::INFINITY);
    /// rule.threshold(3.0);
    /// assert_eq!(rule.next_step(), NextStep { threshold: 3.0, rate_factor: 1.0 });
    /// # Ok::<(), toclip::Error>(())
    /// ```
    fn next_step(&self) -> NextStep;

    /// The rule in a few words, for tables and legends.
    fn describe(&self) -> String;
}

/// The threshold and learning-rate factor of the next step, before its norm is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NextStep {
    /// The threshold; infinite for no clipping.
    pub threshold: f64,
    /// The factor for the learning rate.
    pub rate_factor: f64,
}

impl NextStep {
    /// This threshold with the learning rate unchanged.
    fn at(threshold: f64) -> Self {
        NextStep { threshold, rate_factor: 1.0 }
    }
}

/// $\min(1, c/G)$: the factor for a gradient of norm $G$.
///
/// ```
/// use toclip::threshold_rules::clip_factor;
/// assert_eq!(clip_factor(4.0, 1.0), 0.25);
/// assert_eq!(clip_factor(4.0, f64::INFINITY), 1.0);
/// ```
pub fn clip_factor(norm: f64, threshold: f64) -> f64 {
    if norm > threshold { threshold / norm } else { 1.0 }
}
