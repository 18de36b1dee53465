//! Laplace noise by maximum likelihood.

use super::Law;
use super::sample::Sample;
use toclip::noise::{Family, Laplace};

/// Density $e^{-|x|/b}/2b$, $b = \sigma/\sqrt2$.
#[derive(Debug)]
pub(super) struct Fitted {
    b: f64,
}

/// $\hat b = \frac1n \sum_i |e_i|$.
pub(super) fn fit(sample: &Sample) -> Fitted {
    let n = sample.len() as f64;
    Fitted { b: (sample.values.iter().map(|x| x.abs()).sum::<f64>() / n).max(sample.floor) }
}

impl Law for Fitted {
    fn ln_density(&self, x: f64) -> f64 {
        -x.abs() / self.b - (2.0 * self.b).ln()
    }

    fn family(&self, _: &[f64]) -> toclip::Result<Family> {
        Laplace::new(self.b * std::f64::consts::SQRT_2).map(Family::from)
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
    fn closed_form() {
        let fit = fit(&Sample::new(&[[3.0, -5.0]; 10].concat()).unwrap());
        assert_eq!(fit.b, 4.0);
        assert!((fit.ln_density(-4.0) - (0.125f64.ln() - 1.0)).abs() < 1e-15);
        assert!((fit.family(&[]).unwrap().variance() - 32.0).abs() < 1e-13);
    }
}
