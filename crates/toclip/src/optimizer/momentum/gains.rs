//! What a step of C-SGD with momentum does to its buffer.

use super::Momentum;
use crate::factors::step::Step;
use crate::sim::step::BufferUpdate;

/// The momentum of a run of C-SGD; it changes once, after the first gradient.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BufferGains {
    beta: f64,
    /// The factor of the next gradient.
    gain: f64,
    /// The factor of all gradients after it.
    later: f64,
    /// Whether a step whose gradient is skipped is not made at all.
    leaves_out: bool,
}

impl BufferGains {
    /// Those at the start of a run.
    pub fn new(momentum: &Momentum, step: &Step<'_>, dim: f64) -> Self {
        let [gain, later] = momentum.gains(dim);
        let leaves_out = momentum.leaves_out(step);
        BufferGains { beta: momentum.beta(dim), gain, later, leaves_out }
    }

    /// The update of a step whose gradient, times `weight`, enters the buffer, or is `skipped`.
    pub fn update(&mut self, weight: f64, skipped: bool, rate: f64) -> BufferUpdate {
        if skipped && self.leaves_out {
            return BufferUpdate::NONE;
        }
        let update = BufferUpdate { decay: self.beta, gain: self.gain * weight, rate };
        self.gain = self.later;
        update
    }
}
