//! Threshold rules that people use: one rule, one file.
//!
//! A rule sees the norm of each gradient before it is clipped and answers with the threshold for
//! it, in the order of training. Nothing else is known to it, so any rule can be replayed on a log
//! of norms as well as run inside a loop.
//!
//! | rule | threshold | memory |
//! |---|---|---|
//! | [`Fixed`] | one number | none |
//! | [`AutoClip`] | a percentile of all norms so far, or of the last few | all of them, or the window |
//! | [`ZClip`] | mean plus $z$ standard deviations, and less for worse spikes | two numbers |
//! | [`Huber`] | $\kappa$ times the scale that the median shows | a window |
//! | [`Monitored`] | where the [monitor](crate::monitor) shows a gain, else none | constant |
//!
//! A norm that is not a number is a step that must be skipped whatever the threshold: rules answer
//! with the threshold they had and learn nothing from it.

mod autoclip;
mod fixed;
mod huber;
mod monitored;
mod sliding;
mod zclip;

pub use autoclip::AutoClip;
pub use fixed::Fixed;
pub use huber::Huber;
pub use monitored::Monitored;
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

    /// By what the learning rate of this step is to be multiplied: $1/\mu$ for a rule that makes up
    /// for the descent that its clipping takes away, one for all others.
    fn rate_factor(&self) -> f64 {
        1.0
    }

    /// What the rule holds for the next step before it has seen its norm; it learns nothing.
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

/// What a rule holds for a step before it has seen its norm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NextStep {
    /// The threshold; infinite for no clipping.
    pub threshold: f64,
    /// By what the learning rate is to be multiplied.
    pub rate_factor: f64,
}

impl NextStep {
    /// This threshold at the learning rate as it is.
    fn at(threshold: f64) -> Self {
        NextStep { threshold, rate_factor: 1.0 }
    }
}

/// $\min(1, c/G)$: what a gradient of norm $G$ is multiplied by.
///
/// ```
/// use toclip::threshold_rules::clip_factor;
/// assert_eq!(clip_factor(4.0, 1.0), 0.25);
/// assert_eq!(clip_factor(4.0, f64::INFINITY), 1.0);
/// ```
pub fn clip_factor(norm: f64, threshold: f64) -> f64 {
    if norm > threshold { threshold / norm } else { 1.0 }
}
