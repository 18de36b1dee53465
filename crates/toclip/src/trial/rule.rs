//! The rules that take part.

use crate::error::Result;
use crate::rules::{AutoClip, Fixed, Huber, ThresholdRule, ZClip};
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
}

/// How many norms the Huber rule remembers.
const WINDOW: usize = 100;

impl Rule {
    /// All, in the order of tables; what they are compared with first.
    pub const ALL: [Rule; 6] = [
        Rule::Unclipped,
        Rule::Fixed,
        Rule::AutoClip10,
        Rule::AutoClip50,
        Rule::ZClip,
        Rule::Huber,
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
        }
    }

    /// The rule at the start of a run with batches of `batch` samples.
    pub(super) fn start(self, batch: usize) -> Result<Box<dyn Clipper>> {
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
            Rule::Huber => Box::new(Norms(Huber::new(1.345, WINDOW, batch as f64)?)),
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
    fn act(&mut self, norm: f64, gradient: &[f64]) -> Action;
}

/// A rule that needs nothing but norms.
struct Norms<R>(R);

impl<R: ThresholdRule> Clipper for Norms<R> {
    fn act(&mut self, norm: f64, _gradient: &[f64]) -> Action {
        let threshold = self.0.threshold(norm);
        Action { threshold, rate_factor: self.0.rate_factor() }
    }
}
