//! Advice about clipping from a log: estimates and decisions, as data.
//!
//! The estimates are those of [`toclip::monitor`], in the order in which they answer questions: what
//! the threshold in force does, what the norms look like, what the criteria are, what to do, and what
//! other rules would have done.

mod comparison;
mod current;
mod distribution;
mod options;
mod recommendation;
mod running_scale;

use serde::{Serialize, Serializer};
use toclip::monitor::{Estimates, Monitor, Reason, Settings};

pub use comparison::RuleOutcome;
pub use current::{CurrentThreshold, ThresholdEffect, ThresholdOrigin};
pub use distribution::{NormDistribution, Spikes};
pub use options::{AdviceOptions, Optimizer};
pub(crate) use recommendation::LARGEST;
pub use recommendation::{Action, Basis, Recommendation};
pub use running_scale::running_scales;

use crate::{Finding, Log, Point, Result, wording};
use recommendation::Setup;

/// Everything that was found out about a log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Steps with a norm.
    pub points: usize,
    /// The first and the last step.
    pub steps: (f64, f64),
    /// What a reader of the numbers must know.
    pub findings: Vec<Finding>,
    /// The threshold in force; `None` if it is unknown.
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
    /// What to do.
    pub recommendation: Recommendation,
    /// What other rules would have done.
    pub comparison: Vec<RuleOutcome>,
    /// Samples times outputs per norm; `None` if unknown, and the curve is then for very many.
    pub components: Option<f64>,
    /// The confidence of the intervals.
    pub confidence: f64,
    /// The optimizer, if it is known.
    pub optimizer: Option<Optimizer>,
    /// The last learning rate of the log.
    pub learning_rate: Option<f64>,
}

/// What the caller can supply to get a better answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Hint {
    /// The name of the column with the gradient norm.
    NormColumn,
    /// That the norms are to be divided by the loss scale.
    Unscale,
    /// The threshold in force.
    Threshold,
    /// The batch size, and the outputs per sample.
    BatchSize,
    /// The optimizer.
    Optimizer,
}

/// A threshold this close to a pile of norms is the one that made it.
const NEAR: f64 = 0.01;
/// The shortest part of a log in which the distribution is examined by itself.
const SHORTEST: usize = 512;

/// Gives advice about clipping.
///
/// ```
/// use toclip_logs::{Action, AdviceOptions, advise};
/// // Norms logged after clipping at one: larger norms are not known.
/// let mut text = String::from("step,grad_norm\n");
/// for k in 0..100 {
///     let norm = (0.5 + (k as f64 * 0.618).fract()).min(1.0);
///     text.push_str(&format!("{k},{norm}\n"));
/// }
/// let log = toclip_logs::load(text.as_bytes(), &Default::default())?;
/// let advice = advise(&log, &AdviceOptions::default())?;
/// assert_eq!(advice.recommendation.action, Action::LogBeforeClipping);
/// # Ok::<(), toclip_logs::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Invalid`](crate::Error::Invalid) for an invalid value in `options`.
pub fn advise(log: &Log, options: &AdviceOptions) -> Result<Advice> {
    options.check()?;
    let mut advice = decide(log, options)?;
    advice.recommendation.wording = wording::recommendation(&advice);
    Ok(advice)
}

fn decide(log: &Log, options: &AdviceOptions) -> Result<Advice> {
    let batch = options.batch_size.or(log.summary.batch_size);
    let components = batch.map(|b| (b * options.outputs.unwrap_or(1.0)).max(1.0));
    let mut rates = log.points.iter().map(|p| p.learning_rate);
    let step = |p: Option<&Point>| p.map_or(f64::NAN, |p| p.step);
    let basis = Basis::AfterClipping(f64::NAN);
    let mut advice = Advice {
        points: log.points.len(),
        steps: (step(log.points.first()), step(log.points.last())),
        findings: log.findings.clone(),
        current: None,
        distribution: None,
        steady_from: step(log.points.first()),
        steady_points: log.points.len(),
        scale: None,
        curve: Vec::new(),
        recommendation: Recommendation::without_threshold(Action::LogBeforeClipping, basis, None),
        comparison: Vec::new(),
        components,
        confidence: options.confidence,
        optimizer: options.optimizer,
        learning_rate: rates.rfind(|r| r.is_finite() && *r > 0.0),
    };
    for finding in &mut advice.findings {
        let Finding::AfterClipping { threshold, share } = *finding else { continue };
        // A user who gives another threshold knows that the norms were not clipped here.
        if options.clip.is_some_and(|c| !((c / threshold - 1.0).abs() < NEAR)) {
            *finding = Finding::NotClipped { threshold, share };
            continue;
        }
        let current = CurrentThreshold::after_clipping(threshold, share, log, options.confidence);
        advice.current = Some(current);
        advice.recommendation.basis = Basis::AfterClipping(threshold);
        return Ok(advice);
    }
    let threshold = current::threshold(log, options);
    let in_force = threshold.map(|(c, _)| c).filter(|c| c.is_finite());
    let confidence = options.confidence;
    let settings = Settings { components, watched: in_force, confidence, ..Settings::default() };
    let whole = monitor(&log.points, settings)?;
    if let Some((c, origin)) = threshold {
        advice.current = Some(CurrentThreshold::new(c, origin, &whole, log, settings)?);
    }
    advice.distribution = Some(NormDistribution::new(log, &whole));
    let (from, steady) = steady_part(log, &whole, settings)?;
    advice.steady_from = log.points[from].step;
    advice.steady_points = log.points.len() - from;
    advice.scale = steady.scale();
    advice.curve = steady.curve();
    let setup = Setup {
        current: advice.current.as_ref(),
        optimizer: options.optimizer,
        scale_memory: running_scale::memory_in_steps(&log.points, &log.norms()[from..]),
        loss_scaled: log.findings.iter().any(|f| matches!(f, Finding::LossScaled { .. })),
    };
    let mut recommendation = Recommendation::new(&steady, setup);
    if components.is_none() && recommendation.action == Action::Clip {
        let smallest = smallest_batch(&log.points[from..], settings, setup)?;
        recommendation = recommendation.for_unknown_batch(smallest);
    }
    // The monitor counts complete blocks only.
    if let Basis::NoChange(Reason::TooFew { seen, .. }) = &mut recommendation.basis {
        *seen = log.points.iter().filter(|p| p.norm > 0.0).count() as u64;
    }
    advice.recommendation = recommendation;
    advice.comparison = comparison::compare(log, in_force, &advice.recommendation, &settings)?;
    Ok(advice)
}

impl Advice {
    /// What the caller can supply to get a better answer.
    pub fn hints(&self) -> Vec<Hint> {
        use ThresholdOrigin::{Default, PileUp};
        let r = &self.recommendation;
        let scaled = |f: &Finding| matches!(f, Finding::LossScaled { column: true, .. });
        let origin = self.current.as_ref().map(|now| now.origin);
        let unsure = matches!(origin, None | Some(Default | PileUp));
        let hints = [
            (Hint::Unscale, self.findings.iter().any(scaled)),
            (Hint::Threshold, unsure),
            (Hint::BatchSize, self.components.is_none() && self.distribution.is_some()),
            (Hint::Optimizer, self.optimizer.is_none() && r.threshold.is_some()),
        ];
        hints.into_iter().filter(|(_, wanted)| *wanted).map(|(hint, _)| hint).collect()
    }
}

/// The smallest power of two of samples for which clipping is recommended, and that recommendation.
/// The more samples, the more is kept of a clipped gradient, so bisection finds it.
fn smallest_batch(
    points: &[Point],
    settings: Settings,
    setup: Setup,
) -> Result<Option<(f64, Recommendation)>> {
    let (mut low, mut high) = (0, LARGEST.log2() as i32 + 1);
    let mut smallest = None;
    while low < high {
        let middle = (low + high) / 2;
        let n = f64::powi(2.0, middle);
        let steady = monitor(points, Settings { components: Some(n), ..settings })?;
        let recommendation = Recommendation::new(&steady, setup);
        if recommendation.action == Action::Clip {
            smallest = Some((n, recommendation));
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(smallest)
}

/// A monitor that has observed these points.
fn monitor(points: &[Point], settings: Settings) -> Result<Monitor> {
    let mut monitor = Monitor::new(settings)?;
    points.iter().for_each(|p| monitor.observe(p.norm));
    Ok(monitor)
}

/// The longest end of the log, by halves, in which the distribution did not change.
fn steady_part(log: &Log, whole: &Monitor, settings: Settings) -> Result<(usize, Monitor)> {
    let changed = |monitor: &Monitor| monitor.drift().is_some_and(|drift| drift.found());
    let (mut from, mut steady) = (0, whole.clone());
    while changed(&steady) && (log.points.len() - from) / 2 >= SHORTEST {
        from += (log.points.len() - from) / 2;
        steady = monitor(&log.points[from..], settings)?;
    }
    Ok((from, steady))
}

/// A threshold for JSON, which has no infinite numbers.
fn or_none<S: Serializer>(x: &f64, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    match x.is_infinite() {
        true => serializer.serialize_str("none"),
        false => serializer.serialize_f64(*x),
    }
}
