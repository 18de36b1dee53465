//! A noise together with the rule by which its samples are clipped.

use super::{Rule, SquareLaw, check_law, check_single};
use crate::error::Result;
use crate::kernel::Clipped;
use crate::noise::{Feature, Noise};
use rand::Rng;
use std::sync::Arc;

/// A noise whose samples come in batches: everywhere a noise goes, the batch goes with it.
///
/// [`clipped`](Noise::clipped) gives $\mu_B$ and $B\thinspace m^{(2)}_B = E\min(S, c^2N)/N$. In this
/// unit $\nu_B = E\min(S, c^2N)/E S$ is $m^{(2)}/E X^2$ as for a single sample, so the criteria CSC
/// and CCC, the best threshold and the schedules hold as they stand, relative to unclipped SGD with
/// the same batches. The dynamics divide by $B$ ([`Noise::rule`]).
///
/// ```
/// use std::sync::Arc;
/// use toclip::{Batched, Rule, criteria::best_threshold, noise::Rademacher};
/// let noise = Arc::new(Rademacher::from_sigma(0.8, 0.2)?);
/// let gain = |rule| Ok(best_threshold(&Batched::new(noise.clone(), rule)?, 0.1)?.ccc);
/// // What clipping gains is lost in the mean over a batch; clipping each sample keeps it.
/// assert!(gain(Rule::single())? > 2.0);
/// assert!(gain(Rule::batch(64)?)? < 1.02);
/// assert!(gain(Rule::per_sample(64)?)? > 2.0);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Batched {
    noise: Arc<dyn Noise>,
    rule: Rule,
}

impl Batched {
    /// This noise under this rule.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a noise that comes in batches already, or that does not say its
    /// [`square_law`](Noise::square_law).
    pub fn new(noise: Arc<dyn Noise>, rule: Rule) -> Result<Self> {
        check_single(&*noise)?;
        if rule.together() > 1 {
            check_law(&*noise)?;
        }
        Ok(Batched { noise, rule })
    }

    /// The noise of one sample.
    pub fn noise(&self) -> &Arc<dyn Noise> {
        &self.noise
    }
}

impl Noise for Batched {
    fn describe(&self) -> String {
        if self.rule.is_single() {
            return self.noise.describe();
        }
        format!("{}, {}", self.noise.describe(), self.rule)
    }

    fn sample(&self, rng: &mut dyn Rng) -> f64 {
        self.noise.sample(rng)
    }

    fn mean(&self) -> Option<f64> {
        self.noise.mean()
    }

    fn second_moment(&self) -> f64 {
        self.noise.second_moment()
    }

    fn variance(&self) -> f64 {
        self.noise.variance()
    }

    fn clipped(&self, r: f64, c: f64) -> Clipped {
        self.rule.per_residual(&*self.noise, r, c)
    }

    fn residual_density(&self, r: f64, x: f64) -> Option<(f64, f64)> {
        self.noise.residual_density(r, x)
    }

    /// Those of a sample, and the root mean square of a batch, about which the batches gather.
    fn features(&self, r: f64) -> Vec<Feature> {
        let mut features = self.noise.features(r);
        let n = self.rule.together() as f64;
        let second_moment = 2.0 * r + self.noise.second_moment();
        if n > 1.0 && second_moment > 0.0 && second_moment.is_finite() {
            let size = second_moment.sqrt();
            features.push(Feature::new(size, size / n.sqrt()));
        }
        features
    }

    fn square_law(&self, r: f64) -> Option<SquareLaw> {
        self.noise.square_law(r)
    }

    fn rule(&self) -> Rule {
        self.rule
    }
}
