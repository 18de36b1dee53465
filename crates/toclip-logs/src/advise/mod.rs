//! Advice about clipping, from a log.
//!
//! The estimates are those of [`toclip::monitor`]; here they are put in the order in which they
//! answer questions: what the present setting does, what the norms look like, where the criteria
//! stand, what to do, and what other rules would have done.

mod code;
mod compare;
mod current;
mod law;
mod optimizer;
mod recommend;
mod say;
mod stay;

use serde::Serialize;
use toclip::monitor::{Estimates, Monitor, Settings};

pub use code::CodeLine;
pub use compare::Outcome;
pub use current::{Current, Effect, Origin};
pub use law::{Bursts, Law, scales};
pub use optimizer::Optimizer;
pub use recommend::{Action, Recommendation};
pub use say::Answer;

use crate::{Error, Finding, Log, Point, Result};

/// What the user can tell besides the log.
///
/// | field | default | meaning |
/// |---|---|---|
/// | `clip` | from the log | the threshold in force |
/// | `batch_size` | from the log, else not known | samples behind one gradient |
/// | `outputs` | 1 | outputs of the model, or tokens of a sample |
/// | `optimizer` | not known | what takes the step |
/// | `confidence` | 0.95 | of every interval |
///
/// Without a batch size the curves are for very many samples, which flatters clipping; it is then
/// advised only if it would be for a single sample too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    /// The threshold in force; infinite for none.
    pub clip: Option<f64>,
    /// Samples of one batch.
    pub batch_size: Option<f64>,
    /// Outputs of the model for one sample.
    pub outputs: Option<f64>,
    /// What takes the step.
    pub optimizer: Option<Optimizer>,
    /// The confidence of every interval.
    pub confidence: f64,
}

impl Default for Ask {
    fn default() -> Self {
        Ask { clip: None, batch_size: None, outputs: None, optimizer: None, confidence: 0.95 }
    }
}

/// All that was found out about a log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advised {
    /// Steps with a norm.
    pub points: usize,
    /// The first and the last step.
    pub steps: (f64, f64),
    /// What a reader of the numbers must know.
    pub findings: Vec<Finding>,
    /// The present setting; `None` if nobody knows it.
    pub current: Option<Current>,
    /// The law of the norms; `None` where it cannot be seen.
    pub law: Option<Law>,
    /// The first step of the stretch in which the law is steady enough for the criteria.
    pub steady_from: f64,
    /// Norms in that stretch.
    pub steady_points: usize,
    /// The scale of the norms at the end: their running geometric mean.
    pub scale: Option<f64>,
    /// Factors and criteria at 64 thresholds in the steady stretch.
    pub curve: Vec<Estimates>,
    /// What to do.
    pub recommendation: Recommendation,
    /// What other rules would have done.
    pub comparison: Vec<Outcome>,
    /// Samples times outputs behind one norm; `None` if not known, and the curve is then for very
    /// many.
    pub components: Option<f64>,
    /// The confidence of the intervals.
    pub confidence: f64,
    /// The optimizer, where it is known.
    pub optimizer: Option<Optimizer>,
    /// The last learning rate of the log.
    pub learning_rate: Option<f64>,
}

/// A threshold this near to a pile of norms is the one that made it.
const NEAR: f64 = 0.01;
/// The shortest stretch that the law is looked at in by itself.
const SHORTEST: usize = 512;

/// Answers what a log can answer.
///
/// ```
/// use toclip_logs::advise::{Action, Ask, advise};
/// // Norms logged after clipping at one: they say nothing about what was cut off.
/// let mut text = String::from("step,grad_norm\n");
/// for k in 0..100 {
///     let norm = (0.5 + (k as f64 * 0.618).fract()).min(1.0);
///     text.push_str(&format!("{k},{norm}\n"));
/// }
/// let log = toclip_logs::load(text.as_bytes(), &Default::default())?;
/// let advised = advise(&log, &Ask::default())?;
/// assert_eq!(advised.recommendation.action, Action::LogBeforeClipping);
/// # Ok::<(), toclip_logs::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Invalid`] for something impossible in `ask`.
pub fn advise(log: &Log, ask: &Ask) -> Result<Advised> {
    check(ask)?;
    let batch = ask.batch_size.or(log.reading.batch_size);
    let components = batch.map(|b| (b * ask.outputs.unwrap_or(1.0)).max(1.0));
    let mut rates = log.points.iter().map(|p| p.learning_rate);
    let learning_rate = rates.rfind(|r| r.is_finite() && *r > 0.0);
    let step = |p: Option<&Point>| p.map_or(f64::NAN, |p| p.step);
    let mut advised = Advised {
        points: log.points.len(),
        steps: (step(log.points.first()), step(log.points.last())),
        findings: log.findings.clone(),
        current: None,
        law: None,
        steady_from: step(log.points.first()),
        steady_points: log.points.len(),
        scale: None,
        curve: Vec::new(),
        recommendation: Recommendation::unseen(f64::NAN),
        comparison: Vec::new(),
        components,
        confidence: ask.confidence,
        optimizer: ask.optimizer,
        learning_rate,
    };
    let clipped = log.findings.iter().find_map(|finding| match finding {
        Finding::AfterClipping { threshold, share } => Some((*threshold, *share)),
        _ => None,
    });
    // Who gives another threshold knows that the norms were not clipped here.
    let overruled = |at: f64| ask.clip.is_some_and(|c| !((c / at - 1.0).abs() < NEAR));
    if let Some((threshold, share)) = clipped.filter(|(at, _)| overruled(*at)) {
        for finding in &mut advised.findings {
            if matches!(finding, Finding::AfterClipping { .. }) {
                *finding = Finding::NotClipped { threshold, share };
            }
        }
    } else if let Some((threshold, share)) = clipped {
        advised.current = Some(Current::after_clipping(threshold, share, log, ask.confidence));
        advised.recommendation = Recommendation::unseen(threshold);
        return Ok(advised);
    }
    let threshold = current::threshold(log, ask);
    let watched = threshold.map(|(c, _)| c).filter(|c| c.is_finite());
    let settings =
        Settings { components, watched, confidence: ask.confidence, ..Settings::default() };
    let whole = watch(&log.points, settings)?;
    if let Some((c, origin)) = threshold {
        advised.current = Some(Current::new(c, origin, &whole, log, settings)?);
    }
    advised.law = Some(Law::new(log, &whole));
    let (from, steady) = steady(log, &whole, settings)?;
    advised.steady_from = log.points[from].step;
    advised.steady_points = log.points.len() - from;
    advised.scale = steady.scale();
    advised.curve = steady.curve();
    let setup = code::Setup {
        optimizer: ask.optimizer,
        rate: learning_rate,
        scale: steady.scale().unwrap_or(f64::NAN),
        moved: code::moved(&log.norms()[from..]),
        gap: code::gap(&log.points),
    };
    let with =
        |monitor: &Monitor| Recommendation::new(monitor, advised.current.as_ref(), &setup, log);
    let mut recommendation = with(&steady);
    if components.is_none() && recommendation.action == Action::Clip {
        let least = least_batch(&log.points[from..], settings, with)?;
        recommendation = recommendation.for_any_batch(least);
    }
    advised.recommendation = recommendation;
    advised.comparison = compare::all(log, watched, &advised.recommendation, &settings)?;
    Ok(advised)
}

/// The least power of two of samples for which clipping is advised, and that advice. The more
/// samples, the more is kept of a clipped gradient, so that halving the range finds it.
fn least_batch(
    points: &[Point],
    settings: Settings,
    with: impl Fn(&Monitor) -> Recommendation,
) -> Result<Option<(f64, Recommendation)>> {
    let (mut low, mut high) = (0, recommend::LARGEST.log2() as i32 + 1);
    let mut least = None;
    while low < high {
        let middle = (low + high) / 2;
        let n = f64::powi(2.0, middle);
        let advice = with(&watch(points, Settings { components: Some(n), ..settings })?);
        if advice.action == Action::Clip {
            least = Some((n, advice));
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(least)
}

fn check(ask: &Ask) -> Result<()> {
    let wrong = |what: &str, value: f64, right: &str| {
        Err(Error::Invalid(format!("{what} {value} is not possible: {right}")))
    };
    if let Some(clip) = ask.clip
        && !(clip > 0.0)
    {
        return wrong("the threshold", clip, "it must be positive, or inf for no clipping");
    }
    for (what, value) in [("the batch size", ask.batch_size), ("the outputs", ask.outputs)] {
        if let Some(value) = value
            && !(value >= 1.0 && value.is_finite())
        {
            return wrong(what, value, "give one or more");
        }
    }
    if !(0.5..1.0).contains(&ask.confidence) {
        return wrong("the confidence", ask.confidence, "give a number from 0.5 to below 1");
    }
    Ok(())
}

/// A monitor that has seen these points.
fn watch(points: &[Point], settings: Settings) -> Result<Monitor> {
    let mut monitor = Monitor::new(settings)?;
    points.iter().for_each(|p| monitor.observe(p.norm));
    Ok(monitor)
}

/// The longest end of the log, by halves, in which the law did not change.
fn steady(log: &Log, whole: &Monitor, settings: Settings) -> Result<(usize, Monitor)> {
    let found = |monitor: &Monitor| monitor.drift().is_some_and(|drift| drift.found());
    let (mut from, mut monitor) = (0, whole.clone());
    while found(&monitor) && (log.points.len() - from) / 2 >= SHORTEST {
        from += (log.points.len() - from) / 2;
        monitor = watch(&log.points[from..], settings)?;
    }
    Ok((from, monitor))
}
