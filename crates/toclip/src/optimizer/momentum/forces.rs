//! The forces on buffer and weights at one time.

use super::Momentum;
use crate::factors::kernel::Moments;
use crate::factors::step::Step;
use crate::policy::Control;

/// The coefficients of the system, common to all modes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Forces {
    /// $\eta p$: how fast the weights follow the buffer.
    pub follow: f64,
    /// $\delta\mu$: how fast the buffer learns, times $\lambda$.
    pub learn: f64,
    /// $\delta p$: how fast it forgets.
    pub forget: f64,
    /// $\delta^2 m^{(2)}$: how fast noise enters it, times $\lambda n/d$.
    pub noise: f64,
}

impl Forces {
    /// $\eta/\delta$, the distance that the weights move for a unit of the buffer; zero where no
    /// step is made.
    pub fn lag(&self) -> f64 {
        if self.forget > 0.0 { self.follow / self.forget } else { 0.0 }
    }

    pub fn is_finite(&self) -> bool {
        (self.follow + self.learn + self.forget + self.noise).is_finite()
    }
}

/// A momentum in a given dimension with a given step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buffer {
    pub delta: f64,
    /// The learning rate of plain SGD that moves as far, over that of the policy.
    rate_factor: f64,
    leaves_out: bool,
    /// The weights with which the first gradient and the others enter the buffer, in the unit of the
    /// average.
    gains: [f64; 2],
}

/// The start of the buffer where the first gradient enters it with a larger weight than the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstGradient {
    /// $b$ is this times $\lambda a$.
    pub b: f64,
    /// $y$ is this times $\lambda n$.
    pub y: f64,
}

impl Buffer {
    pub fn new(momentum: &Momentum, step: &Step<'_>, dim: f64) -> Self {
        let delta = momentum.delta(dim);
        let [first, other] = momentum.gains(dim);
        Buffer {
            delta,
            rate_factor: momentum.rate_factor(dim),
            leaves_out: momentum.leaves_out(step),
            gains: [delta / dim * (first / other), delta / dim],
        }
    }

    pub fn forces(&self, step: &Step<'_>, risk: f64, control: Control, x: Moments) -> Forces {
        let made = if self.leaves_out { step.made(risk, control.c) } else { 1.0 };
        Forces {
            follow: self.rate_factor * control.eta * made,
            learn: self.delta * x.mu,
            forget: self.delta * made,
            noise: self.delta * self.delta * x.m2,
        }
    }

    /// The start of the buffer: not empty where the first gradient is not dampened.
    pub fn head(&self, at_start: &Forces) -> FirstGradient {
        let [first, other] = self.gains;
        if first == other || at_start.forget == 0.0 {
            return FirstGradient { b: 0.0, y: 0.0 };
        }
        // Given that the step is made.
        let mu = at_start.learn / at_start.forget;
        let m2 = at_start.noise / (self.delta * at_start.forget);
        FirstGradient { b: (first - other) * mu, y: (first * first - other * other) * m2 }
    }
}
