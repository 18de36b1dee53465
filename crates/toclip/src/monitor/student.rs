//! Critical values: Student's, for one number; the tube formula, for a curve.

use std::f64::consts::PI;

/// $P(T > t)$ for Student's law with a whole number of degrees of freedom.
///
/// With $t = \sqrt n \tan\theta$ it is $\int_\theta^{\pi/2} \cos^{n-1}$ over twice that from zero,
/// and integrals of powers of the cosine have a recurrence in steps of two.
fn upper_tail(t: f64, freedom: usize) -> f64 {
    let theta = (t / (freedom as f64).sqrt()).atan();
    let (sin, cos) = theta.sin_cos();
    // A(n) = 2/B(1/2, n/2) ∫_0^θ cos^(n−1), so that the tail is (1 − A(n))/2.
    let (mut sum, mut term) = match freedom % 2 {
        1 => (2.0 / PI * theta, 2.0 / PI * sin * cos),
        _ => (sin, 0.5 * sin * cos * cos),
    };
    let mut n = if freedom % 2 == 1 { 3 } else { 4 };
    while n <= freedom {
        sum += term;
        term *= (n - 1) as f64 / n as f64 * cos * cos;
        n += 2;
    }
    0.5 * (1.0 - sum)
}

/// The $t$ with $P(|T| > t) = \alpha$.
pub(super) fn critical(alpha: f64, freedom: usize) -> f64 {
    solve(|t| 2.0 * upper_tail(t, freedom) - alpha)
}

/// The $t$ that a curve of statistics, each of Student's law, exceeds somewhere with probability at
/// most $\alpha$, for a curve whose directions are `length` radians long (the tube formula with
/// Naiman's bound: Naiman 1986, Sun and Loader 1994, equation 3).
///
/// $$ \alpha = P(|T| > t) + \frac{\text{length}}{\pi} \Bigl(1 + \frac{t^2}{n}\Bigr)^{-n/2}. $$
pub(super) fn simultaneous(alpha: f64, freedom: usize, length: f64) -> f64 {
    let n = freedom as f64;
    let tube = |t: f64| length / PI * (1.0 + t * t / n).powf(-0.5 * n);
    solve(|t| 2.0 * upper_tail(t, freedom) + tube(t) - alpha)
}

/// The zero of a falling function on the positive axis.
fn solve(falling: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e3);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if falling(middle) > 0.0 { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special;

    #[test]
    fn critical_values_are_those_of_the_tables() {
        // Any table of Student's law.
        for (alpha, freedom, want) in [
            (0.05, 1, 12.7062),
            (0.05, 2, 4.3027),
            (0.05, 3, 3.1824),
            (0.05, 10, 2.2281),
            (0.01, 15, 2.9467),
            (0.05, 31, 2.0395),
            (0.001, 30, 3.6460),
        ] {
            let got = critical(alpha, freedom);
            assert!((got - want).abs() < 1e-4, "{alpha} {freedom}: {got}, not {want}");
        }
        let tail = upper_tail(2.0, 100_000);
        assert!((tail / special::upper_tail(2.0) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn a_point_is_a_curve_of_no_length_and_a_circle_is_known() {
        assert_eq!(simultaneous(0.05, 20, 0.0), critical(0.05, 20));
        // Along half a great circle |⟨γ, T⟩| reaches the length of a plane vector: P(F_{2,n} > t²/2)
        // is (1 + t²/n)^(−n/2), which is what the tube gives without the ends.
        let n = 24;
        let t = simultaneous(0.05, n, PI);
        let exact = (24.0 * (0.05_f64.powf(-2.0 / 24.0) - 1.0)).sqrt();
        assert!(t > exact && t < 1.1 * exact, "{t} against {exact}");
    }
}
