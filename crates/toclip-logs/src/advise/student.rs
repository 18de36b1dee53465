//! Student's law, for intervals from few stretches at any confidence.

use std::f64::consts::PI;

/// The t with P(|T| ≤ t) = `confidence`, for a whole number of degrees of freedom, at least one.
///
/// With t = √n tan θ, P(|T| ≤ t) is a finite sum of powers of cos θ (Abramowitz and Stegun 26.7.3
/// and 26.7.4).
pub(super) fn critical(confidence: f64, freedom: usize) -> f64 {
    let freedom = freedom.max(1);
    let (mut low, mut high) = (0.0, PI / 2.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if within(middle, freedom) < confidence { low = middle } else { high = middle }
    }
    (freedom as f64).sqrt() * high.tan()
}

/// The same for the normal law.
pub(super) fn normal(confidence: f64) -> f64 {
    critical(confidence, 100_000)
}

fn within(theta: f64, freedom: usize) -> f64 {
    let (sin, cos) = theta.sin_cos();
    let odd = freedom % 2 == 1;
    // 1 + (1/2) cos² + (1·3)/(2·4) cos⁴ + … for even degrees, cos + (2/3) cos³ + … for odd.
    let mut term = if odd { cos } else { 1.0 };
    let mut sum = 0.0;
    for k in 0..freedom / 2 {
        sum += term;
        let k = k as f64;
        term *= cos
            * cos
            * if odd {
                (2.0 * k + 2.0) / (2.0 * k + 3.0)
            } else {
                (2.0 * k + 1.0) / (2.0 * k + 2.0)
            };
    }
    if odd { 2.0 / PI * (theta + sin * sum) } else { sin * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values_are_those_of_the_tables() {
        for (confidence, freedom, want) in [
            (0.95, 1, 12.7062),
            (0.95, 2, 4.3027),
            (0.95, 3, 3.1824),
            (0.95, 19, 2.0930),
            (0.99, 19, 2.8609),
            (0.5, 19, 0.6876),
            (0.8, 10, 1.3722),
        ] {
            let got = critical(confidence, freedom);
            assert!((got - want).abs() < 1e-4, "{confidence} {freedom}: {got}, not {want}");
        }
        for (confidence, want) in [(0.5, 0.6745), (0.95, 1.9600), (0.99, 2.5758), (0.999, 3.2905)] {
            assert!((normal(confidence) - want).abs() < 1e-3);
        }
    }
}
