//! Estimates from the norms of a log: the effect of the current threshold, the distribution of the
//! norms, and the criteria of the theory.
//!
//! The estimates are those of [`toclip::monitor`].

use serde::{Serialize, Serializer};
use toclip::monitor::{Estimates, Monitor, MonitorAdvice, MonitorSettings, ThresholdChoice};

use super::{
    CurrentThreshold, LayerSummary, NormDistribution, RuleOutcome, TrainingCourse, change_point,
    layer_summary, rule_comparison,
};
use crate::{Log, LogPoint, OptimizerKind, Result, RunContext};

/// Estimates from the norms of a log.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Analysis {
    /// Steps with a finite norm.
    pub points: usize,
    /// The first and the last of them.
    pub steps: (f64, f64),
    /// Steps in the warm-up, which the estimates leave out.
    pub warm_up: usize,
    /// The current threshold; `None` if it is unknown.
    pub current: Option<CurrentThreshold>,
    /// The distribution of the norms; `None` if they were logged after clipping.
    pub distribution: Option<NormDistribution>,
    /// The first step of the part of the log that the criteria are estimated from, in which the
    /// distribution did not change.
    pub steady_from: f64,
    /// Norms in that part.
    pub steady_points: usize,
    /// The scale of the norms at the end: their running geometric mean.
    pub scale: Option<f64>,
    /// Factors and criteria at 64 thresholds in the steady part.
    pub curve: Vec<Estimates>,
    /// The best threshold by the lower end of the interval of CCC, if there is enough to tell.
    pub best: Option<ThresholdChoice>,
    /// The layers, those with the largest share of the squared norm first.
    pub layers: Vec<LayerSummary>,
    /// Other threshold rules, replayed on the log.
    pub comparison: Vec<RuleOutcome>,
    /// Samples times outputs per norm; `None` if unknown, and the curve is then for very many.
    pub components: Option<f64>,
    /// The confidence of the intervals.
    pub confidence: f64,
    /// The optimizer, if it is known.
    pub optimizer: Option<OptimizerKind>,
    /// The last learning rate of the log.
    pub learning_rate: Option<f64>,
    /// The largest learning rate of the log.
    pub largest_rate: Option<f64>,
    /// The change that the norms of the steady part support, for SGD.
    #[serde(skip)]
    pub(crate) supported: Option<MonitorAdvice>,
}

/// The shortest part of a log in which the distribution is examined by itself.
const SHORTEST: usize = 512;

impl Analysis {
    pub(crate) fn new(log: &Log, course: &TrainingCourse, now: &RunContext) -> Result<Self> {
        let step = |p: Option<&LogPoint>| p.map_or(f64::NAN, |p| p.step);
        let mut analysis = Analysis {
            points: log.points.len(),
            steps: (step(log.points.first()), step(log.points.last())),
            warm_up: course.warm_up,
            steady_from: step(log.points.first()),
            steady_points: log.points.len(),
            layers: layer_summary::summarise(&log.layers),
            components: now.components,
            confidence: now.confidence,
            optimizer: now.optimizer,
            largest_rate: log.learning_rates().reduce(f64::max),
            learning_rate: log.learning_rates().next_back(),
            ..Analysis::default()
        };
        if let Some((threshold, share)) = now.clipped_at {
            let current = CurrentThreshold::after_clipping(threshold, share, log, now.confidence);
            analysis.current = Some(current);
            return Ok(analysis);
        }
        let settings = settings(now);
        if let Some((c, origin)) = now.threshold {
            let whole = monitor(&log.points, settings)?;
            analysis.current = Some(CurrentThreshold::new(c, origin, &whole, log, settings)?);
        }
        let ordinary: Vec<LogPoint> = course.ordinary(&log.points).copied().collect();
        let ordinary_monitor = monitor(&ordinary, settings)?;
        analysis.distribution = Some(NormDistribution::new(log, &ordinary_monitor));
        let (from, steady) = steady_part(&ordinary, ordinary_monitor, settings)?;
        analysis.steady_from = step(ordinary.get(from));
        analysis.steady_points = ordinary.len() - from;
        analysis.scale = steady.scale();
        analysis.curve = steady.curve();
        let advice = steady.advice();
        (analysis.best, analysis.supported) = (advice.choice().copied(), Some(advice));
        Ok(analysis)
    }

    /// Replays rules on the norms, the recommended threshold among them.
    pub(crate) fn compare(
        &mut self,
        log: &Log,
        now: &RunContext,
        recommended: Option<f64>,
    ) -> Result<()> {
        if self.distribution.is_some() {
            let other = recommended.filter(|c| now.in_force() != Some(*c));
            self.comparison = rule_comparison::compare(log, now.in_force(), other, &settings(now))?;
        }
        Ok(())
    }
}

fn settings(now: &RunContext) -> MonitorSettings {
    // Without the batch size, as little is credited to clipping as for a single sample.
    MonitorSettings {
        components: now.components.or(Some(1.0)),
        watched: now.in_force(),
        confidence: now.confidence,
        margin: MonitorSettings::measured_margin(now.components),
        ..MonitorSettings::default()
    }
}

/// A monitor that has observed these points.
pub(super) fn monitor(points: &[LogPoint], settings: MonitorSettings) -> Result<Monitor> {
    let mut monitor = Monitor::new(settings)?;
    points.iter().for_each(|p| monitor.observe(p.norm));
    Ok(monitor)
}

/// The last part of the log in which the distribution did not change.
fn steady_part(
    points: &[LogPoint],
    whole: Monitor,
    settings: MonitorSettings,
) -> Result<(usize, Monitor)> {
    let changed = |monitor: &Monitor| monitor.drift().is_some_and(|drift| drift.found());
    let (mut from, mut steady) = (0, whole);
    while changed(&steady) && (points.len() - from) / 2 >= SHORTEST {
        let norms: Vec<f64> = points[from..].iter().map(|p| p.norm).collect();
        from += change_point::find(&norms).min(norms.len() - SHORTEST);
        steady = monitor(&points[from..], settings)?;
    }
    Ok((from, steady))
}

/// A threshold for JSON, which has no infinite numbers.
pub(super) fn or_none<S: Serializer>(
    x: &f64,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    match x.is_infinite() {
        true => serializer.serialize_str("none"),
        false => serializer.serialize_f64(*x),
    }
}
