//! Rademacher-like noise: a few samples are off by a fixed amount.

use super::{Feature, Noise, check_scale, mixture::normal_density, one_of, short, spread};
use crate::error::{Error, Result};
use crate::factors::batch::SquaredResidual;
use crate::factors::kernel::{Moments, clipped_normal};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

/// Rademacher-like noise: $\epsilon = \pm\lambda$ with probability $p/2$ each, and $0$ otherwise.
///
/// The paper's example of noise with all its moments under which clipping helps (Theorems 3
/// and 6). $\sigma^2 = p\lambda^2$, and with $s = \sqrt{2R}$
/// $$ \mu = (1-p)\thinspace \mu_{N(0,s^2)} + p\thinspace \mu_{N(\lambda,s^2)}, $$
/// likewise $m^{(2)}$.
///
/// ```
/// use toclip::noise::{Noise, Rademacher};
/// let noise = Rademacher::from_sigma(5.0, 0.2)?;
/// assert!((noise.lambda() - 11.180339887498949).abs() < 1e-14);
/// assert!((noise.variance() - 25.0).abs() < 1e-13);
/// assert!(Rademacher::new(1.0, 1.5).is_err());
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Raw")]
pub struct Rademacher {
    lambda: f64,
    p: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    lambda: Option<f64>,
    sigma: Option<f64>,
    p: f64,
}

impl TryFrom<Raw> for Rademacher {
    type Error = Error;
    fn try_from(raw: Raw) -> Result<Self> {
        let p = check_probability(raw.p)?;
        let lambda = one_of("rademacher", ("lambda", raw.lambda), raw.sigma, |s| s / p.sqrt())?;
        Rademacher::new(lambda, p)
    }
}

fn check_probability(p: f64) -> Result<f64> {
    if p > 0.0 && p <= 1.0 {
        Ok(p)
    } else {
        Err(Error::parameter("p", p, "a probability in (0, 1] (for p = 0, use family `none`)"))
    }
}

impl Rademacher {
    /// From the size $\lambda > 0$ and the probability $0 < p \le 1$ of being off.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a λ or p outside these ranges.
    pub fn new(lambda: f64, p: f64) -> Result<Self> {
        Ok(Rademacher { lambda: check_scale("lambda", lambda)?, p: check_probability(p)? })
    }

    /// From the standard deviation $\sigma$ and $p$: $\lambda = \sigma/\sqrt{p}$.
    ///
    /// # Errors
    /// As [`Rademacher::new`].
    pub fn from_sigma(sigma: f64, p: f64) -> Result<Self> {
        Rademacher::new(check_scale("sigma", sigma)? / check_probability(p)?.sqrt(), p)
    }

    /// $\lambda$, the size of the noise where there is any.
    pub fn lambda(&self) -> f64 {
        self.lambda
    }
}

impl Rademacher {
    /// Weights and places of the three values.
    fn parts(&self) -> [(f64, f64); 3] {
        [(1.0 - self.p, 0.0), (0.5 * self.p, self.lambda), (0.5 * self.p, -self.lambda)]
    }
}

impl Noise for Rademacher {
    fn describe(&self) -> String {
        format!("Rademacher-like (λ = {}, p = {})", short(self.lambda), short(self.p))
    }

    fn sample(&self, rng: &mut dyn Rng) -> f64 {
        let u: f64 = rng.random();
        if u < 0.5 * self.p {
            -self.lambda
        } else if u < self.p {
            self.lambda
        } else {
            0.0
        }
    }

    fn mean(&self) -> Option<f64> {
        Some(0.0)
    }

    fn second_moment(&self) -> f64 {
        self.p * self.lambda * self.lambda
    }

    fn clipped(&self, r: f64, c: f64) -> Moments {
        let second_moment = 2.0 * r + self.second_moment();
        if c == f64::INFINITY {
            return Moments::open(second_moment);
        }
        let s = spread(r);
        let mut x = Moments::default();
        x.add(1.0 - self.p, clipped_normal(0.0, s, c));
        x.add(self.p, clipped_normal(self.lambda, s, c));
        x.within(c, second_moment)
    }

    fn residual_density(&self, r: f64, x: f64) -> Option<(f64, f64)> {
        let s = spread(r);
        Some(self.parts().iter().fold((0.0, 0.0), |(f, df), &(w, m)| {
            let (g, dg) = normal_density(x, m, s);
            (f + w * g, df + w * dg)
        }))
    }

    fn atoms(&self) -> Vec<(f64, f64)> {
        self.parts().to_vec()
    }

    fn squared_residual(&self, r: f64) -> Option<SquaredResidual> {
        Some(SquaredResidual::pair(self.lambda, self.p, 2.0 * r))
    }

    fn is_symmetric(&self) -> bool {
        true
    }

    fn features(&self, r: f64) -> Vec<Feature> {
        let s = spread(r);
        [0.0, self.lambda, -self.lambda].map(|at| Feature::new(at, s)).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_atom_on_the_threshold_is_not_clipped() {
        let noise = Rademacher::new(2.0, 0.25).unwrap();
        assert_eq!(noise.clipped(0.0, 2.0), Moments { mu: 1.0, m2: 1.0 });
        assert_eq!(noise.clipped(0.0, 1.9), Moments { mu: 0.75, m2: 0.25 * 1.9 * 1.9 });
    }

    #[test]
    fn sigma_and_lambda_are_two_names_for_one_noise() {
        let json = r#"{"sigma": 0.8, "p": 0.2}"#;
        let noise: Rademacher = serde_json::from_str(json).unwrap();
        assert_eq!(noise, Rademacher::from_sigma(0.8, 0.2).unwrap());
        let both = serde_json::from_str::<Rademacher>(r#"{"sigma": 1, "lambda": 1, "p": 0.2}"#);
        assert!(both.unwrap_err().to_string().contains("not both"));
    }
}
