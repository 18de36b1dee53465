//! Gaussian noise.

use super::{Feature, Noise, check_scale, short};
use crate::error::{Error, Result};
use crate::factors::batch::SquaredResidual;
use crate::factors::kernel::{Moments, clipped_normal};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// Gaussian noise, $\epsilon \sim N(0, \sigma^2)$: the residual is $X \sim N(0, 2R + \sigma^2)$.
///
/// The one family under which clipping never helps: $\mu^2/\nu \le 1$ (Theorem 5).
///
/// ```
/// use toclip::noise::{Gaussian, Noise};
/// let noise = Gaussian::new(1.0)?;
/// // Huber's constant: 1.345 standard deviations leave 95% efficiency.
/// let x = noise.clipped(0.0, 1.345);
/// assert!((x.mu * x.mu / x.m2 - 0.95).abs() < 1e-4);
/// assert!(Gaussian::new(-1.0).is_err());
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Raw")]
pub struct Gaussian {
    sigma: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    sigma: f64,
}

impl TryFrom<Raw> for Gaussian {
    type Error = Error;
    fn try_from(raw: Raw) -> Result<Self> {
        Gaussian::new(raw.sigma)
    }
}

impl Gaussian {
    /// From the standard deviation $\sigma > 0$.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless σ is positive and finite.
    pub fn new(sigma: f64) -> Result<Self> {
        Ok(Gaussian { sigma: check_scale("sigma", sigma)? })
    }

    fn residual_std(&self, r: f64) -> f64 {
        super::mixture::residual_std(r, self.sigma)
    }
}

impl Noise for Gaussian {
    fn describe(&self) -> String {
        format!("Gaussian (σ = {})", short(self.sigma))
    }

    fn sample(&self, rng: &mut dyn Rng) -> f64 {
        let z: f64 = StandardNormal.sample(rng);
        self.sigma * z
    }

    fn mean(&self) -> Option<f64> {
        Some(0.0)
    }

    fn second_moment(&self) -> f64 {
        self.sigma * self.sigma
    }

    fn clipped(&self, r: f64, c: f64) -> Moments {
        let second_moment = 2.0 * r + self.second_moment();
        if c == f64::INFINITY {
            return Moments::open(second_moment);
        }
        clipped_normal(0.0, self.residual_std(r), c).within(c, second_moment)
    }

    fn residual_density(&self, r: f64, x: f64) -> Option<(f64, f64)> {
        Some(super::mixture::normal_density(x, 0.0, self.residual_std(r)))
    }

    fn squared_residual(&self, r: f64) -> Option<SquaredResidual> {
        Some(SquaredResidual::scales(vec![(1.0, 2.0 * r + self.second_moment())]))
    }

    fn is_symmetric(&self) -> bool {
        true
    }

    fn features(&self, r: f64) -> Vec<Feature> {
        vec![Feature::new(0.0, self.residual_std(r))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The risk and the noise enter only through their sum.
        #[test]
        fn risk_and_noise_are_one(r in 0.0..10.0, sigma in 0.1..10.0, c in 0.01..30.0) {
            let apart = Gaussian { sigma }.clipped(r, c);
            let s = f64::sqrt(2.0 * r + sigma * sigma);
            let together = Gaussian { sigma: s }.clipped(0.0, c);
            prop_assert!((apart.mu / together.mu - 1.0).abs() < 1e-14);
            prop_assert!((apart.m2 / together.m2 - 1.0).abs() < 1e-14);
        }
    }
}
