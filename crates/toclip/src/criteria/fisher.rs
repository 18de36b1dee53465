//! The limit on any reshaping of the residual.

use super::best::best_for_residual;
use crate::error::{Error, Result};
use crate::factors::check_risk;
use crate::factors::information::information;
use crate::factors::step::Step;
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
/// [`residual_density`](crate::noise::Noise::residual_density), and at risks so large or small that
/// rounding is all that is left of the density.
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
    step.check_sizes(r, f64::INFINITY)?;
    let information = information(step.noise(), &step.features(r), r)?;
    let second_moment = step.residual_second_moment(r);
    if !(second_moment == 0.0 || second_moment * information > 0.99) {
        // No limit is below one: the density is lost in rounding or underflows.
        return Err(Error::NotProvided {
            family: step.noise().describe(),
            what: "the density of the residual to enough digits at this risk",
            method: "residual_density",
        });
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Family, Rademacher};

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
