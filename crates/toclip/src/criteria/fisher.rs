//! The limit on any reshaping of the residual.

use super::best::best_for_residual;
use crate::error::{Error, Result};
use crate::factors::check_risk;
use crate::noise::{Feature, Noise};
use crate::quad::{half_line, panels_from};
use crate::step::Step;
use serde::Serialize;

/// The Fisher-information limit on clipping, and how near clipping comes to it.
///
/// Replace the residual $X$ by any function $\psi(X)$: the descent is multiplied by
/// $E{\psi^\prime}(X)$ and the noise by $E\psi(X)^2$. By the inequality of Cauchy and Schwarz
/// $$ \frac{(E{\psi^\prime})^2}{E\psi^2} \le I(X) = \int \frac{{f^\prime}^2}{f}, $$
/// with equality for $\psi = -{f^\prime}/f$. So no rule, clipping included, has a CCC above
/// $(2R+\sigma^2)\thinspace I(X)$.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FisherLimit {
    /// $I(X)$; infinite at $R = 0$ for distributions with atoms or jumps.
    pub information: f64,
    /// $(2R+\sigma^2)\thinspace I(X)$, the largest CCC of any rule.
    pub limit: f64,
    /// $\sup_c \text{CCC}/\text{limit}$, the share of it that the best threshold reaches, at most
    /// one.
    pub reached: f64,
}

/// $(2R+\sigma^2)\thinspace I(X)$ at risk $R$, and the share of it that clipping reaches.
///
/// # Errors
/// [`Error::NotProvided`] for a noise of your own without
/// [`residual_density`](Noise::residual_density).
///
/// ```
/// use toclip::{criteria::fisher_limit, noise::{Gaussian, Laplace}};
/// // Gaussian noise: nothing beats the mean, and not clipping reaches the limit.
/// let gaussian = fisher_limit(&Gaussian::new(2.0)?, 0.5)?;
/// assert!((gaussian.limit - 1.0).abs() < 1e-12 && (gaussian.reached - 1.0).abs() < 1e-12);
/// // Laplace noise without model error: the sign of the residual is the best there is.
/// let laplace = fisher_limit(&Laplace::new(2.0)?, 0.0)?;
/// assert!((laplace.limit - 2.0).abs() < 1e-9 && (laplace.reached - 1.0).abs() < 1e-6);
/// # Ok::<(), toclip::Error>(())
/// ```
pub fn fisher_limit<'a>(step: impl Into<Step<'a>>, r: f64) -> Result<FisherLimit> {
    let step = step.into();
    check_risk(r)?;
    let information = information(step.noise(), &step.features(r), r)?;
    let second_moment = step.residual_second_moment(r);
    let best = best_for_residual(&step, r)?.efficiency;
    let reached = if information.is_infinite() {
        if best.is_infinite() { 1.0 } else { 0.0 }
    } else {
        (best / information).min(1.0)
    };
    // Without error or noise there is no residual, and nothing to gain.
    let limit = if second_moment == 0.0 { 1.0 } else { second_moment * information };
    Ok(FisherLimit { information, limit, reached })
}

/// $I(X) = \int {f^\prime}^2/f$.
fn information(noise: &dyn Noise, features: &[Feature], r: f64) -> Result<f64> {
    // An atom or a jump locates the residual exactly.
    if features.iter().any(|f| f.width == 0.0) {
        return Ok(f64::INFINITY);
    }
    if noise.residual_density(r, 0.0).is_none() {
        return Err(Error::NotProvided {
            family: noise.describe(),
            what: "the density of the residual at this risk",
            method: "residual_density",
        });
    }
    let integrand = |x: f64| {
        let (f, df) = noise.residual_density(r, x).unwrap_or((0.0, 0.0));
        [if f > 0.0 { df * (df / f) } else { 0.0 }]
    };
    let side = |sign: f64| {
        let mut points = Vec::new();
        for f in features {
            for k in [-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0] {
                points.push(sign * (f.at + k * f.width));
            }
        }
        half_line(|x| integrand(sign * x), &panels_from(0.0, points))[0]
    };
    Ok(side(1.0) + side(-1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Family, Rademacher, StudentT};

    #[test]
    fn student_t_without_error_has_its_known_information() {
        for df in [1.0, 2.5, 10.0] {
            let noise = StudentT::new(df, 0.7).unwrap();
            let want = (df + 1.0) / ((df + 3.0) * 0.49);
            let got = information(&noise, &noise.features(0.0), 0.0).unwrap();
            assert!((got / want - 1.0).abs() < 1e-11, "df {df}: {got} {want}");
        }
    }

    #[test]
    fn residuals_that_stand_apart_are_all_seen() {
        use crate::noise::Empirical;
        // Bumps of width √(2R) that do not touch have the information of one: 1/(2R).
        let values: Vec<f64> = (1..=400).map(f64::from).collect();
        let noise = Empirical::new(&values).unwrap();
        for r in [1e-10, 1e-6, 1e-4] {
            let got = information(&noise, &noise.features(r), r).unwrap();
            assert!((got * 2.0 * r - 1.0).abs() < 1e-9, "{got} at {r}");
        }
        // Too many to look at each: said, not guessed.
        let values: Vec<f64> = (1..=5000).map(f64::from).collect();
        let many = Empirical::new(&values).unwrap();
        assert!(matches!(
            information(&many, &many.features(1e-6), 1e-6),
            Err(Error::NotProvided { .. })
        ));
        assert!(information(&many, &many.features(1e6), 1e6).is_ok());
    }

    #[test]
    fn clipping_never_passes_the_limit_and_atoms_have_none() {
        let rademacher = Rademacher::from_sigma(5.0, 0.2).unwrap();
        let at = fisher_limit(&rademacher, 3.0).unwrap();
        assert!(at.reached > 0.5 && at.reached < 1.0 && at.limit > 2.5, "{at:?}");
        assert_eq!(fisher_limit(&rademacher, 0.0).unwrap().limit, f64::INFINITY);
        let mixture: Family = serde_json::from_str(
            r#"{"family":"gaussian_mixture","weights":[0.9,0.1],"means":[0,0],"stds":[1,10]}"#,
        )
        .unwrap();
        for r in [0.0, 0.01, 1.0, 100.0] {
            let at = fisher_limit(&mixture, r).unwrap();
            assert!(at.limit >= 1.0 && at.reached <= 1.0 && at.reached > 0.8, "{at:?}");
        }
    }
}
