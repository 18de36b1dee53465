//! The scale that thresholds are multiples of.

use serde::{Deserialize, Serialize};

/// The scale $s$ of the norms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// The running geometric mean of about the last so many norms, at least 32, without the
    /// current one.
    ///
    /// Norms drift along training, by factors of ten and more; relative to this they have a law.
    /// The logarithm tames outliers in both directions. A relative error of $\delta$ in the scale
    /// biases the factors by the order of $\delta^2$.
    Running(f64),
    /// One number for good: for norms that are known not to drift, and to compare with theory.
    Fixed(f64),
}

impl Default for Scale {
    fn default() -> Self {
        Scale::Running(200.0)
    }
}

/// Norms that are looked at before the first is counted.
const FIRST: usize = 32;

/// A norm with its inner product, waiting for a scale.
pub(super) type Seen = (f64, Option<f64>);

/// The state of the scale.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Running {
    kind: Scale,
    /// The mean of $\ln G$.
    log: f64,
    /// Norms in it.
    weight: f64,
    /// The first norms, until there are enough of them to have a scale.
    waiting: Vec<Seen>,
}

impl Running {
    pub fn new(kind: Scale) -> Self {
        let log = match kind {
            Scale::Running(_) => 0.0,
            Scale::Fixed(scale) => scale.ln(),
        };
        Running { kind, log, weight: 0.0, waiting: Vec::new() }
    }

    /// $\ln s$ for the next norm; `None` before the first norm.
    pub fn log(&self) -> Option<f64> {
        match self.kind {
            Scale::Fixed(_) => Some(self.log),
            Scale::Running(_) => (self.weight > 0.0).then_some(self.log),
        }
    }

    /// Learns a norm, and calls back with every norm that has now got its scale: $\ln G$, the inner
    /// product and $\ln s$.
    pub fn learn(
        &mut self,
        log: f64,
        inner: Option<f64>,
        mut count: impl FnMut(f64, Option<f64>, f64),
    ) {
        let Scale::Running(memory) = self.kind else {
            return count(log, inner, self.log);
        };
        if self.weight >= FIRST as f64 {
            count(log, inner, self.log);
        } else {
            self.waiting.push((log, inner));
        }
        // Even weights until the memory is full.
        self.weight = (self.weight + 1.0).min(memory);
        self.log += (log - self.log) / self.weight;
        if self.weight >= FIRST as f64 && !self.waiting.is_empty() {
            for (log, inner) in std::mem::take(&mut self.waiting) {
                count(log, inner, self.log);
            }
        }
    }

    /// Takes in the scale of another worker; norms that wait there are handed back.
    pub fn merge(&mut self, other: &Running) -> Vec<Seen> {
        let settled = other.weight - other.waiting.len() as f64;
        if matches!(self.kind, Scale::Running(_)) && settled > 0.0 {
            let both = self.weight + other.weight;
            self.log += (other.log - self.log) * other.weight / both;
            self.weight = self.weight.max(other.weight);
        }
        other.waiting.clone()
    }
}
