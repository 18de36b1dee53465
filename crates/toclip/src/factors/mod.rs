//! The reduction factors $\mu$ and $\nu$, and the two criteria CSC and CCC.

pub(crate) mod batch;
pub(crate) mod combination;
pub(crate) mod information;
pub(crate) mod kernel;
mod part;
pub(crate) mod step;
pub(crate) mod table;

use crate::error::{Error, Result};
use crate::factors::step::Step;
use crate::parallel::map_short;
use serde::Serialize;

/// The reduction factors at a risk $R$ and a threshold $c$ (paper, equation 7).
///
/// With $X = \sqrt{2R}\thinspace z - \epsilon$ the residual of one sample,
/// $$ \mu_c(R) = P(|X| \le c), \qquad m^{(2)}_c(R) = E\[\min(X^2, c^2)\], \qquad
/// \nu_c(R) = \frac{m^{(2)}_c(R)}{2R + E\epsilon^2}. $$
/// Clipping multiplies the descent of SGD by $\mu$ and its variance by $\nu$.
///
/// ```
/// use toclip::{Factors, noise::Rademacher};
/// // Figure 2b of the paper: R = 3, σ = 5, p = 0.2, near the best threshold.
/// let noise = Rademacher::from_sigma(5.0, 0.2)?;
/// let at = Factors::new(&noise, 3.0, 2.0)?;
/// assert!((at.ccc()? - 2.5).abs() < 0.05);
/// // CCC > 1: at equal descent, that is with the rate raised to η/μ, clipping has less noise.
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Factors {
    /// $R$, the risk.
    pub r: f64,
    /// $c$, the threshold; infinite for no clipping.
    pub c: f64,
    /// $\mu_c(R)$, the descent reduction factor.
    pub mu: f64,
    /// $m^{(2)}_c(R)$, the mean square of the clipped residual. For a batch it is that of the mean
    /// of $B$ samples, so about $1/B$ of that of one.
    pub m2: f64,
    /// $E X^2 = 2R + E\epsilon^2$, twice the population risk; infinite for heavy tails. For a
    /// batch $E X^2/B$: what $m^{(2)}$ is without clipping.
    pub second_moment: f64,
}

impl Factors {
    /// $\mu$ and $m^{(2)}$ for any risk $R \ge 0$ and threshold $0 < c \le \infty$.
    ///
    /// # Errors
    /// [`Error::Parameter`] for another $R$ or $c$, also for one that is not between $10^{-100}$ and
    /// $10^{100}$ where factors are integrals: of batches, and of rules other than clipping;
    /// [`StepError`](crate::StepError) for a batch whose integrals do not converge.
    ///
    /// A batch has $\nu_B = E\min(S, c^2B)/E S$, and its CSC and CCC compare with unclipped SGD on the
    /// same batches:
    ///
    /// ```
    /// use toclip::{Batch, Factors, Step, noise::Gaussian};
    /// let noise = Gaussian::new(0.8)?;
    /// let step = Step::new(&noise).with_batch(Batch::mean(32)?)?;
    /// let at = Factors::new(step, 0.18, 0.5)?; // 2R + σ² = 1
    /// // Every batch is clipped, to half its length, so μ is near 1/2.
    /// assert!((at.mu - 0.496).abs() < 1e-3 && (at.nu()? - 0.25).abs() < 1e-5);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn new<'a>(step: impl Into<Step<'a>>, r: f64, c: f64) -> Result<Self> {
        Self::of(&step.into(), r, c)
    }

    fn of(step: &Step<'_>, r: f64, c: f64) -> Result<Self> {
        check_risk(r)?;
        check_threshold(c)?;
        step.check_radial()?;
        step.check_sizes(r, c)?;
        let x = step.moments(r, c);
        step.check_defined(r, c, x)?;
        Ok(Factors { r, c, mu: x.mu, m2: x.m2, second_moment: step.second_moment(r) })
    }

    /// The factors at many points $(R, c)$, in their order, on all cores.
    ///
    /// # Errors
    /// As [`Factors::new`], for the first point that is not allowed.
    ///
    /// ```
    /// use toclip::{Factors, noise::Gaussian};
    /// let noise = Gaussian::new(1.0)?;
    /// let curve: Vec<_> = (1..=100).map(|k| (0.5, 0.05 * f64::from(k))).collect();
    /// let factors = Factors::at_points(&noise, &curve)?;
    /// assert!(factors.windows(2).all(|w| w[0].mu < w[1].mu));
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn at_points<'a>(step: impl Into<Step<'a>>, points: &[(f64, f64)]) -> Result<Vec<Self>> {
        let step = step.into();
        map_short(points, |&(r, c)| Factors::of(&step, r, c))
    }

    /// $\nu_c(R) = m^{(2)}/(2R + E\epsilon^2)$, the variance reduction factor.
    ///
    /// Without noise or error there is nothing to reduce, and $\nu = 1$, its limit.
    ///
    /// # Errors
    /// [`Error::InfiniteVariance`] where $E\epsilon^2 = \infty$.
    pub fn nu(&self) -> Result<f64> {
        if self.second_moment.is_infinite() {
            return Err(Error::InfiniteVariance);
        }
        if self.second_moment == 0.0 {
            return Ok(1.0);
        }
        Ok(self.m2 / self.second_moment)
    }

    /// CSC $= \mu/\nu$: the factor by which clipping raises the largest stable learning rate.
    ///
    /// # Errors
    /// [`Error::InfiniteVariance`] where $E\epsilon^2 = \infty$.
    pub fn csc(&self) -> Result<f64> {
        let nu = self.nu()?;
        if nu >= UNDERFLOW {
            return Ok(self.mu / nu);
        }
        let (root, share) = self.apart();
        Ok(if self.mu == 0.0 { 0.0 } else { self.mu * root * root * share })
    }

    /// CCC $= \mu^2/\nu$. Above one, clipping beats unclipped SGD at equal descent: with the rate
    /// raised from $\eta$ to $\eta/\mu$ it descends as fast, with the variance divided by CCC.
    ///
    /// In statistics it is the efficiency of Huber's M-estimator relative to the mean.
    ///
    /// Where $\mu \le 0$, as [skipping](crate::Rule::Skip) can have it, steps lead away from the
    /// solution on average and no learning rate is stable: CCC is zero, CSC is not positive, and
    /// [`stability_limits`](crate::criteria::stability_limits) are zero.
    ///
    /// ```
    /// use toclip::{Factors, Rule, Step, criteria::best_threshold, noise::Rademacher};
    /// let noise = Rademacher::new(1.0, 0.3)?;
    /// let skip = Step::new(&noise).with_rule(Rule::Skip)?;
    /// // With the threshold among the outliers, skipping goes the wrong way.
    /// let at = Factors::new(&skip, 0.001, 1.0)?;
    /// assert!(at.mu < 0.0 && at.csc()? < 0.0 && at.ccc()? == 0.0);
    /// assert!(best_threshold(&skip, 0.001)?.mu > 0.0);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InfiniteVariance`] where $E\epsilon^2 = \infty$.
    pub fn ccc(&self) -> Result<f64> {
        let nu = self.nu()?;
        if self.mu <= 0.0 {
            return Ok(0.0);
        }
        if nu >= UNDERFLOW {
            return Ok(self.mu * (self.mu / nu));
        }
        let (root, share) = self.apart();
        Ok((self.mu * root).powi(2) * share)
    }

    /// $1/\nu = (\sqrt{E X^2}/c)^2 \cdot c^2/m^{(2)}$ taken apart, for thresholds so small that
    /// their square underflows: with $\mu$ between the factors only a true overflow is infinite.
    ///
    /// A step may be without noise although the threshold is not that small: skipping all outliers at
    /// $R = 0$ leaves none. Then $1/\nu$ is infinite.
    fn apart(&self) -> (f64, f64) {
        let share = if self.m2 > 0.0 {
            (self.c * (self.c / self.m2)).max(1.0)
        } else if self.c * self.c >= UNDERFLOW {
            f64::INFINITY
        } else {
            1.0
        };
        (self.second_moment.sqrt() / self.c, share)
    }
}

/// Below this, $\nu$ has lost digits or is zero.
const UNDERFLOW: f64 = f64::MIN_POSITIVE / f64::EPSILON;

/// Twice a larger risk could overflow with the noise added.
pub(crate) const LARGEST_RISK: f64 = 1e300;

pub(crate) fn check_risk(r: f64) -> Result<()> {
    if (0.0..=LARGEST_RISK).contains(&r) {
        Ok(())
    } else {
        Err(Error::parameter("R", r, "a risk must be from 0 to 1e300"))
    }
}

pub(crate) fn check_threshold(c: f64) -> Result<()> {
    if c > 0.0 {
        Ok(())
    } else {
        Err(Error::parameter("c", c, "a threshold must be positive; infinity means no clipping"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factors::batch::Batch;
    use crate::noise::{Gaussian, Rademacher};
    use crate::rule::Rule;

    #[test]
    fn a_step_without_noise_has_no_limit() {
        // At R = 0 the outliers are skipped and all else is zero.
        let noise = Rademacher::from_sigma(1.0, 0.2).unwrap();
        for batch in [1, 4] {
            let step = Step::new(&noise).with_rule(Rule::Skip).unwrap();
            let step = step.with_batch(Batch::mean(batch).unwrap()).unwrap();
            let at = Factors::new(&step, 0.0, 1.0).unwrap();
            assert!(at.mu > 0.0 && at.m2 == 0.0, "{at:?}");
            assert_eq!((at.csc().unwrap(), at.ccc().unwrap()), (f64::INFINITY, f64::INFINITY));
        }
    }

    #[test]
    fn risks_and_thresholds_too_large_for_integrals_are_refused() {
        let noise = Rademacher::new(1.0, 0.2).unwrap();
        let batch = Step::new(&noise).with_batch(Batch::mean(4).unwrap()).unwrap();
        let skip = Step::new(&noise).with_rule(Rule::Skip).unwrap();
        for step in [batch, skip] {
            for (r, c) in [(1e-300, 1.0), (1e300, 1.0), (0.0, 1e-300), (0.1, 1e160)] {
                let refused = Factors::new(&step, r, c).unwrap_err().to_string();
                assert!(refused.contains("from 1e-100 to 1e100"), "{refused}");
                assert!(refused.len() < 200, "{refused}");
            }
            assert!(Factors::new(&step, 0.0, f64::INFINITY).is_ok());
        }
    }

    #[test]
    fn criteria_survive_thresholds_whose_square_underflows() {
        let at = Factors::new(&Gaussian::new(1.0).unwrap(), 0.0, 1e-200).unwrap();
        assert!((at.csc().unwrap() / 7.978845608028654e199 - 1.0).abs() < 1e-12);
        assert!((at.ccc().unwrap() / (2.0 / std::f64::consts::PI) - 1.0).abs() < 1e-12);
        let far = Factors::new(&Rademacher::new(1e150, 0.5).unwrap(), 0.0, 1.0).unwrap();
        assert!((far.ccc().unwrap() / 2.5e299 - 1.0).abs() < 1e-12, "{:?}", far.ccc());
    }
}
