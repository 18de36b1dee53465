//! How close $\mu$ and $\nu$ are to their simple bounds.

use crate::error::{Error, Result};
use crate::factors::step::Step;
use crate::factors::{Factors, check_risk, check_threshold};
use crate::numerics::maximise::{log_grid, maximise_on};
use serde::Serialize;

/// The smallest $\[\kappa_l, \kappa_u\]$ for which, over a range of risks and thresholds,
/// $$ \kappa_l \min(1, y) \le \mu_c(R) \le \kappa_u \min(1, y), \qquad
/// \kappa_l \min(1, y^2) \le \nu_c(R) \le \kappa_u \min(1, y^2), \qquad
/// y = \frac{c}{\sqrt{2R+\sigma^2}} $$
/// (paper, equation 8). They bound CCC by $\kappa_l^2/\kappa_u \le \mu^2/\nu \le
/// \kappa_u^2/\kappa_l$.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct KappaBounds {
    /// The range of $\mu/\min(1, y)$.
    pub mu: (f64, f64),
    /// The range of $\nu/\min(1, y^2)$.
    pub nu: (f64, f64),
}

impl KappaBounds {
    /// $\kappa_l$, the one constant for both.
    pub fn lower(&self) -> f64 {
        self.mu.0.min(self.nu.0)
    }

    /// $\kappa_u$, the one constant for both.
    pub fn upper(&self) -> f64 {
        self.mu.1.max(self.nu.1)
    }
}

/// The smallest $\[\kappa_l, \kappa_u\]$ over $R \in \[r_0, r_1\]$ and $c \in \[c_0, c_1\]$.
///
/// For Rademacher-like noise they are not bounded over all $R$ and $c$ (the theorem needs a
/// density): hence a range, which must be given. The extremes are found on a grid of both, with the
/// corner $c = \sqrt{2R+\sigma^2}$ always on it, and refined in $c$ and $R$ in turn.
///
/// # Errors
/// [`Error::Parameter`] or [`Error::EmptyRange`] for an impossible range, [`Error::InfiniteVariance`] where $\sigma =
/// \infty$.
///
/// ```
/// use toclip::{criteria::kappa_bounds, noise::Gaussian};
/// let kappa = kappa_bounds(&Gaussian::new(1.0)?, (0.0, 10.0), (1e-3, 1e3))?;
/// // Worst where c is one standard deviation: P(|z| ≤ 1).
/// assert!((kappa.mu.0 - 0.6826894921370859).abs() < 1e-9);
/// assert!((kappa.nu.0 - 0.5160585509617129).abs() < 1e-9 && kappa.upper() <= 1.0 + 1e-12);
/// # Ok::<(), toclip::Error>(())
/// ```
pub fn kappa_bounds<'a>(
    step: impl Into<Step<'a>>,
    risks: (f64, f64),
    thresholds: (f64, f64),
) -> Result<KappaBounds> {
    let step = step.into();
    check_risk(risks.0)?;
    check_risk(risks.1)?;
    check_threshold(thresholds.0)?;
    check_threshold(thresholds.1)?;
    if risks.0 > risks.1 || thresholds.0 > thresholds.1 || thresholds.1.is_infinite() {
        return Err(Error::EmptyRange { what: "kappa_bounds" });
    }
    Factors::new(&step, risks.0, thresholds.0)?.nu()?;
    let search = Search { step, risks, thresholds };
    let mu = |sign: f64| sign * search.maximum(|r, c| sign * search.mu(r, c));
    let nu = |sign: f64| sign * search.maximum(|r, c| sign * search.nu(r, c));
    Ok(KappaBounds { mu: (mu(-1.0), mu(1.0)), nu: (nu(-1.0), nu(1.0)) })
}

struct Search<'a> {
    step: Step<'a>,
    risks: (f64, f64),
    thresholds: (f64, f64),
}

impl Search<'_> {
    /// $\mu/\min(1, y)$.
    fn mu(&self, r: f64, c: f64) -> f64 {
        let y = c / (self.step.residual_second_moment(r)).sqrt();
        self.step.residual_moments(r, c).mu / y.min(1.0)
    }

    /// $\nu/\min(1, y^2)$.
    fn nu(&self, r: f64, c: f64) -> f64 {
        let second_moment = self.step.residual_second_moment(r);
        if second_moment == 0.0 {
            return 1.0;
        }
        self.step.residual_moments(r, c).m2 / (c * c).min(second_moment)
    }

    fn risk_grid(&self) -> Vec<f64> {
        let (low, high) = self.risks;
        if high == 0.0 {
            return vec![0.0];
        }
        // From zero, ten orders below the top: nothing new happens further down.
        let from = if low > 0.0 { low } else { 1e-10 * high };
        let mut grid = log_grid(from, high, 6.0);
        if low == 0.0 {
            grid.insert(0, 0.0);
        }
        grid
    }

    fn threshold_grid(&self, r: f64) -> Vec<f64> {
        let (low, high) = self.thresholds;
        let mut grid = log_grid(low, high, 12.0);
        grid.push((self.step.residual_second_moment(r)).sqrt());
        for f in self.step.features(r) {
            grid.extend([-3.0, -1.0, 0.0, 1.0, 3.0].map(|k| f.at.abs() + k * f.width));
        }
        grid.retain(|c| (low..=high).contains(c));
        grid.sort_by(f64::total_cmp);
        grid.dedup();
        grid
    }

    fn maximum(&self, f: impl Fn(f64, f64) -> f64) -> f64 {
        let mut best = (0.0, 0.0, f64::NEG_INFINITY);
        let risks = self.risk_grid();
        for &r in &risks {
            let (c, value) = maximise_on(&self.threshold_grid(r), |c| f(r, c));
            if value > best.2 {
                best = (r, c, value);
            }
        }
        // Climb in one coordinate, then the other.
        for _ in 0..6 {
            let (r, c, value) = best;
            let near: Vec<f64> = [0.5, 0.7, 1.0, 1.4, 2.0]
                .iter()
                .map(|k| k * r)
                .filter(|r| (self.risks.0..=self.risks.1).contains(r) && *r > 0.0)
                .collect();
            let along_r =
                if near.is_empty() { (r, value) } else { maximise_on(&near, |r| f(r, c)) };
            if along_r.1 > best.2 {
                best = (along_r.0, c, along_r.1);
            }
            let along_c = maximise_on(&self.threshold_grid(best.0), |c| f(best.0, c));
            if along_c.1 > best.2 {
                best = (best.0, along_c.0, along_c.1);
            }
            if best.2 - value <= 1e-13 * value.abs() {
                break;
            }
        }
        best.2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Laplace, Rademacher, StudentT};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn no_point_of_the_range_lies_outside(log_r in -3.0..1.0f64, log_c in -2.0..1.5f64) {
            let (r, c) = (10f64.powf(log_r), 10f64.powf(log_c));
            let noise = Laplace::new(1.0).unwrap();
            let kappa = bounds_of_laplace();
            let at = Factors::new(&noise, r, c).unwrap();
            let y = c / at.second_moment.sqrt();
            let (mu, nu) = (at.mu / y.min(1.0), at.nu().unwrap() / (y * y).min(1.0));
            prop_assert!(kappa.mu.0 <= mu + 1e-9 && mu <= kappa.mu.1 + 1e-9, "{mu} {kappa:?}");
            prop_assert!(kappa.nu.0 <= nu + 1e-9 && nu <= kappa.nu.1 + 1e-9, "{nu} {kappa:?}");
            let ccc = at.ccc().unwrap();
            prop_assert!(kappa.lower().powi(2) / kappa.upper() <= ccc);
            prop_assert!(ccc <= kappa.upper().powi(2) / kappa.lower());
        }
    }

    fn bounds_of_laplace() -> KappaBounds {
        static BOUNDS: std::sync::OnceLock<KappaBounds> = std::sync::OnceLock::new();
        *BOUNDS.get_or_init(|| {
            let noise = Laplace::new(1.0).unwrap();
            kappa_bounds(&noise, (1e-3, 10.0), (1e-2, 10f64.powf(1.5))).unwrap()
        })
    }

    #[test]
    fn the_upper_constant_grows_without_bound_for_rademacher_noise() {
        // Errata: with atoms, μ/min(1, y) has no bound as R → 0, c → 0.
        let noise = Rademacher::new(1.0, 0.5).unwrap();
        let upper = |r: f64| kappa_bounds(&noise, (r, 1.0), (1e-6, 10.0)).unwrap().upper();
        assert!(upper(1e-6) > 5.0 * upper(1e-3));
    }

    #[test]
    fn impossible_ranges_and_infinite_variance_are_refused() {
        let noise = Laplace::new(1.0).unwrap();
        assert!(kappa_bounds(&noise, (2.0, 1.0), (0.1, 1.0)).is_err());
        assert!(kappa_bounds(&noise, (0.0, 1.0), (0.0, 1.0)).is_err());
        let cauchy = StudentT::new(1.0, 1.0).unwrap();
        let error = kappa_bounds(&cauchy, (0.0, 1.0), (0.1, 1.0)).unwrap_err();
        assert_eq!(error, Error::InfiniteVariance);
    }
}
