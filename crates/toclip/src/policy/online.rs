//! The proportional policy without knowing the risk.

use super::{Compensation, Control, Policy, Proportional, Session};
use crate::error::{Error, Result};
use crate::factors::step::Step;
use serde::{Deserialize, Serialize};

/// How $s = \sqrt{2R+\sigma^2}$ is estimated from residuals $\rho$.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScaleEstimate {
    /// The running average of $\rho^2$.
    ///
    /// Does not need the noise distribution, and inherits its tails: one outlier raises the
    /// threshold for as long as it is remembered.
    MeanSquare,
    /// The running average of *clipped* squares, $\min(\rho^2, c^2)$, compared with their
    /// expectation $m^{(2)}_c$ under the noise at the estimated risk.
    ///
    /// An outlier counts $c^2$ at most. The noise distribution must be known, as for the
    /// [oracle](Proportional).
    #[default]
    ClippedSquare,
}

/// $c = \kappa\thinspace \hat s$ with $\hat s$ from the residuals of the run: the [`Proportional`]
/// policy with an estimated scale.
///
/// | parameter | meaning |
/// |---|---|
/// | `kappa`, `eta`, `noise`, `compensation` | as for [`Proportional`] |
/// | `scale` | which [average](ScaleEstimate) |
/// | `memory` | how many samples the average remembers: at most a fraction of $d/\eta$, in which the risk changes |
///
/// Weights fall like $e^{-k/\text{memory}}$, after a plain average at first. The first twenty
/// samples only set the scale, with $\eta = 0$. The $\mu$ of exact compensation is the running
/// share of unclipped samples.
///
/// C-SGD (full, collapsed or on data) runs it without using the risk. For the ODE and C-HSGD, which
/// have no samples, it is the oracle; the difference is the cost of estimating.
///
/// ```
/// use std::sync::Arc;
/// use toclip::Problem;
/// use toclip::dynamics::Collapsed;
/// use toclip::ensemble::Ensemble;
/// use toclip::noise::Rademacher;
/// use toclip::policy::{Compensation, Online, Policy, Proportional, ScaleEstimate, Schedule};
/// use toclip::spectrum::{Modes, Spectrum, Start};
///
/// let modes = Modes::new(&Spectrum::isotropic(200)?, &Start::Uniform { norm: 1.0 })?;
/// let noise = Arc::new(Rademacher::from_sigma(0.8, 0.2)?);
/// let oracle =
///     Proportional::new(0.3, Schedule::constant(0.4)?, noise.clone(), Compensation::Exact)?;
/// let online = Online::new(oracle.clone(), ScaleEstimate::ClippedSquare, 200.0)?;
/// let end = |policy: Arc<dyn Policy>| {
///     let sgd = Collapsed::new(&Problem::new(modes.clone(), noise.clone(), policy)?)?;
///     Ok::<_, toclip::Error>(Ensemble::new(20, 1).run(&sgd, &[15.0], None)?.risk.median[0])
/// };
/// assert!(end(Arc::new(online))? < 1.3 * end(Arc::new(oracle))?);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Online {
    oracle: Proportional,
    scale: ScaleEstimate,
    memory: f64,
}

/// The number of samples before the first step.
const LOOK: usize = 20;

impl Online {
    /// The policy `oracle` with its scale estimated from about `memory` samples.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a memory of less than twenty samples.
    pub fn new(oracle: Proportional, scale: ScaleEstimate, memory: f64) -> Result<Self> {
        if !(memory >= LOOK as f64 && memory.is_finite()) {
            let expected = "the average must remember at least 20 samples, and a finite number";
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

    fn threshold_at(&self, r: f64) -> Option<f64> {
        self.oracle.threshold_at(r)
    }

    fn threshold_span(&self, r: f64) -> (f64, f64) {
        self.oracle.threshold_span(r)
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
            mu: 1.0,
            expected: Expected::default(),
        }))
    }
}

/// The estimates of one run.
#[derive(Debug)]
struct Estimate {
    oracle: Proportional,
    scale: ScaleEstimate,
    memory: f64,
    /// The residuals seen before the first step.
    first: Vec<f64>,
    seen: f64,
    /// $\hat s^2$.
    square: f64,
    /// $\hat\mu$, the running share of samples below $c$. It is counted rather than computed from
    /// the noise: that would be $\mu$ at an earlier risk, and as the risk falls the rate would be
    /// too large.
    mu: f64,
    expected: Expected,
}

/// The expectation of a clipped square at $c = \kappa\hat s$.
#[derive(Debug, Clone, Copy, Default)]
struct Expected {
    /// $m^{(2)}_c$ at the estimated risk.
    m2: f64,
    /// $\partial m^{(2)}_c/\partial s^2$ at fixed $c$.
    slope: f64,
}

/// The smallest slope used: near a bump of the noise at $c$ it may vanish, and an estimate that
/// moves slowly is better than one that jumps.
const LEAST_SLOPE: f64 = 0.1;
/// Half-width, relative to $s^2$, of the difference that stands for the slope.
const APART: f64 = 0.01;

impl Estimate {
    fn threshold(&self) -> f64 {
        self.oracle.kappa * self.square.sqrt()
    }

    /// $m^{(2)}_c$ and its slope under the noise at the estimated risk.
    fn expected_now(&self) -> Expected {
        let (step, c) = (&self.oracle.step, self.threshold());
        let risk = (0.5 * (self.square - step.noise().second_moment())).max(0.0);
        let apart = APART * self.square;
        let m2 = |risk| step.residual_moments(risk, c).m2;
        let (m2, above) = (m2(risk), m2(risk + apart));
        let slope = (above - m2) / (2.0 * apart);
        Expected { m2, slope: slope.max(LEAST_SLOPE) }
    }

    /// The first estimates, from the samples that were looked at.
    fn begin(&mut self) {
        let count = self.first.len() as f64;
        match self.scale {
            ScaleEstimate::MeanSquare => {
                self.square = self.first.iter().map(|x| x * x).sum::<f64>() / count;
            }
            ScaleEstimate::ClippedSquare => {
                self.first.sort_by(f64::total_cmp);
                let risk = risk_of_median(&self.oracle.step, self.first[self.first.len() / 2]);
                self.square = self.oracle.step.residual_second_moment(risk);
                if self.square > 0.0 {
                    self.expected = self.expected_now();
                }
            }
        }
        let c = self.threshold();
        let open = self.first.iter().filter(|x| **x <= c).count();
        // As if two more samples had been seen, one of them unclipped: never zero.
        self.mu = (open as f64 + 1.0) / (count + 2.0);
    }

    fn update(&mut self, size: f64) {
        let c = self.threshold();
        let weight = (1.0 / self.seen).max(1.0 / self.memory);
        let open = if size <= c { 1.0 } else { 0.0 };
        self.mu = (self.mu + weight * (open - self.mu)).max(1.0 / self.memory);
        match self.scale {
            ScaleEstimate::MeanSquare => {
                self.square += weight * (size * size - self.square);
            }
            ScaleEstimate::ClippedSquare if self.square > 0.0 => {
                let surprise = size.min(c).powi(2) - self.expected.m2;
                // Never below the noise, and no single sample halves the estimate.
                let least = self.oracle.step.noise().second_moment().max(0.5 * self.square);
                self.square = (self.square + weight * surprise / self.expected.slope).max(least);
                self.expected = self.expected_now();
            }
            ScaleEstimate::ClippedSquare => {}
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
            Compensation::Exact => Control { eta: eta / self.mu, c },
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
fn risk_of_median(step: &Step<'_>, m: f64) -> f64 {
    // Without noise m is 0.6745 standard deviations; noise only widens.
    let (mut low, mut high) = (0.0, 1.1 * m * m);
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if step.moments(middle, m).mu > 0.5 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Gaussian, Laplace, NoNoise, Noise, Rademacher, StudentT};
    use crate::policy::Schedule;
    use crate::sim::normal::Normals;
    use crate::sim::{Purpose, scalar_rng};
    use std::sync::Arc;

    fn online(
        kappa: f64,
        noise: Arc<dyn Noise>,
        how: Compensation,
        scale: ScaleEstimate,
    ) -> Online {
        let eta = Schedule::constant(0.4).unwrap();
        Online::new(Proportional::new(kappa, eta, noise, how).unwrap(), scale, 200.0).unwrap()
    }

    /// Mean and root mean square error of $c/c_{\text{true}}$, and mean of
    /// $\eta/\eta_{\text{true}}$, at a risk that stays where it is.
    fn at_rest(kappa: f64, noise: &Arc<dyn Noise>, r: f64, scale: ScaleEstimate) -> [f64; 3] {
        let policy = online(kappa, noise.clone(), Compensation::Exact, scale);
        let truth = policy.at(0.0, r);
        let mut session = policy.session().unwrap();
        let mut z = Normals::new(3, 0, Purpose::Covariates);
        let mut rng = scalar_rng(3, 0, Purpose::Noise);
        let mut block = [0.0; 8];
        let mut sums = [0.0; 3];
        let (skip, count) = (2_000, 100_000);
        for k in 0..skip + count {
            let control = session.control(0.0);
            if k >= skip {
                let off = control.c / truth.c;
                sums = [
                    sums[0] + off,
                    sums[1] + (off - 1.0).powi(2),
                    sums[2] + control.eta / truth.eta,
                ];
            }
            if k % 8 == 0 {
                z.fill(&mut block);
            }
            session.observe((2.0 * r).sqrt() * block[k % 8] - noise.sample(&mut rng));
        }
        let n = count as f64;
        [sums[0] / n, (sums[1] / n).sqrt(), sums[2] / n]
    }

    #[test]
    fn clipped_squares_are_consistent_and_shrug_off_outliers() {
        // 100 000 samples with a memory of 200: 250 independent estimates, so a mean is known to a
        // sixteenth of the root mean square.
        let noises: [(f64, Arc<dyn Noise>); 5] = [
            (1.345, Arc::new(NoNoise)),
            (1.345, Arc::new(Gaussian::new(0.8).unwrap())),
            (0.3, Arc::new(Rademacher::from_sigma(0.8, 0.2).unwrap())),
            (0.9, Arc::new(Laplace::new(0.8).unwrap())),
            (0.9, Arc::new(StudentT::from_sigma(3.0, 0.8).unwrap())),
        ];
        for (kappa, noise) in noises {
            for r in [0.02, 0.5] {
                let clipped = at_rest(kappa, &noise, r, ScaleEstimate::ClippedSquare);
                let plain = at_rest(kappa, &noise, r, ScaleEstimate::MeanSquare);
                println!("{} R = {r}: {clipped:.3?} {plain:.3?}", noise.describe());
                assert!(
                    (clipped[0] - 1.0).abs() < 0.03 && clipped[1] < 0.11,
                    "{noise:?} {clipped:?}"
                );
                // η = η₀/μ̂ is biased by the spread of μ̂: at most two percent.
                assert!((clipped[2] - 1.0).abs() < 0.03, "{noise:?} {clipped:?}");
                if noise.describe().starts_with("Student") && r < 0.1 {
                    assert!(plain[1] > 2.0 * clipped[1], "{clipped:?} {plain:?}");
                }
            }
        }
    }

    #[test]
    fn zero_residuals_are_not_clipped() {
        for scale in [ScaleEstimate::MeanSquare, ScaleEstimate::ClippedSquare] {
            let policy = online(1.0, Arc::new(NoNoise), Compensation::Printed, scale);
            let mut session = policy.session().unwrap();
            assert_eq!(session.control(0.0), Control { eta: 0.0, c: f64::INFINITY });
            (0..40).for_each(|_| session.observe(0.0));
            assert_eq!(session.control(0.0), Control { eta: 0.4, c: f64::INFINITY });
        }
    }

    #[test]
    fn a_memory_of_nothing_is_refused() {
        let eta = Schedule::constant(0.4).unwrap();
        let noise = Arc::new(Gaussian::new(1.0).unwrap());
        let oracle = Proportional::new(1.0, eta, noise, Compensation::None).unwrap();
        for memory in [0.0, 19.0, f64::NAN, f64::INFINITY] {
            assert!(Online::new(oracle.clone(), ScaleEstimate::MeanSquare, memory).is_err());
        }
    }
}
