//! The right-hand side where every mode has factors of its own, and the noise of private SGD.

use crate::dynamics::mode_factors::{ModeFactors, average};
use crate::error::Result;
use crate::factors::kernel::Moments;
use crate::factors::step::Step;
use crate::spectrum::Modes;

/// $\mu_j$ and $m_{2,j}$ of the latest evaluation.
#[derive(Debug)]
pub(super) struct PerMode {
    factors: ModeFactors,
    mu: Vec<f64>,
    m2: Vec<f64>,
    /// $n$ of every mode.
    count: Vec<f64>,
    dim: f64,
}

impl PerMode {
    /// None for a radial rule.
    pub fn new(modes: &Modes, step: &Step<'_>) -> Result<Option<Self>> {
        let factors = ModeFactors::new(modes, step)?;
        Ok(factors.map(|factors| {
            let (mu, m2) = (vec![0.0; factors.len()], vec![0.0; factors.len()]);
            let count = modes.modes().iter().map(|m| m.count).collect();
            PerMode { factors, mu, m2, count, dim: modes.dim() }
        }))
    }

    /// Evaluates all factors at risk $R$ and threshold $c$.
    pub fn evaluate(&mut self, step: &Step<'_>, risk: f64, c: f64) {
        self.factors.at(step, risk, c, &mut self.mu, &mut self.m2);
    }

    /// $\dot v_j = -2\eta\mu_j\lambda_j v_j + \eta^2 n_j m_{2,j}/2d$, and the fastest rate of decay.
    pub fn slope(&self, eta: f64, lambda: &[f64], v: &[f64], slope: &mut [f64]) -> f64 {
        // No step, no noise: also where m2 is infinite.
        if eta == 0.0 {
            slope.fill(0.0);
            return 0.0;
        }
        let noise = 0.5 * eta * eta / self.dim;
        let mut fastest = 0.0_f64;
        for (i, k) in slope.iter_mut().enumerate() {
            let rate = 2.0 * eta * self.mu[i] * lambda[i];
            *k = noise * self.count[i] * self.m2[i] - rate * v[i];
            fastest = fastest.max(rate);
        }
        fastest
    }

    /// $\bar\mu$ and $\bar m_2$ of the state $v$.
    pub fn average(&self, lambda: &[f64], v: &[f64]) -> Moments {
        average(lambda, &self.count, v, &self.mu, &self.m2)
    }
}

/// $n/2$ of every mode, for the noise of private SGD; none without it.
pub(super) fn half_counts(modes: &Modes, step: &Step<'_>) -> Option<Vec<f64>> {
    step.privacy()?;
    Some(modes.modes().iter().map(|m| 0.5 * m.count).collect())
}
