//! Gaussian and Laplace noise by maximum likelihood, in closed form.

use super::FittedDensity;
use super::sample::Sample;
use std::f64::consts::{SQRT_2, TAU};
use toclip::noise::{Component, Family, Gaussian, Laplace, Mixture};

/// $N(m, \sigma^2)$; `None` for a centred fit.
#[derive(Debug)]
pub(super) struct FittedGaussian {
    mean: Option<f64>,
    sigma: f64,
}

impl FittedGaussian {
    /// $\hat\sigma^2 = \frac1n \sum_i e_i^2$.
    pub(super) fn centred(sample: &Sample) -> Self {
        Self { mean: None, sigma: root_mean_square(sample, 0.0) }
    }

    /// $\hat m = \frac1n \sum_i e_i$ and $\hat\sigma^2 = \frac1n \sum_i (e_i - \hat m)^2$.
    ///
    /// The Gaussian of the theory is centred, so the dynamics get this one as a mixture of one.
    pub(super) fn with_mean(sample: &Sample) -> Self {
        let mean = sample.mean();
        Self { mean: Some(mean), sigma: root_mean_square(sample, mean) }
    }
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

impl FittedDensity for FittedGaussian {
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

/// Density $e^{-|x|/b}/2b$, $b = \sigma/\sqrt2$.
#[derive(Debug)]
pub(super) struct FittedLaplace {
    b: f64,
}

impl FittedLaplace {
    /// $\hat b = \frac1n \sum_i |e_i|$.
    pub(super) fn new(sample: &Sample) -> Self {
        let n = sample.len() as f64;
        Self { b: (sample.values.iter().map(|x| x.abs()).sum::<f64>() / n).max(sample.floor) }
    }
}

impl FittedDensity for FittedLaplace {
    fn ln_density(&self, x: f64) -> f64 {
        -x.abs() / self.b - (2.0 * self.b).ln()
    }

    fn family(&self, _: &[f64]) -> toclip::Result<Family> {
        Laplace::new(self.b * SQRT_2).map(Family::from)
    }

    fn parameters(&self) -> usize {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toclip::noise::Noise;

    #[test]
    fn gaussian() {
        let values: Vec<f64> = (0..20).map(|i| 1e9 + f64::from(i % 2)).collect();
        let sample = Sample::new(&values).unwrap();
        let fit = FittedGaussian::with_mean(&sample);
        assert_eq!((fit.mean, fit.sigma), (Some(1e9 + 0.5), 0.5));
        // The density of N(1e9 + 1/2, 1/4) at its mean is 1/(σ√(2π)).
        assert!((fit.ln_density(1e9 + 0.5) - (2.0 / TAU.sqrt()).ln()).abs() < 1e-15);
        let fit = FittedGaussian::centred(&Sample::new(&[[3.0, -4.0]; 10].concat()).unwrap());
        assert!((fit.sigma - 12.5f64.sqrt()).abs() < 1e-15);
    }

    #[test]
    fn laplace() {
        let fit = FittedLaplace::new(&Sample::new(&[[3.0, -5.0]; 10].concat()).unwrap());
        assert_eq!(fit.b, 4.0);
        assert!((fit.ln_density(-4.0) - (0.125f64.ln() - 1.0)).abs() < 1e-15);
        assert!((fit.family(&[]).unwrap().variance() - 32.0).abs() < 1e-13);
    }
}
