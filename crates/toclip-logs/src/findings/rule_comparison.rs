//! Other threshold rules, replayed on the same log.

use serde::Serialize;
use toclip::monitor::{Interval, MonitorSettings};
use toclip::threshold_rules::{AutoClip, Fixed, SkipAbove, ThresholdRule, ZClip};
use toclip_words::short;

use super::running_scales;
use crate::{Log, Result};

/// A rule, replayed on the norms of the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleOutcome {
    /// The name of the rule.
    pub rule: String,
    /// The share of steps that it clips or skips.
    pub fires: f64,
    /// The length of the mean step over that without clipping.
    pub step_factor: f64,
    /// CCC over the log with an interval; one is no clipping.
    pub ccc: Interval,
    /// The threshold at the last step; infinite (`"none"` in JSON) if it does not clip.
    #[serde(serialize_with = "super::analysis::or_none")]
    pub last: f64,
}

/// Steps above so many running medians are skipped, of so many norms.
const SKIP: (f64, usize) = (4.0, 100);
/// The density of the norms at the threshold is that of norms within this share of it.
const NEAR: f64 = 0.1;
/// Parts of the log whose spread gives the interval.
const PARTS: usize = 20;

/// Replays the rules that people use, the current threshold and the recommended one.
pub(super) fn compare(
    log: &Log,
    in_force: Option<f64>,
    recommended: Option<f64>,
    settings: &MonitorSettings,
) -> Result<Vec<RuleOutcome>> {
    // A step of zero has nothing to clip, and would count as kept.
    let norms: Vec<f64> = log.norms().into_iter().filter(|norm| *norm > 0.0).collect();
    // A part of one norm has no spread.
    if norms.len() < 2 * PARTS {
        return Ok(Vec::new());
    }
    let scales = running_scales(&norms);
    let mut uncapped = ZClip::default();
    uncapped.cap = None;
    let mut rules: Vec<(String, Box<dyn ThresholdRule>)> = Vec::new();
    for (name, c) in [("recommended", recommended), ("in force", in_force.filter(|c| *c != 1.0))] {
        if let Some(c) = c {
            rules.push((format!("{name}, {}", short(c)), Box::new(Fixed::new(c)?)));
        }
    }
    rules.push(("fixed 1.0".into(), Box::new(Fixed::new(1.0)?)));
    rules.push(("AutoClip, 10th percentile".into(), Box::new(AutoClip::new(10.0)?)));
    rules.push(("AutoClip, 50th percentile".into(), Box::new(AutoClip::new(50.0)?)));
    rules.push(("ZClip, z 2.5, cap 1.0".into(), Box::new(ZClip::default().started()?)));
    rules.push(("ZClip, z 2.5, no cap".into(), Box::new(uncapped.started()?)));
    let skip = SkipAbove::new(SKIP.0, SKIP.1)?;
    rules.push((format!("skip above {} × median", SKIP.0), Box::new(skip)));
    let replay = |(name, mut rule): (String, Box<dyn ThresholdRule>)| {
        outcome(name, &norms, &scales, &mut *rule, settings)
    };
    let mut outcomes: Vec<RuleOutcome> = rules.into_iter().map(replay).collect();
    // Norms near the limits of floating-point numbers leave nothing to compare.
    outcomes.retain(|outcome| outcome.ccc.value.is_finite() && outcome.ccc.high.is_finite());
    Ok(outcomes)
}

/// Sums over a part: steps, μ, clipped squares, squares.
type Sums = [f64; 4];

fn outcome(
    name: String,
    norms: &[f64],
    scales: &[f64],
    rule: &mut dyn ThresholdRule,
    settings: &MonitorSettings,
) -> RuleOutcome {
    // The descent of a clipped batch that is kept: (1 − 1/N) c/G. A skipped one keeps none, and those
    // next to the threshold cost c f(c)/N.
    let share = settings.components.map_or(0.0, f64::recip);
    let edge = if rule.skips() { share / (2.0 * NEAR) } else { 0.0 };
    let mut last = f64::NAN;
    let n = norms.len();
    let length = n.div_ceil(PARTS).max(1);
    let mut parts: Vec<Sums> = vec![[0.0; 4]; n.div_ceil(length)];
    let (mut fired, mut step) = (0.0, 0.0);
    for i in 0..n {
        last = rule.threshold(norms[i]);
        let factor = rule.factor(norms[i], last);
        let over = norms[i] > last;
        fired += f64::from(over);
        step += factor;
        let u = norms[i] / scales[i];
        let part = &mut parts[i / length];
        part[0] += 1.0;
        part[1] += if over { (1.0 - share) * factor } else { 1.0 };
        part[1] -= if (norms[i] / last - 1.0).abs() < NEAR { edge } else { 0.0 };
        part[2] += (factor * u).powi(2);
        part[3] += u * u;
    }
    let ccc = |total: Sums| (total[1] / total[0]).powi(2) * total[3] / total[2];
    let mut total = [0.0; 4];
    parts.iter().for_each(|part| (0..4).for_each(|k| total[k] += part[k]));
    // The jackknife leaves one part out at a time.
    let without = |part: &Sums| ccc([0, 1, 2, 3].map(|k| total[k] - part[k])).ln();
    let left: Vec<f64> = parts.iter().map(without).collect();
    let k = left.len() as f64;
    let mean = left.iter().sum::<f64>() / k;
    let spread = left.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    let reach = toclip::student_critical(settings.confidence, left.len().saturating_sub(1))
        * ((k - 1.0) / k * spread).sqrt();
    let value = ccc(total);
    RuleOutcome {
        rule: name,
        fires: fired / n as f64,
        step_factor: step / n as f64,
        ccc: Interval { value, low: value * (-reach).exp(), high: value * reach.exp() },
        last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Norms of one, and every tenth of nine: skipped, they leave nine tenths of the descent and of
    /// the squares of the rest.
    #[test]
    fn a_skipped_step_leaves_nothing() {
        let norms: Vec<f64> = (0..1000).map(|k| if k % 10 == 9 { 9.0 } else { 1.0 }).collect();
        let scales = vec![1.0; norms.len()];
        let replay = |rule: &mut dyn ThresholdRule| {
            outcome(String::new(), &norms, &scales, rule, &MonitorSettings::default())
        };
        let skip = replay(&mut SkipAbove::new(4.0, 100).unwrap());
        assert!((skip.fires - 0.1).abs() < 1e-12 && (skip.step_factor - 0.9).abs() < 1e-12);
        // μ = 0.9, m2 = 0.9 against 0.9 + 8.1.
        assert!((skip.ccc.value - 0.9 * 0.9 * 9.0 / 0.9).abs() < 1e-9, "{:?}", skip.ccc);
        let clip = replay(&mut Fixed::new(4.0).unwrap());
        assert!(clip.step_factor > skip.step_factor && clip.ccc.value < skip.ccc.value);
    }
}
