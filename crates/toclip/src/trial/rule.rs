//! The rules that take part.

use super::Problem;
use super::walk::Walk;
use crate::error::Result;
use crate::monitor::{Halves, Settings};
use crate::threshold_rules::{AutoClip, Fixed, Huber, Monitored, ThresholdRule, ZClip};
use serde::{Deserialize, Serialize};

/// A way to clip, as people use it.
///
/// | rule | threshold |
/// |---|---|
/// | `unclipped` | none |
/// | `fixed 1` | 1 |
/// | `autoclip 10`, `autoclip 50` | that percentile of all norms so far |
/// | `zclip` | z-score 2.5, averages over 33 steps; without the cap of 1, which here would be `fixed 1` |
/// | `huber` | 1.345 times the scale that the median of the last 100 norms shows |
/// | `monitor` | where a [`Monitor`](crate::monitor::Monitor) of the norms shows a gain, with its rate |
/// | `monitor halves` | the same, with inner products of gradients and running means of others |
/// | `monitor exact` | the same, with inner products with the exact mean gradient |
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Rule {
    /// $c = \infty$.
    Unclipped,
    /// $c = 1$.
    Fixed,
    /// The tenth percentile, its authors' choice.
    AutoClip10,
    /// The median.
    AutoClip50,
    /// Spikes by their z-score.
    ZClip,
    /// $\kappa = 1.345$.
    Huber,
    /// The choice of a [monitor](crate::monitor) that sees norms.
    Monitor,
    /// The choice of a monitor that compares each gradient with a running mean of others.
    MonitorHalves,
    /// The choice of a monitor that compares each gradient with the exact mean.
    MonitorExact,
}

/// How many norms the Huber rule remembers.
const WINDOW: usize = 100;
/// How often a monitor is asked, in steps.
const EVERY: u64 = 100;
/// Over how many gradients of each half the mean is taken that others are compared with.
const HALVES: f64 = 100.0;

impl Rule {
    /// All, in the order of tables; what they are compared with first.
    pub const ALL: [Rule; 9] = [
        Rule::Unclipped,
        Rule::Fixed,
        Rule::AutoClip10,
        Rule::AutoClip50,
        Rule::ZClip,
        Rule::Huber,
        Rule::Monitor,
        Rule::MonitorHalves,
        Rule::MonitorExact,
    ];

    /// The name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Unclipped => "unclipped",
            Rule::Fixed => "fixed 1",
            Rule::AutoClip10 => "autoclip 10",
            Rule::AutoClip50 => "autoclip 50",
            Rule::ZClip => "zclip",
            Rule::Huber => "huber",
            Rule::Monitor => "monitor",
            Rule::MonitorHalves => "monitor halves",
            Rule::MonitorExact => "monitor exact",
        }
    }

    /// The rule at the start of a run.
    pub(super) fn start(self, problem: &Problem) -> Result<Box<dyn Clipper>> {
        let samples = problem.batch() as f64;
        let monitored = || {
            let settings = Settings { components: Some(samples), ..Settings::default() };
            Monitored::new(settings, EVERY)
        };
        Ok(match self {
            Rule::Unclipped => Box::new(Norms(Fixed::unclipped())),
            Rule::Fixed => Box::new(Norms(Fixed::new(1.0)?)),
            Rule::AutoClip10 => Box::new(Norms(AutoClip::new(10.0)?)),
            Rule::AutoClip50 => Box::new(Norms(AutoClip::new(50.0)?)),
            Rule::ZClip => {
                let mut rule = ZClip::default();
                rule.cap = None;
                Box::new(Norms(rule.started()?))
            }
            Rule::Huber => Box::new(Norms(Huber::new(1.345, WINDOW, samples)?)),
            Rule::Monitor => Box::new(Norms(monitored()?)),
            Rule::MonitorHalves => {
                let halves = Halves::new(problem.root.len(), HALVES)?;
                Box::new(Compared { rule: monitored()?, halves })
            }
            Rule::MonitorExact => Box::new(Informed(monitored()?)),
        })
    }
}

/// What a rule does with a gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Action {
    /// The threshold.
    pub threshold: f64,
    /// What the learning rate is multiplied by.
    pub rate_factor: f64,
}

/// A rule inside a training loop, where gradients can be looked at.
pub(super) trait Clipper {
    fn act(&mut self, norm: f64, walk: &Walk<'_>) -> Action;
}

/// A rule that needs nothing but norms.
struct Norms<R>(R);

impl<R: ThresholdRule> Clipper for Norms<R> {
    fn act(&mut self, norm: f64, _walk: &Walk<'_>) -> Action {
        let threshold = self.0.threshold(norm);
        Action { threshold, rate_factor: self.0.rate_factor() }
    }
}

/// A monitor that sees gradients, and compares each with the running mean of others.
struct Compared {
    rule: Monitored,
    halves: Halves,
}

impl Clipper for Compared {
    fn act(&mut self, norm: f64, walk: &Walk<'_>) -> Action {
        // Only the first gradient has nothing to be compared with.
        let threshold = match self.halves.inner(walk.gradient()) {
            Ok(Some(inner)) => self.rule.threshold_aligned(norm, inner),
            _ => f64::INFINITY,
        };
        Action { threshold, rate_factor: self.rule.rate_factor() }
    }
}

/// A monitor that compares each gradient with the exact mean.
struct Informed(Monitored);

impl Clipper for Informed {
    fn act(&mut self, norm: f64, walk: &Walk<'_>) -> Action {
        let threshold = self.0.threshold_aligned(norm, walk.descent());
        Action { threshold, rate_factor: self.0.rate_factor() }
    }
}
