//! The distribution of the features: Gaussian or another with the same covariance.

use crate::error::{Error, Result};
use crate::sim::normal::Block16;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1, StudentT};
use serde::{Deserialize, Serialize};

/// The distribution of $z_i$ in $x = \sum_i \sqrt{\lambda_i}\thinspace z_i w_i$: independent, mean
/// 0, variance 1.
///
/// The theory is for Gaussian $z$. The others have the same covariance $K$ and show where the
/// formulas stop holding: little changes while many coordinates contribute, much when a few
/// dominate or when $\Vert x\Vert $ no longer concentrates (heavy tails).
///
/// ```
/// use toclip::dynamics::Covariates;
/// let kind: Covariates = toml::from_str("kind = 'student_t'\ndf = 5.0")?;
/// assert_eq!(kind, Covariates::StudentT { df: 5.0 });
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Covariates {
    /// $N(0, 1)$.
    #[default]
    Gaussian,
    /// $\pm 1$ with probability one half each.
    Rademacher,
    /// Uniform on $\[-\sqrt3, \sqrt3\]$.
    Uniform,
    /// Density $e^{-\sqrt2 |z|}/\sqrt2$.
    Laplace,
    /// Student-t, divided by its standard deviation $\sqrt{\text{df}/(\text{df} - 2)}$.
    StudentT {
        /// Degrees of freedom, above 2 so that the variance exists.
        df: f64,
    },
}

/// A distribution that has been checked and made ready to draw from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sampler {
    Gaussian,
    Rademacher,
    Uniform,
    Laplace,
    StudentT { t: StudentT<f64>, scale: f64 },
}

impl Covariates {
    pub(super) fn sampler(self) -> Result<Sampler> {
        Ok(match self {
            Self::Gaussian => Sampler::Gaussian,
            Self::Rademacher => Sampler::Rademacher,
            Self::Uniform => Sampler::Uniform,
            Self::Laplace => Sampler::Laplace,
            Self::StudentT { df } => {
                let expected = "covariates need a variance: give finite degrees of freedom above 2";
                let refuse = || Error::parameter("df", df, expected);
                if !(df > 2.0 && df.is_finite()) {
                    return Err(refuse());
                }
                let t = StudentT::new(df).map_err(|_| refuse())?;
                Sampler::StudentT { t, scale: ((df - 2.0) / df).sqrt() }
            }
        })
    }
}

impl Sampler {
    /// Fills blocks with independent draws; not for [`Sampler::Gaussian`], whose draws are made
    /// where they are used.
    pub(super) fn fill(&self, rng: &mut Xoshiro256PlusPlus, blocks: &mut [Block16]) {
        match self {
            Self::Gaussian => {}
            Self::Rademacher => {
                for block in blocks {
                    let mut bits = rng.next_u64();
                    for z in block.first.iter_mut().chain(&mut block.second) {
                        *z = if bits & 1 == 0 { 1.0 } else { -1.0 };
                        bits >>= 1;
                    }
                }
            }
            Self::Uniform => each(blocks, || 12_f64.sqrt() * (rng.random::<f64>() - 0.5)),
            Self::Laplace => each(blocks, || {
                let size: f64 = Exp1.sample(rng);
                if rng.random() { size / 2_f64.sqrt() } else { -size / 2_f64.sqrt() }
            }),
            Self::StudentT { t, scale } => each(blocks, || scale * t.sample(rng)),
        }
    }
}

fn each(blocks: &mut [Block16], mut draw: impl FnMut() -> f64) {
    for block in blocks {
        for z in block.first.iter_mut().chain(&mut block.second) {
            *z = draw();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{Purpose, scalar_rng};

    fn draws(kind: Covariates, count: usize) -> Vec<f64> {
        let mut blocks = vec![Block16::ZERO; count / Block16::LEN];
        let mut rng = scalar_rng(1, 1, Purpose::Covariates);
        kind.sampler().unwrap().fill(&mut rng, &mut blocks);
        blocks.iter().flat_map(|b| [b.first, b.second]).flatten().collect()
    }

    #[test]
    fn moments_are_those_of_the_distribution() {
        // E z, E z^2 and E z^4 by E z^2, E z^4 and E z^8 (Student-t: 3 (df-2)/(df-4) and
        // 105 (df-2)^3/((df-4)(df-6)(df-8))); 2^20 draws, five standard errors: false alarm 1e-5.
        let cases = [
            (Covariates::Rademacher, 1.0, 1.0),
            (Covariates::Uniform, 9.0 / 5.0, 9.0),
            (Covariates::Laplace, 6.0, 2520.0),
            (Covariates::StudentT { df: 20.0 }, 3.375, 227.8125),
        ];
        for (kind, fourth, eighth) in cases {
            let z = draws(kind, 1 << 20);
            let mean = |power| z.iter().map(|z| z.powi(power)).sum::<f64>() / z.len() as f64;
            let error = |variance: f64| 5.0 * (variance / z.len() as f64).sqrt() + 1e-12;
            assert!(mean(1).abs() < error(1.0), "{kind:?}");
            assert!((mean(2) - 1.0).abs() < error(fourth - 1.0), "{kind:?}");
            assert!((mean(4) - fourth).abs() < error(eighth - fourth * fourth), "{kind:?}");
        }
    }

    #[test]
    fn coordinates_are_uncorrelated() {
        // 255 pairs of lanes a distribution, 5.5 standard deviations: false alarm below 5e-5.
        for kind in [Covariates::Rademacher, Covariates::Uniform, Covariates::Laplace] {
            let z = draws(kind, 1 << 19);
            for lag in 1..=255 {
                let sum: f64 = z.iter().zip(&z[lag..]).map(|(a, b)| a * b).sum();
                assert!(sum.abs() < 5.5 * (z.len() as f64).sqrt(), "{kind:?} {lag}: {sum}");
            }
        }
    }

    #[test]
    fn bad_degrees_of_freedom_are_refused() {
        for df in [2.0, -1.0, f64::NAN, f64::INFINITY] {
            let message = Covariates::StudentT { df }.sampler().unwrap_err().to_string();
            assert!(message.contains("above 2"), "{message}");
        }
    }
}
