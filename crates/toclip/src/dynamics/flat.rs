//! The directions in which the data do not vary, $\lambda = 0$: only the noise of private SGD moves
//! them.

use super::block::ChiSquare;
use crate::error::Result;
use crate::spectrum::Modes;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// $\sum\theta_i^2$ over the directions with $\lambda_i = 0$.
#[derive(Debug, Clone)]
pub(super) struct Flat {
    /// $\sum\theta_i^2$.
    pub square: f64,
    /// The distribution of $\chi^2(n-1)$ for $n > 1$ of them.
    rest: Option<ChiSquare>,
    any: bool,
}

impl Flat {
    pub fn new(modes: &Modes) -> Result<Self> {
        let flat = || modes.modes().iter().filter(|m| m.lambda == 0.0);
        let count: f64 = flat().map(|m| m.count).sum();
        Ok(Flat {
            square: flat().map(|m| 2.0 * m.energy).sum(),
            rest: (count > 1.0).then(|| ChiSquare::new(count - 1.0)).transpose()?,
            any: count > 0.0,
        })
    }

    /// Adds independent normal steps of this standard deviation in every direction: exact in
    /// distribution, as only the length matters.
    pub fn diffuse(&mut self, std: f64, rng: &mut impl Rng) {
        if !self.any {
            return;
        }
        let z: f64 = StandardNormal.sample(rng);
        let across = self.rest.as_ref().map_or(0.0, |rest| rest.sample(rng));
        self.square = (self.square.sqrt() + std * z).powi(2) + std * std * across;
    }
}
