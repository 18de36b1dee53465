//! The Fisher information of the residual.

use crate::error::{Error, Result};
use crate::noise::{Feature, Noise};
use crate::numerics::quadrature::{half_line, panels_from};

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
    if let Some(sum) = about_zero(|x| integrand(x)[0], features, r, noise.is_symmetric()) {
        return Ok(sum);
    }
    let side = |sign: f64| {
        half_line(|x| integrand(sign * x), &panels_from(0.0, points_about(features, sign)))[0]
    };
    Ok(side(1.0) + side(-1.0))
}

/// The longest step of the trapezoidal rule, and how often it may be halved.
const STEPS: (f64, u32) = (0.4, 4);
/// Terms below this share of the sum end it, three in a row.
const NEGLIGIBLE: f64 = 1e-18;

/// $\int f$ where all features are at zero: in the variable $y$ with $x = w\sinh y$, $w$ the
/// narrowest of them, every scale from there on is an even stretch.
///
/// With the error of the model, $R > 0$, the integrand is analytic, so the trapezoidal rule doubles
/// its digits when the step is halved: two values that agree to eight are followed by sixteen.
/// `None` where they do not.
fn about_zero(
    f: impl Fn(f64) -> f64,
    features: &[Feature],
    r: f64,
    symmetric: bool,
) -> Option<f64> {
    if r == 0.0 || features.iter().any(|f| f.at != 0.0) {
        return None;
    }
    let width = features.iter().map(|f| f.width).fold(f64::INFINITY, f64::min);
    let at = |y: f64| f(width * y.sinh()) * y.cosh();
    // Odd multiples of h, which are all that is new when the step is halved to h.
    let side = |h: f64, first: f64, stride: f64| {
        let (mut sum, mut quiet, mut k) = (0.0, 0, first);
        // sinh must not overflow.
        while quiet < 3 && k * h.abs() < 600.0 {
            let term = at(k * h);
            sum += term;
            quiet = if term <= NEGLIGIBLE * sum { quiet + 1 } else { 0 };
            k += stride;
        }
        sum
    };
    let sides = |h: f64, stride: f64| {
        let right = side(h, 1.0, stride);
        right + if symmetric { right } else { side(-h, 1.0, stride) }
    };
    let mut h = STEPS.0;
    let mut sum = at(0.0) + sides(h, 1.0);
    for _ in 0..STEPS.1 {
        h *= 0.5;
        let next = sum + sides(h, 2.0);
        let (coarse, fine) = (2.0 * h * sum, h * next);
        if (coarse - fine).abs() <= 1e-8 * fine {
            return Some(width * fine);
        }
        sum = next;
    }
    None
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
    use crate::noise::{Empirical, Gaussian, Laplace, StudentT};

    #[test]
    fn student_t_without_error_has_its_known_information() {
        for df in [1.0, 2.5, 10.0] {
            let noise = StudentT::new(df, 0.7).unwrap();
            let want = (df + 1.0) / ((df + 3.0) * 0.49);
            let got = information(&noise, &noise.features(0.0), 0.0).unwrap();
            assert!((got / want - 1.0).abs() < 1e-11, "df {df}: {got} {want}");
        }
    }

    /// The trapezoidal rule and adaptive panels are two ways to one number.
    #[test]
    fn both_quadratures_agree() {
        let noises: [Box<dyn Noise>; 4] = [
            Box::new(StudentT::new(2.2, 0.5).unwrap()),
            Box::new(StudentT::new(40.0, 3.0).unwrap()),
            Box::new(Laplace::new(0.8).unwrap()),
            Box::new(Gaussian::new(1.3).unwrap()),
        ];
        for noise in &noises {
            for r in [1e-12, 1e-6, 1e-3, 0.1, 5.0, 1e4] {
                let f = |x: f64| {
                    let (f, df) = noise.residual_density(r, x).unwrap();
                    if f > 0.0 { df * (df / f) } else { 0.0 }
                };
                let features = noise.features(r);
                let fast = about_zero(f, &features, r, noise.is_symmetric()).unwrap();
                let both = about_zero(f, &features, r, false).unwrap();
                assert!((fast / both - 1.0).abs() < 1e-14);
                let points = panels_from(0.0, points_about(&features, 1.0));
                let [half] = half_line(|x| [f(x)], &points);
                assert!((fast / (2.0 * half) - 1.0).abs() < 1e-12, "{noise:?} {r}: {fast} {half}");
            }
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
        // Too many atoms to resolve: an error, not a guess.
        let values: Vec<f64> = (1..=5000).map(f64::from).collect();
        let many = Empirical::new(&values).unwrap();
        assert!(matches!(
            information(&many, &many.features(1e-6), 1e-6),
            Err(Error::NotProvided { .. })
        ));
        assert!(information(&many, &many.features(1e6), 1e6).is_ok());
    }
}
