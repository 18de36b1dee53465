//! The rules that take part.

use crate::Problem;
use crate::sgd_run::SgdRun;
use serde::{Deserialize, Serialize};
use toclip::Result;
use toclip::monitor::{Halves, MonitorSettings};
use toclip::threshold_rules::{
    AutoClip, EmpiricalCcc, Fixed, HuberThreshold, Monitored, ThresholdRule, ZClip,
};

/// A clipping rule with its usual settings.
///
/// | rule | threshold |
/// |---|---|
/// | `unclipped` | none |
/// | `fixed 1` | 1 |
/// | `autoclip 10`, `autoclip 50` | that percentile of all norms so far |
/// | `zclip` | z-score 2.5, averages over 33 steps; without the cap of 1, which here would be `fixed 1` |
/// | `huber` | 1.345 times the scale that the median of the last 100 norms shows |
/// | `monitor` | where a [`Monitor`](toclip::monitor::Monitor) of the norms shows a gain, with its rate |
/// | `monitor halves` | the same, with inner products of gradients and running means of others |
/// | `monitor exact` | the same, with inner products with the exact mean gradient |
/// | `ccc` | where the CCC of the last 400 norms is largest, with its rate |
/// | `ccc blind` | the same without knowing the batch size |
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Contender {
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
    /// The choice of a [monitor](toclip::monitor) that sees norms.
    Monitor,
    /// The choice of a monitor that compares each gradient with a running mean of others.
    MonitorHalves,
    /// The choice of a monitor that compares each gradient with the exact mean.
    MonitorExact,
    /// The threshold of the largest CCC under the distribution of the last norms.
    Ccc,
    /// The same without the batch size.
    CccBlind,
}

/// How many norms the Huber rule remembers.
const WINDOW: usize = 100;
/// How often a monitor is asked, in steps.
const EVERY: u64 = 100;
/// Over how many gradients of each half the mean is taken that others are compared with.
const HALVES: f64 = 100.0;

impl Contender {
    /// All, in the order of tables; the first is the one that the others are compared with.
    pub const ALL: [Contender; 11] = [
        Contender::Unclipped,
        Contender::Fixed,
        Contender::AutoClip10,
        Contender::AutoClip50,
        Contender::ZClip,
        Contender::Huber,
        Contender::Monitor,
        Contender::MonitorHalves,
        Contender::MonitorExact,
        Contender::Ccc,
        Contender::CccBlind,
    ];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Contender::Unclipped => "unclipped",
            Contender::Fixed => "fixed 1",
            Contender::AutoClip10 => "autoclip 10",
            Contender::AutoClip50 => "autoclip 50",
            Contender::ZClip => "zclip",
            Contender::Huber => "huber",
            Contender::Monitor => "monitor",
            Contender::MonitorHalves => "monitor halves",
            Contender::MonitorExact => "monitor exact",
            Contender::Ccc => "ccc",
            Contender::CccBlind => "ccc blind",
        }
    }

    /// The rule at the start of a run.
    pub(crate) fn start(self, problem: &Problem) -> Result<Box<dyn Clipper>> {
        let samples = problem.batch() as f64;
        let monitored = || {
            let settings =
                MonitorSettings { components: Some(samples), ..MonitorSettings::default() };
            Monitored::new(settings, EVERY)
        };
        Ok(match self {
            Contender::Unclipped => Box::new(Norms(Fixed::unclipped())),
            Contender::Fixed => Box::new(Norms(Fixed::new(1.0)?)),
            Contender::AutoClip10 => Box::new(Norms(AutoClip::new(10.0)?)),
            Contender::AutoClip50 => Box::new(Norms(AutoClip::new(50.0)?)),
            Contender::ZClip => {
                let mut rule = ZClip::default();
                rule.cap = None;
                Box::new(Norms(rule.started()?))
            }
            Contender::Huber => Box::new(Norms(HuberThreshold::new(1.345, WINDOW, samples)?)),
            Contender::Monitor => Box::new(Norms(monitored()?)),
            Contender::MonitorHalves => {
                let halves = Halves::new(problem.root.len(), HALVES)?;
                Box::new(Compared { rule: monitored()?, halves })
            }
            Contender::MonitorExact => Box::new(Informed(monitored()?)),
            Contender::Ccc => Box::new(Norms(EmpiricalCcc::new(Some(samples))?)),
            Contender::CccBlind => Box::new(Norms(EmpiricalCcc::new(None)?)),
        })
    }
}

/// The decision of a rule about a gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Action {
    /// The threshold.
    pub threshold: f64,
    /// The factor of the learning rate.
    pub rate_factor: f64,
}

/// A rule inside a training loop, with access to the gradients.
pub(crate) trait Clipper {
    fn act(&mut self, norm: f64, run: &SgdRun<'_>) -> Action;
}

/// A rule that needs nothing but norms.
struct Norms<R>(R);

impl<R: ThresholdRule> Clipper for Norms<R> {
    fn act(&mut self, norm: f64, _run: &SgdRun<'_>) -> Action {
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
    fn act(&mut self, norm: f64, run: &SgdRun<'_>) -> Action {
        // Only the first gradient has nothing to be compared with.
        let threshold = match self.halves.inner(run.gradient()) {
            Ok(Some(inner)) => self.rule.threshold_aligned(norm, inner),
            _ => f64::INFINITY,
        };
        Action { threshold, rate_factor: self.rule.rate_factor() }
    }
}

/// A monitor that compares each gradient with the exact mean.
struct Informed(Monitored);

impl Clipper for Informed {
    fn act(&mut self, norm: f64, run: &SgdRun<'_>) -> Action {
        let threshold = self.0.threshold_aligned(norm, run.descent());
        Action { threshold, rate_factor: self.0.rate_factor() }
    }
}
