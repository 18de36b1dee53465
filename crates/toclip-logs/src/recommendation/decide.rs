//! Decides what to do: broken training first, then misleading norms, then spikes.

use toclip::monitor::{Estimates, MonitorAdvice, MonitorSettings};

use super::guard::{self, Guard, fires, two_digits};
use super::{
    Action, Because, Confidence, MOST_CLIPPED, RateExperiment, Recommendation, experiment,
};
use crate::findings::{Analysis, FEWEST_POINTS, Spike, TrainingCourse};
use crate::{Finding, Log, NormScaleCause, OptimizerKind, RunContext, ThresholdOrigin};

/// A rate that was too large is multiplied by this.
const LOWER: f64 = 0.3;
/// A current threshold up to this many times the guard is as good as one.
const CLOSE: f64 = 2.0;
/// From this many spikes on, the learning rate may be too large.
const MANY_SPIKES: usize = 10;
/// A current threshold this many times above every norm is no guard.
const FAR: f64 = 10.0;

/// Decides what to do.
pub(crate) fn decide(
    log: &Log,
    course: &TrainingCourse,
    findings: &[Finding],
    analysis: &Analysis,
    now: &RunContext,
) -> Recommendation {
    let guard = guard::find(log, course, findings);
    let case = Case { log, course, findings, analysis, now, guard };
    let mut recommendation = case
        .broken()
        .or_else(|| case.unusable())
        .or_else(|| case.spikes())
        .unwrap_or_else(|| case.ordinary());
    recommendation.fires = recommendation.threshold.map(|c| fires(&log.points, c));
    recommendation.experiments = case.experiments(recommendation.action);
    recommendation.next_run = case.find(|f| matches!(f, Finding::Finished { .. })).is_some();
    recommendation
}

struct Case<'a> {
    log: &'a Log,
    course: &'a TrainingCourse,
    findings: &'a [Finding],
    analysis: &'a Analysis,
    now: &'a RunContext,
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
        let lower = |rate: Option<f64>| {
            // The best loss may be in a warm-up, where the rate says nothing.
            let reached = rate.zip(self.analysis.largest_rate).map(|(rate, most)| rate / most);
            Some(two_digits(LOWER * reached.map_or(1.0, |reached| reached.clamp(LOWER, 1.0))))
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

    /// Norms that mislead, or too few.
    fn unusable(&self) -> Option<Recommendation> {
        let clipped = self.because(|f| matches!(f, Finding::NormsAfterClipping { .. }));
        if !clipped.is_empty() {
            return Some(self.to(Action::FixLogging, Confidence::High, clipped));
        }
        // The user says that nothing was clipped, and the norms say otherwise.
        let denied = self.because(|f| matches!(f, Finding::NotClipped { .. }));
        if !denied.is_empty() && self.now.in_force().is_none() {
            return Some(self.to(Action::CannotTell, Confidence::Low, denied));
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
        (points < FEWEST_POINTS).then(|| self.to(Action::CannotTell, Confidence::Low, few))
    }

    /// Training with spikes.
    fn spikes(&self) -> Option<Recommendation> {
        let mut because = self.because(|f| matches!(f, Finding::Spikes { .. }));
        if because.is_empty() {
            return None;
        }
        if let Some(mut clip) = self.change_for_sgd() {
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
            // The current threshold is unknown; a guard is right unless it already is one.
            (Some(guard), None) => Some(self.guard(guard, Confidence::Medium, because)),
            (None, _) if self.now.in_force().is_none() => {
                Some(self.to(Action::CannotTell, Confidence::Low, because))
            }
            (None, _) => {
                let always = self.because(|f| matches!(f, Finding::AlwaysClipped { .. }));
                let often = self.now.in_force().map_or(0.0, |c| fires(&self.log.points, c));
                if always.is_empty() && often <= MOST_CLIPPED {
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

    /// Experiments for questions that the log cannot answer: threshold and rate together for SGD, a
    /// lower rate where spikes keep coming.
    fn experiments(&self, action: Action) -> Vec<RateExperiment> {
        match action {
            Action::Keep | Action::Guard | Action::Clip if self.is_sgd() => {
                experiment::for_sgd(self.log, self.course, self.now)
            }
            Action::Keep | Action::Guard if self.spikes_keep_coming() => {
                experiment::lower_rate(self.log, self.now)
            }
            _ => Vec::new(),
        }
    }

    fn is_sgd(&self) -> bool {
        self.now.optimizer == Some(OptimizerKind::Sgd)
    }

    /// Spikes that come back all the time, without bad losses, can mean that the rate is too large.
    fn spikes_keep_coming(&self) -> bool {
        let quiet = |spike: &&Spike| match (spike.loss_before, spike.loss_peak) {
            (Some(before), Some(peak)) => peak < before + 0.3 * before.abs(),
            _ => false,
        };
        self.course.spikes.iter().filter(quiet).count() >= MANY_SPIKES
    }

    /// Training in which nothing is wrong, or only single steps are.
    fn ordinary(&self) -> Recommendation {
        let mut because = self.because(|f| matches!(f, Finding::NonFiniteSteps { .. }));
        if !because.is_empty() {
            because.push(Because::SkipNonFinite);
        }
        because.extend(self.because(|f| matches!(f, Finding::Healthy { .. })));
        let without_loss = self.course.losses().1.is_none();
        let change = self.change_for_sgd();
        let mut recommendation = change.unwrap_or_else(|| self.by_threshold(because));
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
            (Some((c, _)), Some(guard)) if c > FAR * self.log.largest_norm() => {
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

    /// Whether the batch size is known and the current threshold leaves steps nearly as long as without.
    fn hardly_shortens(&self) -> bool {
        let step = self.analysis.current.as_ref().and_then(|now| now.step_factor);
        self.now.components.is_some() && step.is_some_and(|step| step.value > 0.7)
    }

    /// The effect of a threshold with this optimizer.
    fn about_optimizer(&self) -> Because {
        match self.now.optimizer {
            Some(OptimizerKind::Sgd) => Because::ActsAsRate,
            Some(OptimizerKind::Adam) => Because::ScaleCancels,
            None => Because::OptimizerUnknown,
        }
    }

    /// The change that the norms support, which are evidence for SGD only.
    fn change_for_sgd(&self) -> Option<Recommendation> {
        if !self.is_sgd() {
            return None;
        }
        let heavy = self.because(|f| matches!(f, Finding::HeavyTail { .. }));
        match self.analysis.supported {
            Some(MonitorAdvice::Clip(_)) => {
                // A threshold that clips most steps acts as a lower learning rate: the best of the
                // others.
                let seldom = |at: &&Estimates| {
                    at.exceedances >= 10
                        && fires(&self.log.points, two_digits(at.threshold)) <= MOST_CLIPPED
                };
                let curve = self.analysis.curve.iter().filter(seldom);
                let best = curve.max_by(|a, b| a.ccc.low.total_cmp(&b.ccc.low))?;
                let margin = MonitorSettings::measured_margin(self.now.components);
                if !(best.ccc.low > 1.0 + margin) {
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
            Some(MonitorAdvice::Loosen(_))
                if self.course.spikes.is_empty() && self.hardly_shortens() =>
            {
                let because = vec![Because::ThresholdCosts, Because::ActsAsRate];
                Some(self.to(Action::Remove, Confidence::Medium, because))
            }
            _ => None,
        }
    }
}
