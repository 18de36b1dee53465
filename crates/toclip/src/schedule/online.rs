//! The proportional rule without knowing the risk.

use super::{Compensation, Control, Policy, Proportional, Session};
use crate::error::{Error, Result};
use crate::noise::Noise;
use serde::{Deserialize, Serialize};

/// How $s = \sqrt{2R+\sigma^2}$ is estimated from residuals $\rho$.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// The running average of $\rho^2$, with $1/\mu$ from the running share of unclipped samples.
    ///
    /// Needs no law of the noise, and has its tails: one outlier raises the threshold for as long
    /// as it is remembered.
    MeanSquare,
    /// The running average of *clipped* squares, $\min(\rho^2, c^2)$, compared with what the law of
    /// the noise expects, $m^{(2)}_c$ at the estimated risk.
    ///
    /// An outlier counts $c^2$ and no more. The law must be known, as for the
    /// [oracle](Proportional).
    #[default]
    ClippedSquare,
}

/// $c = \kappa\\,\hat s$ with $\hat s$ from the residuals of the run: the [`Proportional`] rule as SGD
/// has to follow it.
///
/// | parameter | meaning |
/// |---|---|
/// | `kappa`, `eta`, `noise`, `compensation` | as for [`Proportional`] |
/// | `scale` | which [average](Scale) |
/// | `memory` | how many samples the average remembers: at most a fraction of $d/\eta$, in which the risk changes |
///
/// Weights fall like $e^{-k/\text{memory}}$, after an even average at first. The first
/// twenty samples are only looked at, with $\eta = 0$.
///
/// C-SGD, full, collapsed or on data, runs it without looking at its risk. As a [`Policy`] of
/// the ODE and of C-HSGD, which have no samples, it is the oracle: what is lost is the difference.
///
/// ```
/// use std::sync::Arc;
/// use toclip::dynamics::Collapsed;
/// use toclip::ensemble::Ensemble;
/// use toclip::noise::Rademacher;
/// use toclip::schedule::{Compensation, Online, Policy, Proportional, Scale, Schedule};
/// use toclip::spectrum::{Modes, Spectrum, Start};
///
/// let modes = Modes::new(&Spectrum::isotropic(200)?, &Start::Uniform { norm: 1.0 })?;
/// let noise = Arc::new(Rademacher::from_sigma(0.8, 0.2)?);
/// let oracle =
///     Proportional::new(0.3, Schedule::constant(0.4)?, noise.clone(), Compensation::Exact)?;
/// let online = Online::new(oracle.clone(), Scale::ClippedSquare, 200.0)?;
/// let end = |policy: Arc<dyn Policy>| {
///     let sgd = Collapsed::new(&modes, noise.clone(), policy)?;
///     Ok::<_, toclip::Error>(Ensemble::new(20, 1).run(&sgd, &[15.0], None)?.risk.median[0])
/// };
/// assert!(end(Arc::new(online))? < 1.3 * end(Arc::new(oracle))?);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Online {
    oracle: Proportional,
    scale: Scale,
    memory: f64,
}

/// Samples that are looked at before the first step.
const LOOK: usize = 20;

impl Online {
    /// The rule `oracle` with its scale estimated from about `memory` samples.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a memory of less than twenty samples.
    pub fn new(oracle: Proportional, scale: Scale, memory: f64) -> Result<Self> {
        if !(memory >= LOOK as f64 && memory.is_finite()) {
            let expected = "an average must remember at least 20 samples, and not infinitely many";
            return Err(Error::parameter("memory", memory, expected));
        }
        Ok(Online { oracle, scale, memory })
    }
}

impl Policy for Online {
    fn at(&self, t: f64, r: f64) -> Control {
        self.oracle.at(t, r)
    }

    fn uses_risk(&self) -> bool {
        true
    }

    fn breakpoints(&self) -> Vec<f64> {
        self.oracle.breakpoints()
    }

    fn session(&self) -> Option<Box<dyn Session>> {
        Some(Box::new(Estimate {
            oracle: self.oracle.clone(),
            scale: self.scale,
            memory: self.memory,
            first: Vec::with_capacity(LOOK),
            seen: 0.0,
            square: 0.0,
            law: Expected::default(),
        }))
    }
}

/// The estimates of one run.
#[derive(Debug)]
struct Estimate {
    oracle: Proportional,
    scale: Scale,
    memory: f64,
    /// The residuals seen before the first step.
    first: Vec<f64>,
    seen: f64,
    /// $\hat s^2$.
    square: f64,
    law: Expected,
}

/// What is expected of a sample at $c = \kappa\hat s$.
#[derive(Debug, Clone, Copy, Default)]
struct Expected {
    /// $\mu$: by the law of the noise, or counted.
    mu: f64,
    /// $m^{(2)}_c$ at the estimated risk.
    m2: f64,
    /// $\partial m^{(2)}_c/\partial s^2$ at fixed $c$.
    slope: f64,
}

/// The slope is not taken for less: near a bump of the noise at $c$ it may vanish, and an estimate
/// that then moves slowly is better than one that jumps.
const LEAST_SLOPE: f64 = 0.1;
/// Half-width, relative to $s^2$, of the difference that stands for the slope.
const APART: f64 = 0.01;

impl Estimate {
    fn threshold(&self) -> f64 {
        self.oracle.kappa * self.square.sqrt()
    }

    /// $\mu$, $m^{(2)}_c$ and its slope by the law of the noise at the estimated risk.
    fn by_law(&self) -> Expected {
        let (noise, c) = (&*self.oracle.noise, self.threshold());
        let risk = (0.5 * (self.square - noise.second_moment())).max(0.0);
        let apart = APART * self.square;
        let (here, above) = (noise.clipped(risk, c), noise.clipped(risk + apart, c));
        let slope = (above.m2 - here.m2) / (2.0 * apart);
        Expected { mu: here.mu, m2: here.m2, slope: slope.max(LEAST_SLOPE) }
    }

    /// The first estimates, from the samples that were looked at.
    fn begin(&mut self) {
        let count = self.first.len() as f64;
        match self.scale {
            Scale::MeanSquare => {
                self.square = self.first.iter().map(|x| x * x).sum::<f64>() / count;
                let c = self.threshold();
                let open = self.first.iter().filter(|x| **x <= c).count();
                // As if two more samples had been seen, one of them unclipped: never zero.
                self.law.mu = (open as f64 + 1.0) / (count + 2.0);
            }
            Scale::ClippedSquare => {
                self.first.sort_by(f64::total_cmp);
                let risk = risk_of_median(&*self.oracle.noise, self.first[self.first.len() / 2]);
                self.square = 2.0 * risk + self.oracle.noise.second_moment();
                if self.square > 0.0 {
                    self.law = self.by_law();
                }
            }
        }
    }

    fn update(&mut self, size: f64) {
        let c = self.threshold();
        let weight = (1.0 / self.seen).max(1.0 / self.memory);
        match self.scale {
            Scale::MeanSquare => {
                let open = if size <= c { 1.0 } else { 0.0 };
                self.square += weight * (size * size - self.square);
                self.law.mu += weight * (open - self.law.mu);
                self.law.mu = self.law.mu.max(1.0 / self.memory);
            }
            Scale::ClippedSquare if self.square > 0.0 => {
                let surprise = size.min(c).powi(2) - self.law.m2;
                // There is never less than the noise, and no sample takes away half of the rest.
                let least = self.oracle.noise.second_moment().max(0.5 * self.square);
                self.square = (self.square + weight * surprise / self.law.slope).max(least);
                self.law = self.by_law();
            }
            Scale::ClippedSquare => {}
        }
    }
}

impl Session for Estimate {
    fn control(&mut self, t: f64) -> Control {
        if self.first.len() < LOOK {
            return Control { eta: 0.0, c: f64::INFINITY };
        }
        let (eta, c) = (self.oracle.eta.at(t), self.threshold());
        // Without error or noise there is nothing to clip.
        if !(c > 0.0) {
            return Control { eta, c: f64::INFINITY };
        }
        match self.oracle.compensation {
            Compensation::None => Control { eta, c },
            Compensation::Printed => Control { eta: eta * (1.0 / self.oracle.kappa).max(1.0), c },
            Compensation::Exact if self.law.mu > 0.0 => Control { eta: eta / self.law.mu, c },
            Compensation::Exact => Control { eta, c: f64::INFINITY },
        }
    }

    fn observe(&mut self, residual: f64) {
        let size = residual.abs();
        self.seen += 1.0;
        if self.first.len() < LOOK {
            self.first.push(size);
            if self.first.len() == LOOK {
                self.begin();
            }
        } else {
            self.update(size);
        }
    }
}

/// The risk at which half of the residuals are within $m$: $\mu_m(R) = 1/2$, or zero if noise alone
/// is as wide.
fn risk_of_median(noise: &dyn Noise, m: f64) -> f64 {
    // Without noise m is 0.6745 standard deviations; noise only widens.
    let (mut low, mut high) = (0.0, 1.1 * m * m);
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if noise.clipped(middle, m).mu > 0.5 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
