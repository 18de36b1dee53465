//! The Fisher information of the residual.

use crate::error::{Error, Result};
use crate::noise::{Feature, Noise};
use crate::quad::{half_line, panels_from};

/// $I(X) = \int {f^\prime}^2/f$; infinite at $R = 0$ for distributions with atoms or jumps.
pub(crate) fn information(noise: &dyn Noise, features: &[Feature], r: f64) -> Result<f64> {
    // An atom or a jump locates the residual exactly.
    if features.iter().any(|f| f.width == 0.0) {
        return Ok(f64::INFINITY);
    }
    if !noise.is_resolved(r) || noise.residual_density(r, 0.0).is_none() {
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
        half_line(|x| integrand(sign * x), &panels_from(0.0, points_about(features, sign)))[0]
    };
    Ok(side(1.0) + side(-1.0))
}

/// Points on one side of zero between which a density with these features is smooth.
pub(crate) fn points_about(features: &[Feature], sign: f64) -> Vec<f64> {
    let offsets = [-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0];
    let about = |f: &Feature| offsets.map(|k| sign * (f.at + k * f.width));
    features.iter().flat_map(about).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Empirical, StudentT};

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
}
