//! What other rules would have done on the same log.

use serde::Serialize;
use toclip::monitor::{Interval, Settings};
use toclip::threshold_rules::{AutoClip, Fixed, ThresholdRule, ZClip, clip_factor};

use super::law::scales;
use super::recommend::{Action, Recommendation};
use crate::{Log, Result};

/// One rule, replayed on the norms of the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The rule in a few words.
    pub rule: String,
    /// The share of steps at which it fires.
    pub fires: f64,
    /// What is left of the mean step.
    pub step_factor: f64,
    /// CCC over the log, with an interval; one is no clipping.
    pub ccc: Interval,
    /// The threshold at the last step; infinite (`"inf"` in JSON) where it lets pass.
    #[serde(serialize_with = "crate::words::or_inf")]
    pub last: f64,
}

/// Stretches of the log whose spread gives the interval.
const STRETCHES: usize = 20;

/// Replays the rules that people use, the present threshold and the recommended one.
pub(super) fn all(
    log: &Log,
    watched: Option<f64>,
    recommendation: &Recommendation,
    settings: &Settings,
) -> Result<Vec<Outcome>> {
    let mut uncapped = ZClip::default();
    uncapped.cap = None;
    let uncapped = uncapped.started()?;
    let mut rules: Vec<(String, Box<dyn ThresholdRule>)> = vec![
        ("fixed 1.0".into(), Box::new(Fixed::new(1.0)?)),
        ("AutoClip, 10th percentile".into(), Box::new(AutoClip::new(10.0)?)),
        ("AutoClip, 50th percentile".into(), Box::new(AutoClip::new(50.0)?)),
        ("ZClip, z 2.5, cap 1.0".into(), Box::new(ZClip::default().started()?)),
        ("ZClip, z 2.5, no cap".into(), Box::new(uncapped)),
    ];
    if let Some(c) = watched.filter(|c| *c != 1.0) {
        rules.insert(0, (format!("present {}", crate::words::short(c)), Box::new(Fixed::new(c)?)));
    }
    // A step of zero has nothing to keep, and would count as kept.
    let norms: Vec<f64> = log.norms().into_iter().filter(|norm| *norm > 0.0).collect();
    // A stretch of one norm has no spread to speak of.
    if norms.len() < 2 * STRETCHES {
        return Ok(Vec::new());
    }
    let scales = scales(&norms);
    let mut outcomes = Vec::new();
    for (name, mut rule) in rules {
        let thresholds: Vec<f64> = norms.iter().map(|n| rule.threshold(*n)).collect();
        outcomes.push(outcome(name, &norms, &scales, &thresholds, settings));
    }
    if let (Action::Clip | Action::Loosen, Some(multiple)) =
        (recommendation.action, recommendation.multiple)
    {
        let thresholds: Vec<f64> = scales.iter().map(|s| multiple * s).collect();
        let name = format!("recommended, {} × scale", crate::words::short(multiple));
        outcomes.insert(0, outcome(name, &norms, &scales, &thresholds, settings));
        // What the number alone would have done: at other scales it was another multiple.
        if let Some(c) = recommendation.threshold {
            let name = format!("fixed at the number, {}", crate::words::short(c));
            let thresholds = vec![c; norms.len()];
            outcomes.insert(1, outcome(name, &norms, &scales, &thresholds, settings));
        }
    }
    // Norms near the ends of what a number can be leave nothing to compare.
    outcomes.retain(|outcome| outcome.ccc.value.is_finite() && outcome.ccc.high.is_finite());
    Ok(outcomes)
}

/// Sums over a stretch: steps, μ, clipped squares, squares.
type Sums = [f64; 4];

fn outcome(
    rule: String,
    norms: &[f64],
    scales: &[f64],
    thresholds: &[f64],
    settings: &Settings,
) -> Outcome {
    // What is kept of the descent of a clipped batch: (1 − 1/N) c/G.
    let kept = 1.0 - settings.components.map_or(0.0, f64::recip);
    let n = norms.len();
    let stretch = n.div_ceil(STRETCHES).max(1);
    let mut parts: Vec<Sums> = vec![[0.0; 4]; n.div_ceil(stretch)];
    let (mut fired, mut step) = (0.0, 0.0);
    for i in 0..n {
        let factor = clip_factor(norms[i], thresholds[i]);
        let over = norms[i] > thresholds[i];
        fired += f64::from(over);
        step += factor;
        let u = norms[i] / scales[i];
        let part = &mut parts[i / stretch];
        part[0] += 1.0;
        part[1] += if over { kept * factor } else { 1.0 };
        part[2] += (factor * u).powi(2);
        part[3] += u * u;
    }
    let ccc = |total: Sums| (total[1] / total[0]).powi(2) * total[3] / total[2];
    let mut total = [0.0; 4];
    parts.iter().for_each(|part| (0..4).for_each(|k| total[k] += part[k]));
    // The jackknife: leave one stretch out at a time.
    let without = |part: &Sums| ccc([0, 1, 2, 3].map(|k| total[k] - part[k])).ln();
    let left: Vec<f64> = parts.iter().map(without).collect();
    let k = left.len() as f64;
    let mean = left.iter().sum::<f64>() / k;
    let spread = left.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    let reach = toclip::student_critical(settings.confidence, left.len().saturating_sub(1))
        * ((k - 1.0) / k * spread).sqrt();
    let value = ccc(total);
    Outcome {
        rule,
        fires: fired / n as f64,
        step_factor: step / n as f64,
        ccc: Interval { value, low: value * (-reach).exp(), high: value * reach.exp() },
        last: thresholds.last().copied().unwrap_or(f64::NAN),
    }
}
