//! What a monitor is told.

use super::blocks::{Memory, SHORTEST_WINDOW};
use super::scale::Scale;
use crate::error::{Error, Result};
use crate::factors::check_threshold;
use serde::{Deserialize, Serialize};

/// What a [`Monitor`](super::Monitor) is told.
///
/// | field | default | meaning |
/// |---|---|---|
/// | `components` | `None`: very many | $N$, residual components behind one norm: batch size × outputs |
/// | `memory` | all steps | which steps are remembered |
/// | `scale` | running, 200 norms | what thresholds are multiples of |
/// | `watched` | `None` | the threshold in force, as a number |
/// | `confidence` | 0.95 | of every interval, and of the choice |
/// | `margin` | 0.10 | the gain that norms alone must show to be evidence |
///
/// ```
/// use toclip::monitor::{Monitor, Settings};
/// let monitor = Monitor::new(Settings { components: Some(32.0), ..Settings::default() })?;
/// assert!(Monitor::new(Settings { confidence: 1.5, ..Settings::default() }).is_err());
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// $N = B\cdot C$: the samples of a batch times the outputs of the model; 1 for single samples
    /// of one output. `None` stands for the limit $N \to \infty$: at $N = 100$ it makes $\mu$ too
    /// large by at most one percent.
    pub components: Option<f64>,
    /// Which steps are remembered.
    pub memory: Memory,
    /// What thresholds are multiples of.
    pub scale: Scale,
    /// The threshold in force.
    pub watched: Option<f64>,
    /// The confidence of every interval.
    pub confidence: f64,
    /// The gain, as a share, that norms alone must show to count as evidence.
    ///
    /// Norms say nothing about how well a batch's gradient points downhill, and in networks large
    /// ones carry more signal: measured at fixed weights, CCC was 0.94 where norms gave 1.07
    /// (ViT-S, batches of 8), and 1.006 where they gave 1.05 (batches of 128).
    pub margin: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            components: None,
            memory: Memory::All,
            scale: Scale::default(),
            watched: None,
            confidence: 0.95,
            margin: 0.10,
        }
    }
}

impl Settings {
    pub(super) fn check(&self) -> Result<()> {
        if let Some(n) = self.components
            && !(n >= 1.0)
        {
            return Err(Error::parameter("components", n, "a batch has at least one component"));
        }
        if let Memory::Last(window) = self.memory
            && window < SHORTEST_WINDOW
        {
            let expected = "a window must hold at least 512 steps";
            return Err(Error::parameter("memory", window as f64, expected));
        }
        match self.scale {
            Scale::Running(memory) if !(memory >= 32.0 && memory.is_finite()) => {
                let expected = "a running scale must remember at least 32 norms, and not all";
                return Err(Error::parameter("scale", memory, expected));
            }
            Scale::Fixed(scale) if !(scale > 0.0 && scale.is_finite()) => {
                return Err(Error::parameter("scale", scale, "a fixed scale must be positive"));
            }
            _ => {}
        }
        if let Some(threshold) = self.watched {
            check_threshold(threshold)?;
        }
        if !(0.5..1.0).contains(&self.confidence) {
            return Err(Error::parameter("confidence", self.confidence, "from 0.5 to below 1"));
        }
        if !(self.margin >= 0.0 && self.margin.is_finite()) {
            return Err(Error::parameter("margin", self.margin, "a gain that is not negative"));
        }
        Ok(())
    }

    /// $1 - 1/N$.
    pub(super) fn kept(&self) -> f64 {
        1.0 - self.components.map_or(0.0, f64::recip)
    }
}
