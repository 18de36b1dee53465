//! Spikes by their z-score.

use super::{NextStep, ThresholdRule};
use crate::error::{Error, Result};
use crate::factors::check_threshold;
use serde::{Deserialize, Serialize};

/// Clips a norm whose $z = (G - m)/s$ exceeds $z_0$ at $m + z_0^2 s/z$, the further out the lower,
/// with $m$ and $s$ exponential averages (Kumar et al. 2025, *ZClip*).
///
/// | parameter | default | meaning |
/// |---|---|---|
/// | `alpha` | 0.97 | the share of the averages kept at each step |
/// | `z` | 2.5 | $z_0$ |
/// | `warmup` | 25 | norms whose plain mean and variance start the averages |
/// | `cap` | 1.0 | no gradient ever passes this norm; `None` leaves it off |
///
/// The averages are fed the threshold in place of a norm that was clipped by the z-score, not of
/// one clipped by the cap; the variance is taken about the new mean. Both as in the authors' code.
///
/// ```
/// use toclip::threshold_rules::{ThresholdRule, ZClip};
/// let mut rule = ZClip::default();
/// rule.cap = None;
/// let mut rule = rule.started()?;
/// for k in 0..25 {
///     assert_eq!(rule.threshold([0.9, 1.1][k % 2]), f64::INFINITY);
/// }
/// assert_eq!(rule.threshold(1.1), f64::INFINITY); // one standard deviation
/// let spike = rule.threshold(3.0); // thirty of them
/// assert!(spike > 1.0 && spike < 1.05);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ZClip {
    /// What the averages keep of themselves at each step.
    pub alpha: f64,
    /// $z_0$, the z-score of a spike.
    pub z: f64,
    /// How many norms start the averages.
    pub warmup: u32,
    /// The largest norm that passes; `None` for no such limit.
    pub cap: Option<f64>,
    #[serde(default)]
    seen: State,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct State {
    steps: u32,
    mean: f64,
    variance: f64,
}

/// Added to $s$ in the z-score, so that constant norms have one. As in the authors' code.
const EPSILON: f64 = 1e-6;

impl Default for ZClip {
    fn default() -> Self {
        ZClip { alpha: 0.97, z: 2.5, warmup: 25, cap: Some(1.0), seen: State::default() }
    }
}

impl ZClip {
    /// The rule before its first norm, with its parameters checked.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless $0 < \alpha < 1$, $z_0 > 0$, and warm-up and cap are positive.
    pub fn started(self) -> Result<Self> {
        if !(self.alpha > 0.0 && self.alpha < 1.0) {
            return Err(Error::parameter("alpha", self.alpha, "a number between 0 and 1"));
        }
        if !(self.z > 0.0 && self.z.is_finite()) {
            return Err(Error::parameter("z", self.z, "a positive z-score"));
        }
        if self.warmup == 0 {
            return Err(Error::parameter("warmup", 0.0, "at least one norm starts the averages"));
        }
        self.cap.map_or(Ok(()), check_threshold)?;
        // An infinite cap means no cap, and most formats cannot write it.
        Ok(ZClip { cap: self.cap.filter(|c| c.is_finite()), seen: State::default(), ..self })
    }

    /// The threshold of a spike; `None` for a norm that is not a spike.
    fn spike(&self, norm: f64) -> Option<f64> {
        let std = self.seen.variance.sqrt();
        let z = (norm - self.seen.mean) / (std + EPSILON);
        (z > self.z).then(|| self.seen.mean + self.z * self.z * std / z)
    }
}

impl ThresholdRule for ZClip {
    fn threshold(&mut self, norm: f64) -> f64 {
        let cap = self.next_step().threshold;
        if !norm.is_finite() {
            return cap;
        }
        if self.seen.steps < self.warmup {
            // Plain mean and variance of the first norms, divided by their number.
            let state = &mut self.seen;
            state.steps += 1;
            let off = norm - state.mean;
            state.mean += off / f64::from(state.steps);
            state.variance += (off * (norm - state.mean) - state.variance) / f64::from(state.steps);
            return cap;
        }
        let spike = self.spike(norm);
        let kept = spike.unwrap_or(norm);
        let (alpha, state) = (self.alpha, &mut self.seen);
        state.mean = alpha * state.mean + (1.0 - alpha) * kept;
        state.variance = alpha * state.variance + (1.0 - alpha) * (kept - state.mean).powi(2);
        spike.unwrap_or(f64::INFINITY).min(cap)
    }

    /// The cap: the threshold of a spike depends on its norm.
    fn next_step(&self) -> NextStep {
        NextStep::at(self.cap.unwrap_or(f64::INFINITY))
    }

    fn describe(&self) -> String {
        match self.cap {
            Some(cap) => format!("ZClip {}, cap {cap}", self.z),
            None => format!("ZClip {}", self.z),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published procedure, line by line, with all norms in a list.
    fn by_hand(norms: &[f64], warmup: usize, cap: f64) -> Vec<f64> {
        let start = &norms[..warmup];
        let mut mean = start.iter().sum::<f64>() / warmup as f64;
        let mut var = start.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / warmup as f64;
        let mut thresholds = vec![cap; warmup];
        for &g in &norms[warmup..] {
            let std = var.sqrt();
            let z = (g - mean) / (std + 1e-6);
            let clipped = if z > 2.5 { Some(mean + (2.5 * std) / (z / 2.5)) } else { None };
            thresholds.push(clipped.map_or(cap, |c| c.min(cap)));
            let seen = clipped.unwrap_or(g);
            mean = 0.97 * mean + (1.0 - 0.97) * seen;
            var = 0.97 * var + (1.0 - 0.97) * (seen - mean).powi(2);
        }
        thresholds
    }

    #[test]
    fn it_follows_the_code_of_its_authors() {
        let norms: Vec<f64> = (0..400_u32)
            .map(|k| {
                let u = (f64::from(k) * 0.618_033_988_749_895).fract();
                if k % 37 == 36 { 5.0 + 10.0 * u } else { 0.4 + u }
            })
            .collect();
        for cap in [Some(1.0), Some(1.2), None] {
            let want = by_hand(&norms, 25, cap.unwrap_or(f64::INFINITY));
            let mut rule = ZClip { cap, ..ZClip::default() }.started().unwrap();
            let mut spikes = 0;
            for (k, (norm, want)) in norms.iter().zip(&want).enumerate() {
                let got = rule.threshold(*norm);
                assert!(got == *want || (got / want - 1.0).abs() < 1e-12, "{k}: {got}, not {want}");
                spikes += usize::from(got < cap.unwrap_or(f64::INFINITY));
            }
            assert!(cap == Some(1.0) || spikes > 5, "the comparison must have seen spikes");
        }
    }

    #[test]
    fn impossible_rules_are_refused() {
        let good = ZClip::default();
        for bad in [
            ZClip { alpha: 1.0, ..good.clone() },
            ZClip { z: 0.0, ..good.clone() },
            ZClip { warmup: 0, ..good.clone() },
            ZClip { cap: Some(-1.0), ..good.clone() },
        ] {
            assert!(bad.started().is_err());
        }
    }
}
