//! Gaussian noise by maximum likelihood.

use super::Law;
use super::sample::Sample;
use std::f64::consts::TAU;
use toclip::noise::{Component, Family, Gaussian, Mixture};

/// $N(m, \sigma^2)$; the centred fit has no mean to it.
#[derive(Debug)]
pub(super) struct Fitted {
    mean: Option<f64>,
    sigma: f64,
}

/// $\hat\sigma^2 = \frac1n \sum_i e_i^2$.
pub(super) fn centred(sample: &Sample) -> Fitted {
    Fitted { mean: None, sigma: root_mean_square(sample, 0.0) }
}

/// $\hat m = \frac1n \sum_i e_i$ and $\hat\sigma^2 = \frac1n \sum_i (e_i - \hat m)^2$.
///
/// The theory's Gaussian is centred, so this one goes into the dynamics as a mixture of one.
pub(super) fn with_mean(sample: &Sample) -> Fitted {
    let n = sample.len() as f64;
    // About the median, so that a large offset costs no digits.
    let mean = sample.median + sample.values.iter().map(|x| x - sample.median).sum::<f64>() / n;
    Fitted { mean: Some(mean), sigma: root_mean_square(sample, mean) }
}

fn root_mean_square(sample: &Sample, mean: f64) -> f64 {
    let n = sample.len() as f64;
    let square: f64 = sample.values.iter().map(|x| (x - mean) * (x - mean)).sum();
    (square / n).sqrt().max(sample.floor)
}

/// $\ln$ of the density of $N(0, 1)$ at $z$.
pub(super) fn ln_normal(z: f64) -> f64 {
    -0.5 * (z * z + TAU.ln())
}

impl Law for Fitted {
    fn ln_density(&self, x: f64) -> f64 {
        ln_normal((x - self.mean.unwrap_or(0.0)) / self.sigma) - self.sigma.ln()
    }

    fn family(&self, _: &[f64]) -> toclip::Result<Family> {
        match self.mean {
            None => Gaussian::new(self.sigma).map(Family::from),
            Some(mean) => {
                let one = Component { weight: 1.0, mean, std: self.sigma };
                Mixture::new(&[one]).map(Family::from)
            }
        }
    }

    fn parameters(&self) -> usize {
        1 + usize::from(self.mean.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms() {
        let values: Vec<f64> = (0..20).map(|i| 1e9 + f64::from(i % 2)).collect();
        let sample = Sample::new(&values).unwrap();
        let fit = with_mean(&sample);
        assert_eq!((fit.mean, fit.sigma), (Some(1e9 + 0.5), 0.5));
        // The density of N(1e9 + 1/2, 1/4) at its mean is 1/(σ√(2π)).
        assert!((fit.ln_density(1e9 + 0.5) - (2.0 / TAU.sqrt()).ln()).abs() < 1e-15);
        let fit = centred(&Sample::new(&[[3.0, -4.0]; 10].concat()).unwrap());
        assert!((fit.sigma - 12.5f64.sqrt()).abs() < 1e-15);
    }
}
