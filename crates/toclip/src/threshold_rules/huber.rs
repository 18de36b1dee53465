//! Huber's threshold: a multiple of a robust scale.

use super::sliding::SlidingWindow;
use super::{NextStep, ThresholdRule};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// $c_k = \kappa\thinspace \hat s_k$, with the scale $\hat s$ from the median of the last norms,
/// the current one included.
///
/// With $N$ residual components in a batch, norms of Gaussian residuals are $s\sqrt{\chi^2_N/N}$;
/// so $\hat s = \operatorname{median} G/\sqrt{\operatorname{median}\chi^2_N/N}$, for $N = 1$ the
/// usual $1.4826 \operatorname{median} G$. Huber's $\kappa = 1.345$ costs five percent of
/// efficiency on Gaussian residuals of single samples.
///
/// ```
/// use toclip::threshold_rules::{HuberThreshold, ThresholdRule};
/// let mut rule = HuberThreshold::new(1.345, 100, 1.0)?;
/// let last = [1.0, 1.0, 50.0].map(|norm| rule.threshold(norm))[2];
/// assert!((last - 1.345 * 1.4826).abs() < 1e-3);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HuberThreshold {
    kappa: f64,
    /// $\hat s$ of a median of one.
    consistency: f64,
    norms: SlidingWindow,
}

impl HuberThreshold {
    /// $\kappa$ times the scale of the last `window` norms of batches with `components`
    /// $= N$ residual components: the batch size times the outputs, infinite if many.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless $0 < \kappa < \infty$, $N \ge 1$ and the window holds a norm.
    pub fn new(kappa: f64, window: usize, components: f64) -> Result<Self> {
        if !(kappa > 0.0 && kappa.is_finite()) {
            return Err(Error::parameter("kappa", kappa, "a positive multiple of the scale"));
        }
        if window == 0 {
            return Err(Error::parameter("window", 0.0, "at least one norm must be remembered"));
        }
        if !(components >= 1.0) {
            let expected = "a batch has at least one residual component";
            return Err(Error::parameter("components", components, expected));
        }
        let consistency = 1.0 / median_chi_square(components).sqrt();
        Ok(HuberThreshold { kappa, consistency, norms: SlidingWindow::new(window) })
    }
}

/// The median of $\chi^2_N/N$: known for $N = 1, 2$, else that of Wilson and Hilferty (1931), which
/// is within 0.2 percent.
fn median_chi_square(n: f64) -> f64 {
    if n == 1.0 {
        0.454_936_423_119_572_8
    } else if n == 2.0 {
        std::f64::consts::LN_2
    } else {
        (1.0 - 2.0 / (9.0 * n)).powi(3)
    }
}

impl ThresholdRule for HuberThreshold {
    fn threshold(&mut self, norm: f64) -> f64 {
        if norm.is_finite() {
            self.norms.add(norm);
        }
        self.next_step().threshold
    }

    fn next_step(&self) -> NextStep {
        // A median of zero is a window of gradients that vanish: nothing to clip.
        NextStep::at(match self.norms.quantile(0.5) {
            Some(median) if median > 0.0 => self.kappa * self.consistency * median,
            _ => f64::INFINITY,
        })
    }

    fn describe(&self) -> String {
        format!("Huber {}", self.kappa)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    #[test]
    fn gaussian_batches_have_the_scale_they_were_given() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for n in [1, 2, 3, 8, 100] {
            let mut rule = HuberThreshold::new(1.0, 20_000, f64::from(n)).unwrap();
            let mut scale = 0.0;
            for _ in 0..20_000 {
                let square = |_| {
                    let z: f64 = StandardNormal.sample(&mut rng);
                    9.0 * z * z
                };
                let sum: f64 = (0..n).map(square).sum();
                scale = rule.threshold((sum / f64::from(n)).sqrt());
            }
            // The median's standard error is 0.82 % of the scale at N = 1 and less than that over
            // √N beyond: four of them, false alarms below 4e-4 over the five sizes.
            let allowed = 0.033 / f64::from(n).sqrt() + 0.002;
            assert!((scale / 3.0 - 1.0).abs() < allowed, "{n}: {scale}");
        }
    }

    #[test]
    fn impossible_rules_are_refused() {
        assert!(HuberThreshold::new(0.0, 10, 1.0).is_err());
        assert!(HuberThreshold::new(1.0, 0, 1.0).is_err());
        assert!(HuberThreshold::new(1.0, 10, 0.5).is_err());
        assert_eq!(HuberThreshold::new(1.0, 10, 1.0).unwrap().threshold(0.0), f64::INFINITY);
    }
}
