//! What to do, as data. Follows from the findings; words come later.
//!
//! A run that is broken is diagnosed first: nothing is optimised in a log that diverged, or whose norms
//! are not what they seem. What is recommended otherwise follows what was measured in networks: a guard
//! is cheap insurance for every optimizer, another threshold by itself gains little, and with SGD the
//! gain is in the pair of threshold and learning rate, which only an experiment can show.

mod experiment;
mod guard;

use serde::Serialize;
use toclip::monitor::{Estimates, Interval};

pub use experiment::Experiment;

use crate::analysis::{Analysis, Supported, margin};
use crate::findings::{Course, Spike};
use crate::{Finding, Log, NormScaleCause, Optimizer, Situation, ThresholdOrigin};
use guard::{Guard, fires, two_digits};

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// Leave the threshold as it is.
    Keep,
    /// Clip rare large gradients only.
    Guard,
    /// Clip a substantial share of the steps: the evidence supports it.
    Clip,
    /// Stop clipping: it costs more than it saves.
    Remove,
    /// Lower the learning rate.
    LowerRate,
    /// Go back to an earlier checkpoint.
    RollBack,
    /// Change how the loss is computed or scaled.
    FixLoss,
    /// Change what is logged.
    FixLogging,
    /// The log does not say.
    CannotTell,
}

/// How sure the recommendation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Confidence {
    /// The log shows it directly.
    High,
    /// The log agrees with what was measured in other runs.
    Medium,
    /// A default.
    Low,
}

/// A reason for the recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Because {
    /// The finding with this index.
    Finding(usize),
    /// The threshold lies above ordinary norms and below the spikes.
    GuardFits {
        /// The 99.9th percentile of ordinary norms.
        ordinary: f64,
        /// How many spikes there are.
        spikes: usize,
        /// How many of them have a peak above the threshold.
        below: usize,
    },
    /// The threshold in force already clips the spikes.
    GuardWorks,
    /// The threshold in force clips the spikes, and many other steps.
    ClipsMany {
        /// The share of the steps that it clips.
        fires: f64,
    },
    /// The spikes passed below the threshold in force, or nearly so.
    GuardTooHigh,
    /// A guard costs nothing at a good learning rate and saves runs with bad batches.
    CheapInsurance,
    /// Adam-like optimizers divide by a running scale of the gradient, so a constant factor cancels.
    ScaleCancels,
    /// A threshold that is always active acts as a lower learning rate.
    ActsAsRate,
    /// No threshold repairs a learning rate that is too large.
    RateFirst,
    /// Clipping does not repair a gradient that is NaN: the step must be skipped.
    SkipNonFinite,
    /// CCC at the threshold, with its interval, over no clipping.
    Gain(Interval),
    /// The threshold in force costs more descent than it saves variance.
    ThresholdCosts,
    /// Another threshold is unlikely to help.
    NoGainExpected,
    /// The threshold in force is unknown.
    ThresholdUnknown {
        /// A guard for a run that does not clip.
        guard: Option<f64>,
    },
    /// There are too few steps after the warm-up.
    TooFewSteps {
        /// How many there are.
        points: usize,
    },
    /// The log has no loss.
    NoLoss,
    /// The optimizer is unknown.
    OptimizerUnknown,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    /// What to do.
    pub action: Action,
    /// The threshold: to set, or for [`Action::Keep`] the one in force.
    pub threshold: Option<f64>,
    /// The share of the logged steps that it would clip, or clips.
    pub fires: Option<f64>,
    /// The factor for the learning rate; never above one.
    pub rate_factor: Option<f64>,
    /// The step to go back to.
    pub roll_back_to: Option<f64>,
    /// Whether the run is finished, so that this is for the next one.
    pub next_run: bool,
    /// How sure it is.
    pub confidence: Confidence,
    /// Why, the most important reason first.
    pub because: Vec<Because>,
    /// A short experiment that would settle what the log cannot.
    pub experiments: Vec<Experiment>,
}

/// Fewer ordinary points say too little.
pub(crate) const FEWEST: usize = 30;
/// A rate that was too large is multiplied by this.
const LOWER: f64 = 0.3;
/// A threshold in force up to this many times the guard is as good as one.
const CLOSE: f64 = 2.0;
/// Spikes that are many.
const MANY: usize = 10;
/// A threshold in force this many times above every norm is no guard.
const FAR: f64 = 10.0;
/// A threshold that clips more than this is not recommended.
const OFTEN: f64 = 0.2;

/// Decides what to do.
pub(crate) fn decide(
    log: &Log,
    course: &Course,
    findings: &[Finding],
    analysis: &Analysis,
    now: &Situation,
) -> Recommendation {
    let guard = guard::find(log, course, findings);
    let case = Case { log, course, findings, analysis, now, guard };
    let mut recommendation = case
        .broken()
        .or_else(|| case.unusable())
        .or_else(|| case.spikes())
        .unwrap_or_else(|| case.ordinary());
    recommendation.fires = recommendation.threshold.map(|c| fires(log, c));
    if recommendation.experiments.is_empty() && case.spikes_keep_coming() {
        recommendation.experiments = experiment::lower_rate(log, now);
    }
    let clips = matches!(recommendation.action, Action::Guard | Action::Clip);
    let share = recommendation.fires.unwrap_or(0.0);
    if clips && !(share > 0.0 && share <= OFTEN) {
        // Norms that pile up or never vary: no threshold is a guard.
        let mut because = recommendation.because;
        because.retain(|reason| matches!(reason, Because::Finding(_)));
        let piled = case.because(|f| matches!(f, Finding::NotClipped { .. }));
        recommendation = match piled.is_empty() {
            true => case.keep(Confidence::Low, because),
            false => case.to(Action::CannotTell, Confidence::Low, piled),
        };
        recommendation.fires = recommendation.threshold.map(|c| fires(log, c));
    }
    let sgd = now.optimizer == Some(Optimizer::Sgd);
    let usable = matches!(recommendation.action, Action::Keep | Action::Guard | Action::Clip);
    if sgd && usable {
        recommendation.experiments = experiment::for_sgd(log, course, now);
    }
    recommendation.next_run = case.find(|f| matches!(f, Finding::Finished { .. })).is_some();
    recommendation
}

struct Case<'a> {
    log: &'a Log,
    course: &'a Course,
    findings: &'a [Finding],
    analysis: &'a Analysis,
    now: &'a Situation,
    guard: Option<Guard>,
}

impl Case<'_> {
    fn find(&self, is: impl Fn(&Finding) -> bool) -> Option<usize> {
        self.findings.iter().position(is)
    }

    fn because(&self, is: impl Fn(&Finding) -> bool) -> Vec<Because> {
        self.find(is).map(Because::Finding).into_iter().collect()
    }

    /// A recommendation without numbers.
    fn to(&self, action: Action, confidence: Confidence, because: Vec<Because>) -> Recommendation {
        Recommendation {
            action,
            threshold: None,
            fires: None,
            rate_factor: None,
            roll_back_to: None,
            next_run: false,
            confidence,
            because,
            experiments: Vec::new(),
        }
    }

    fn keep(&self, confidence: Confidence, because: Vec<Because>) -> Recommendation {
        Recommendation {
            threshold: self.now.in_force(),
            ..self.to(Action::Keep, confidence, because)
        }
    }

    fn guard(
        &self,
        guard: Guard,
        confidence: Confidence,
        mut because: Vec<Because>,
    ) -> Recommendation {
        because.push(guard.because());
        because.push(Because::CheapInsurance);
        Recommendation {
            threshold: Some(guard.threshold),
            // Training goes on, but would be further from there.
            roll_back_to: self.unrecovered_spike().and_then(|spike| self.step_before(spike)),
            ..self.to(Action::Guard, confidence, because)
        }
    }

    /// The guard, if the run has none that is as good.
    fn missing_guard(&self) -> Option<Guard> {
        let high = |guard: &Guard| self.now.in_force().is_none_or(|c| c > CLOSE * guard.threshold);
        self.guard.filter(high)
    }

    /// Training that diverged, is diverging, or did not recover.
    fn broken(&self) -> Option<Recommendation> {
        let at = self.find(|f| {
            matches!(
                f,
                Finding::Diverged { .. } | Finding::Diverging { .. } | Finding::NotRecovered { .. }
            )
        })?;
        let mut because = vec![Because::Finding(at)];
        let largest = self.log.points.iter().map(|p| p.learning_rate).fold(0.0, f64::max);
        let lower = |rate: Option<f64>| {
            // The best loss may be in a warm-up, where the rate says nothing.
            let reached = rate.map_or(1.0, |rate| (rate / largest).clamp(LOWER, 1.0));
            Some(two_digits(LOWER * if largest > 0.0 { reached } else { 1.0 }))
        };
        let threshold = self.missing_guard().map(|guard| guard.threshold);
        let (action, rate_factor, back, confidence) = match self.findings[at] {
            // Without a finite norm the loss alone says little.
            Finding::Diverged { last_good: None, loss_finite: true, .. } => {
                return Some(self.to(Action::CannotTell, Confidence::Low, because));
            }
            Finding::Diverged { last_good: None, .. } => {
                return Some(self.to(Action::FixLoss, Confidence::Medium, because));
            }
            Finding::Diverged { last_good, learning_rate, grew, .. } => {
                let early = self.course.end <= self.course.warm_up + self.log.points.len() / 10;
                // A bad batch breaks a run at once; a rate that is too large lets the numbers grow.
                match grew || early {
                    true => (Action::LowerRate, lower(learning_rate), last_good, Confidence::High),
                    false => (Action::RollBack, None, last_good, Confidence::Medium),
                }
            }
            Finding::Diverging { best_step, .. } => {
                let rate = self.rate_at(best_step);
                (Action::LowerRate, lower(rate), Some(best_step), Confidence::Medium)
            }
            Finding::NotRecovered { best_step, .. } => match self.unrecovered_spike() {
                Some(spike) => {
                    because.extend(self.because(|f| matches!(f, Finding::Spikes { .. })));
                    (Action::RollBack, None, self.step_before(spike), Confidence::Medium)
                }
                None => {
                    let rate = self.rate_at(best_step);
                    (Action::LowerRate, lower(rate), Some(best_step), Confidence::Low)
                }
            },
            _ => return None,
        };
        let non_finite = matches!(self.findings[at], Finding::Diverged { .. });
        match action {
            Action::LowerRate => because.push(Because::RateFirst),
            _ if non_finite => because.push(Because::SkipNonFinite),
            _ => {}
        }
        if threshold.is_some() {
            because.extend(self.guard.map(|guard| guard.because()));
        }
        // There is nothing to go back to in a warm-up.
        let warm = self.log.points.get(self.course.warm_up).map_or(f64::INFINITY, |p| p.step);
        let early = back.is_none_or(|step| step < warm);
        Some(Recommendation {
            threshold,
            rate_factor,
            roll_back_to: back.filter(|_| !early),
            ..self.to(action, if early { Confidence::Low } else { confidence }, because)
        })
    }

    fn rate_at(&self, step: f64) -> Option<f64> {
        let at = self.log.points.iter().find(|p| p.step >= step)?;
        at.learning_rate.is_finite().then_some(at.learning_rate)
    }

    fn step_before(&self, spike: &Spike) -> Option<f64> {
        self.log.points[..spike.range.0].last().map(|p| p.step)
    }

    fn unrecovered_spike(&self) -> Option<&Spike> {
        self.course.spikes.iter().find(|spike| spike.not_recovered())
    }

    /// Norms that are not what they seem, or too few.
    fn unusable(&self) -> Option<Recommendation> {
        let clipped = self.because(|f| matches!(f, Finding::NormsAfterClipping { .. }));
        if !clipped.is_empty() {
            return Some(self.to(Action::FixLogging, Confidence::High, clipped));
        }
        let points = self.log.points.len() as u64;
        let zero = self.because(|f| matches!(f, Finding::Zero { count } if 2 * count >= points));
        if !zero.is_empty() {
            return Some(self.to(Action::FixLogging, Confidence::Medium, zero));
        }
        if let Some(at) = self.find(|f| matches!(f, Finding::NormScale { .. })) {
            let mut because = vec![Because::Finding(at)];
            because.extend(self.because(|f| matches!(f, Finding::AlwaysClipped { .. })));
            let confidence = match self.findings[at] {
                Finding::NormScale { cause: NormScaleCause::Unknown, .. } => Confidence::Low,
                _ => Confidence::Medium,
            };
            return Some(self.to(Action::FixLoss, confidence, because));
        }
        let points = self.course.ordinary(&self.log.points).count();
        let few = vec![Because::TooFewSteps { points }];
        (points < FEWEST).then(|| self.to(Action::CannotTell, Confidence::Low, few))
    }

    /// Training with spikes.
    fn spikes(&self) -> Option<Recommendation> {
        let mut because = self.because(|f| matches!(f, Finding::Spikes { .. }));
        if because.is_empty() {
            return None;
        }
        let sgd = self.now.optimizer == Some(Optimizer::Sgd);
        if let Some(mut clip) = self.change_for_sgd().filter(|_| sgd) {
            clip.because.splice(0..0, because);
            return Some(clip);
        }
        match (self.missing_guard(), self.now.threshold) {
            (Some(guard), Some((_, origin))) => {
                let largest = self.course.spikes.iter().map(|s| s.norm).fold(0.0, f64::max);
                if self.now.in_force().is_some_and(|c| 2.0 * c > largest) {
                    because.push(Because::GuardTooHigh);
                }
                let sure = origin != ThresholdOrigin::Default;
                let confidence = if sure { Confidence::High } else { Confidence::Medium };
                Some(self.guard(guard, confidence, because))
            }
            // What is in force is unknown; a guard is right unless it is one already.
            (Some(guard), None) => Some(self.guard(guard, Confidence::Medium, because)),
            (None, _) => {
                let always = self.because(|f| matches!(f, Finding::AlwaysClipped { .. }));
                let often = self.now.in_force().map_or(0.0, |c| fires(self.log, c));
                if always.is_empty() && often <= OFTEN {
                    because.push(Because::GuardWorks);
                } else if always.is_empty() {
                    because.push(Because::ClipsMany { fires: often });
                } else {
                    because.extend(always);
                    because.push(self.about_optimizer());
                }
                Some(self.keep(Confidence::Medium, because))
            }
        }
    }

    /// Spikes that come back all the time, without bad losses, can mean that the rate is too large.
    fn spikes_keep_coming(&self) -> bool {
        let quiet = |spike: &&Spike| match (spike.loss_before, spike.loss_peak) {
            (Some(before), Some(peak)) => peak < before + 0.3 * before.abs(),
            _ => false,
        };
        self.course.spikes.iter().filter(quiet).count() >= MANY
    }

    /// Training in which nothing is wrong, or only single steps are.
    fn ordinary(&self) -> Recommendation {
        let mut because = self.because(|f| matches!(f, Finding::NonFiniteSteps { .. }));
        if !because.is_empty() {
            because.push(Because::SkipNonFinite);
        }
        because.extend(self.because(|f| matches!(f, Finding::Healthy { .. })));
        let without_loss = self.course.losses().1.is_none();
        let sgd = self.now.optimizer == Some(Optimizer::Sgd);
        let mut recommendation = match self.change_for_sgd() {
            Some(change) if sgd => change,
            _ => self.by_threshold(because),
        };
        if without_loss {
            recommendation.because.insert(0, Because::NoLoss);
            recommendation.confidence = Confidence::Low;
        }
        recommendation
    }

    fn by_threshold(&self, mut because: Vec<Because>) -> Recommendation {
        let always = self.because(|f| matches!(f, Finding::AlwaysClipped { .. }));
        let never = self.because(|f| matches!(f, Finding::NeverClipped { .. }));
        match (self.now.threshold, self.guard) {
            (None, guard) => {
                let guard = guard.map(|guard| guard.threshold);
                because.push(Because::ThresholdUnknown { guard });
                self.keep(Confidence::Low, because)
            }
            (Some((c, _)), Some(guard)) if c.is_infinite() => {
                self.guard(guard, Confidence::Medium, because)
            }
            // A threshold far above every norm protects from little.
            (Some((c, _)), Some(guard)) if c > FAR * self.largest() => {
                because.splice(0..0, never);
                self.guard(guard, Confidence::Medium, because)
            }
            (Some(_), _) => {
                because.extend(never);
                if always.is_empty() {
                    because.push(Because::NoGainExpected);
                } else {
                    because.extend(always);
                    because.push(self.about_optimizer());
                }
                self.keep(Confidence::Medium, because)
            }
        }
    }

    /// Whether the batch size is known and the threshold in force leaves steps nearly as long as without.
    fn hardly_shortens(&self) -> bool {
        let step = self.analysis.current.as_ref().and_then(|now| now.step_factor);
        self.now.components.is_some() && step.is_some_and(|step| step.value > 0.7)
    }

    fn largest(&self) -> f64 {
        self.log.points.iter().map(|p| p.norm).fold(0.0, f64::max)
    }

    /// What the optimizer does with a threshold.
    fn about_optimizer(&self) -> Because {
        match self.now.optimizer {
            Some(Optimizer::Sgd) => Because::ActsAsRate,
            Some(Optimizer::Adam) => Because::ScaleCancels,
            None => Because::OptimizerUnknown,
        }
    }

    /// The change that the norms support, which are evidence for SGD only.
    fn change_for_sgd(&self) -> Option<Recommendation> {
        let heavy = self.because(|f| matches!(f, Finding::HeavyTail { .. }));
        match self.analysis.supported {
            Supported::Clip => {
                // The best threshold may clip most steps, which without another learning rate is a
                // lower one; of those that do not, the best.
                let seldom = |at: &&Estimates| {
                    at.exceedances >= 10 && fires(self.log, two_digits(at.threshold)) <= OFTEN
                };
                let curve = self.analysis.curve.iter().filter(seldom);
                let best = curve.max_by(|a, b| a.ccc.low.total_cmp(&b.ccc.low))?;
                if !(best.ccc.low > 1.0 + margin(self.now.components)) {
                    return None;
                }
                let threshold = two_digits(best.threshold);
                let mut because = vec![Because::Gain(best.ccc)];
                because.extend(heavy);
                Some(Recommendation {
                    threshold: Some(threshold),
                    ..self.to(Action::Clip, Confidence::Medium, because)
                })
            }
            // Without a threshold steps get longer, and by as much the learning rate is raised.
            Supported::Loosen if self.course.spikes.is_empty() && self.hardly_shortens() => {
                let because = vec![Because::ThresholdCosts, Because::ActsAsRate];
                Some(self.to(Action::Remove, Confidence::Medium, because))
            }
            _ => None,
        }
    }
}
