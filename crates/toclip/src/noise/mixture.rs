//! Gaussian mixtures.

use super::{Feature, Noise, NoiseError};
use crate::error::{Error, Result};
use crate::factors::batch::SquaredResidual;
use crate::factors::kernel::{Moments, clipped_normal};
use crate::numerics::special::phi;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// A component $(w_j, m_j, s_j)$ of a [`Mixture`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Component {
    /// $w_j \ge 0$, the weight; weights are rescaled to add up to one.
    pub weight: f64,
    /// $m_j$, the mean; any number.
    pub mean: f64,
    /// $s_j \ge 0$, the standard deviation; zero is an atom.
    pub std: f64,
}

/// A Gaussian mixture, $\epsilon \sim \sum_j w_j N(m_j, s_j^2)$, with any means.
///
/// $$ \mu = \sum_j w_j\thinspace \mu_{N(m_j,\thinspace 2R + s_j^2)}, $$
/// likewise $m^{(2)}$. For noise that is not centred, $\sigma^2$ stands for $E\epsilon^2$ wherever
/// the theory divides by $E X^2 = 2R + E\epsilon^2$.
///
/// ```
/// use toclip::noise::{Component, Mixture, Noise};
/// let noise = Mixture::new(&[
///     Component { weight: 3.0, mean: -1.0, std: 0.5 },
///     Component { weight: 1.0, mean: 3.0, std: 0.0 },
/// ])?;
/// assert_eq!(noise.mean(), Some(0.0));
/// assert_eq!(noise.second_moment(), 0.75 * 1.25 + 0.25 * 9.0);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct Mixture {
    components: Vec<Component>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    weights: Vec<f64>,
    means: Vec<f64>,
    stds: Vec<f64>,
}

impl TryFrom<Raw> for Mixture {
    type Error = Error;
    fn try_from(raw: Raw) -> Result<Self> {
        let n = raw.weights.len();
        if raw.means.len() != n || raw.stds.len() != n {
            return Err(NoiseError::MixtureLengths {
                weights: n,
                means: raw.means.len(),
                stds: raw.stds.len(),
            }
            .into());
        }
        let parts = raw.weights.iter().zip(&raw.means).zip(&raw.stds);
        let components: Vec<_> =
            parts.map(|((&weight, &mean), &std)| Component { weight, mean, std }).collect();
        Mixture::new(&components)
    }
}

impl From<Mixture> for Raw {
    fn from(mixture: Mixture) -> Self {
        Raw {
            weights: mixture.components.iter().map(|k| k.weight).collect(),
            means: mixture.components.iter().map(|k| k.mean).collect(),
            stds: mixture.components.iter().map(|k| k.std).collect(),
        }
    }
}

impl Mixture {
    /// From at least one component; weights are rescaled to add up to one.
    ///
    /// # Errors
    /// [`NoiseError`] without a positive weight, [`Error::Parameter`] for a negative weight,
    /// a mean that is not finite or a negative standard deviation.
    pub fn new(components: &[Component]) -> Result<Self> {
        let total: f64 = components.iter().map(|k| k.weight).sum();
        for k in components {
            if !(k.weight >= 0.0 && k.weight.is_finite()) {
                return Err(Error::parameter("weight", k.weight, "weights must not be negative"));
            }
            if !(k.mean.abs() <= 1e150) {
                return Err(Error::parameter(
                    "mean",
                    k.mean,
                    "means must be finite, at most 1e150",
                ));
            }
            if !(0.0..=1e150).contains(&k.std) {
                return Err(Error::parameter("std", k.std, "stds must be finite and not negative"));
            }
        }
        if !(total > 0.0 && total.is_finite()) {
            return Err(NoiseError::NoWeight.into());
        }
        let present = components.iter().filter(|k| k.weight > 0.0);
        let rescaled = present.map(|k| Component { weight: k.weight / total, ..*k });
        Ok(Mixture { components: rescaled.collect() })
    }

    /// The components, weights adding up to one.
    pub fn components(&self) -> &[Component] {
        &self.components
    }
}

/// $\sqrt{2R + s^2}$, also where the squares leave the range of numbers.
pub(super) fn residual_std(r: f64, std: f64) -> f64 {
    let variance = 2.0 * r + std * std;
    if (1e-280..1e300).contains(&variance) { variance.sqrt() } else { super::spread(r).hypot(std) }
}

/// The density of $N(m, s^2)$ at $x$ and its derivative; none for the atom $s = 0$.
pub(super) fn normal_density(x: f64, m: f64, s: f64) -> (f64, f64) {
    if s == 0.0 {
        return (0.0, 0.0);
    }
    let z = (x - m) / s;
    let f = phi(z) / s;
    (f, -z / s * f)
}

impl Noise for Mixture {
    fn describe(&self) -> String {
        format!("Gaussian mixture ({} components)", self.components.len())
    }

    fn sample(&self, rng: &mut dyn Rng) -> f64 {
        let mut u: f64 = rng.random();
        let z: f64 = StandardNormal.sample(rng);
        // The last component takes the rounding error of the total weight.
        let last = self.components.len() - 1;
        let mut chosen = &self.components[last];
        for k in &self.components[..last] {
            if u < k.weight {
                chosen = k;
                break;
            }
            u -= k.weight;
        }
        chosen.mean + chosen.std * z
    }

    fn mean(&self) -> Option<f64> {
        Some(self.components.iter().map(|k| k.weight * k.mean).sum())
    }

    fn second_moment(&self) -> f64 {
        self.components.iter().map(|k| k.weight * (k.mean * k.mean + k.std * k.std)).sum()
    }

    fn variance(&self) -> f64 {
        let mean: f64 = self.components.iter().map(|k| k.weight * k.mean).sum();
        let about = |k: &Component| k.weight * ((k.mean - mean).powi(2) + k.std * k.std);
        self.components.iter().map(about).sum()
    }

    fn clipped(&self, r: f64, c: f64) -> Moments {
        let second_moment = 2.0 * r + self.second_moment();
        if c == f64::INFINITY {
            return Moments::open(second_moment);
        }
        let mut x = Moments::default();
        for k in &self.components {
            x.add(k.weight, clipped_normal(k.mean, residual_std(r, k.std), c));
        }
        x.within(c, second_moment)
    }

    fn residual_density(&self, r: f64, x: f64) -> Option<(f64, f64)> {
        Some(self.components.iter().fold((0.0, 0.0), |(f, df), k| {
            // X = √(2R) z − ε: the noise enters with its sign turned.
            let (g, dg) = normal_density(x, -k.mean, residual_std(r, k.std));
            (f + k.weight * g, df + k.weight * dg)
        }))
    }

    fn atoms(&self) -> Vec<(f64, f64)> {
        let points = self.components.iter().filter(|k| k.std == 0.0);
        points.map(|k| (k.weight, -k.mean)).collect()
    }

    fn squared_residual(&self, r: f64) -> Option<SquaredResidual> {
        // Below this an atom is treated as a point, with an error of this size.
        let least = 1e-6 * self.second_moment();
        let variance = |std: f64| (2.0 * r + std * std).max(least);
        let parts = self.components.iter().map(|k| (k.weight, k.mean, variance(k.std)));
        let narrow = self.components.iter().any(|k| 2.0 * r + k.std * k.std < least);
        let squared = SquaredResidual::normals(parts.collect()).exact_if(!narrow);
        let std = self.components.first()?.std;
        let v = 2.0 * r + std * std;
        // A few atoms that are narrower than this are handled exactly.
        if v < least && self.components.iter().all(|k| k.std == std) {
            return Some(squared.of_atoms(self.components.iter().map(|k| (k.weight, k.mean)), v));
        }
        Some(squared)
    }

    fn features(&self, r: f64) -> Vec<Feature> {
        self.components.iter().map(|k| Feature::new(-k.mean, residual_std(r, k.std))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Gaussian, Rademacher};

    #[test]
    fn contains_the_gaussian_and_the_rademacher_families() {
        let one = Mixture::new(&[Component { weight: 2.0, mean: 0.0, std: 0.7 }]).unwrap();
        assert_eq!(one.clipped(0.3, 0.9), Gaussian::new(0.7).unwrap().clipped(0.3, 0.9));
        let atoms = [(0.1, -3.0), (0.1, 3.0), (0.8, 0.0)];
        let atoms = atoms.map(|(weight, mean)| Component { weight, mean, std: 0.0 });
        let three = Mixture::new(&atoms).unwrap();
        let rademacher = Rademacher::new(3.0, 0.2).unwrap();
        for (r, c) in [(0.0, 1.0), (0.0, 3.0), (0.01, 2.9), (5.0, 0.1)] {
            let (x, y) = (three.clipped(r, c), rademacher.clipped(r, c));
            assert!((x.mu - y.mu).abs() < 1e-15 && (x.m2 / y.m2 - 1.0).abs() < 1e-14);
        }
    }

    #[test]
    fn refuses_invalid_mixtures() {
        assert!(Mixture::new(&[]).is_err());
        for bad in [(-0.1, 0.0, 1.0), (0.0, 0.0, 1.0), (1.0, f64::NAN, 1.0), (1.0, 0.0, -1.0)] {
            let k = Component { weight: bad.0, mean: bad.1, std: bad.2 };
            assert!(Mixture::new(&[k]).is_err());
        }
        let ragged = serde_json::from_str::<Mixture>(r#"{"weights":[1],"means":[0,1],"stds":[1]}"#);
        assert!(ragged.unwrap_err().to_string().contains("1 weights, 2 means, 1 stds"));
    }
}
