//! Gaussian and Laplace noise by maximum likelihood, in closed form.

use super::Fitted;
use super::sample::Sample;
use std::f64::consts::{SQRT_2, TAU};
use toclip::noise::{Component, Gaussian, Laplace, Mixture};

/// $N(0, \sigma^2)$: $\hat\sigma^2 = \frac1n \sum_i e_i^2$.
pub(super) fn gaussian(sample: &Sample) -> Fitted {
    let sigma = root_mean_square(sample, 0.0);
    Fitted::new(1, Gaussian::new(sigma), move |x| ln_normal(x / sigma) - sigma.ln())
}

/// $N(m, \sigma^2)$: $\hat m = \frac1n \sum_i e_i$ and
/// $\hat\sigma^2 = \frac1n \sum_i (e_i - \hat m)^2$.
///
/// The Gaussian of the theory is centred, so the dynamics get this one as a mixture of one.
pub(super) fn gaussian_with_mean(sample: &Sample) -> Fitted {
    let mean = sample.mean();
    let sigma = root_mean_square(sample, mean);
    let family = Mixture::new(&[Component { weight: 1.0, mean, std: sigma }]);
    Fitted::new(2, family, move |x| ln_normal((x - mean) / sigma) - sigma.ln())
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

/// Density $e^{-|x|/b}/2b$, $b = \sigma/\sqrt2$: $\hat b = \frac1n \sum_i |e_i|$.
pub(super) fn laplace(sample: &Sample) -> Fitted {
    let n = sample.len() as f64;
    let b = (sample.values.iter().map(|x| x.abs()).sum::<f64>() / n).max(sample.floor);
    Fitted::new(1, Laplace::new(b * SQRT_2), move |x| -x.abs() / b - (2.0 * b).ln())
}

#[cfg(test)]
mod tests {
    use super::*;
    use toclip::noise::{Family, Noise};

    #[test]
    fn gaussian_moments() {
        let values: Vec<f64> = (0..20).map(|i| 1e9 + f64::from(i % 2)).collect();
        let fit = gaussian_with_mean(&Sample::new(&values).unwrap());
        let Family::GaussianMixture(mixture) = fit.family.unwrap() else { panic!("no mixture") };
        let one = mixture.components()[0];
        assert_eq!((one.mean, one.std), (1e9 + 0.5, 0.5));
        // The density of N(1e9 + 1/2, 1/4) at its mean is 1/(σ√(2π)).
        assert!(((fit.ln_density.0)(1e9 + 0.5) - (2.0 / TAU.sqrt()).ln()).abs() < 1e-15);
        let fit = gaussian(&Sample::new(&[[3.0, -4.0]; 10].concat()).unwrap());
        assert!((fit.family.unwrap().variance() - 12.5).abs() < 1e-14);
    }

    #[test]
    fn laplace_mean_size() {
        // b = 4.
        let fit = laplace(&Sample::new(&[[3.0, -5.0]; 10].concat()).unwrap());
        assert!(((fit.ln_density.0)(-4.0) - (0.125f64.ln() - 1.0)).abs() < 1e-15);
        assert!((fit.family.unwrap().variance() - 32.0).abs() < 1e-13);
    }
}
