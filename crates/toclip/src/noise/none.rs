//! No noise: targets are exact.

use super::{Feature, Noise, spread};
use crate::factors::batch::SquaredResidual;
use crate::factors::kernel::{Moments, clipped_normal};
use rand::Rng;
use serde::{Deserialize, Serialize};

/// No noise, $\epsilon = 0$: the residual is $X = \sqrt{2R}\thinspace z$.
///
/// ```
/// use toclip::noise::{NoNoise, Noise};
/// // At R = 1/2 the residual is standard normal.
/// assert!((NoNoise.clipped(0.5, 1.0).mu - 0.6826894921370859).abs() < 1e-15);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "Raw")]
pub struct NoNoise;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {}

impl From<Raw> for NoNoise {
    fn from(_: Raw) -> Self {
        NoNoise
    }
}

impl Noise for NoNoise {
    fn describe(&self) -> String {
        "no".into()
    }

    fn sample(&self, _rng: &mut dyn Rng) -> f64 {
        0.0
    }

    fn mean(&self) -> Option<f64> {
        Some(0.0)
    }

    fn second_moment(&self) -> f64 {
        0.0
    }

    fn clipped(&self, r: f64, c: f64) -> Moments {
        if c == f64::INFINITY {
            return Moments::open(2.0 * r);
        }
        clipped_normal(0.0, spread(r), c).within(c, 2.0 * r)
    }

    fn residual_density(&self, r: f64, x: f64) -> Option<(f64, f64)> {
        Some(super::mixture::normal_density(x, 0.0, spread(r)))
    }

    fn atoms(&self) -> Vec<(f64, f64)> {
        vec![(1.0, 0.0)]
    }

    fn squared_residual(&self, r: f64) -> Option<SquaredResidual> {
        Some(SquaredResidual::scales(vec![(1.0, 2.0 * r)]))
    }

    fn is_symmetric(&self) -> bool {
        true
    }

    fn features(&self, r: f64) -> Vec<Feature> {
        vec![Feature::new(0.0, spread(r))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_error_or_noise_nothing_is_clipped() {
        assert_eq!(NoNoise.clipped(0.0, 1e-9), Moments { mu: 1.0, m2: 0.0 });
        assert_eq!(NoNoise.clipped(2.0, f64::INFINITY), Moments { mu: 1.0, m2: 4.0 });
    }
}
