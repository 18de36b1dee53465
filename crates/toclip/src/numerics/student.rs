//! Critical values: Student's, for one number; the tube formula, for a curve.

use std::f64::consts::PI;

use crate::numerics::special;

/// From this many degrees of freedom on the distribution is taken as normal: $t$ is off by $3 \cdot
/// 10^{-5}$.
const NORMAL: usize = 100_000;

/// $P(T > t)$ for Student's distribution with an integer number of degrees of freedom.
///
/// With $t = \sqrt n \tan\theta$ it is $\int_\theta^{\pi/2} \cos^{n-1}$ over twice that from zero,
/// and integrals of powers of the cosine have a recurrence in steps of two.
fn upper_tail(t: f64, freedom: usize) -> f64 {
    if freedom >= NORMAL {
        return special::upper_tail(t);
    }
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

/// $t$ with $P(|T| \le t)$ = `confidence` for Student's distribution with `freedom` degrees of
/// freedom, at least one; with very many it is that of the normal distribution.
///
/// ```
/// // The 95% interval of a mean of three.
/// assert!((toclip::student_critical(0.95, 2) - 4.302652729749).abs() < 1e-9);
/// assert!((toclip::student_critical(0.95, usize::MAX) - 1.959963984540).abs() < 1e-9);
/// ```
pub fn student_critical(confidence: f64, freedom: usize) -> f64 {
    let freedom = freedom.max(1);
    solve(|t| 2.0 * upper_tail(t, freedom) - (1.0 - confidence))
}

/// The $t$ that a curve of statistics, each of Student's distribution, exceeds somewhere with
/// probability at most $\alpha$, for a curve whose directions are `length` radians long (the tube
/// formula with Naiman's bound: Naiman 1986, Sun and Loader 1994, equation 3).
///
/// $$ \alpha = P(|T| > t) + \frac{\text{length}}{\pi} \Bigl(1 + \frac{t^2}{n}\Bigr)^{-n/2}. $$
pub(crate) fn simultaneous(alpha: f64, freedom: usize, length: f64) -> f64 {
    let n = freedom as f64;
    let tube = |t: f64| length / PI * (1.0 + t * t / n).powf(-0.5 * n);
    solve(|t| 2.0 * upper_tail(t, freedom) + tube(t) - alpha)
}

/// The zero of a falling function on the positive axis.
fn solve(falling: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e3);
    while falling(high) > 0.0 && high < 1e15 {
        (low, high) = (high, 1e3 * high);
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if falling(middle) > 0.0 { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values_are_those_of_the_tables() {
        // Any table of Student's distribution; to 1e-9 where one with more digits was at hand.
        for (confidence, freedom, want, off) in [
            (0.95, 1, 12.706_204_736_174_7, 1e-9),
            (0.95, 2, 4.3027, 1e-4),
            (0.95, 3, 3.1824, 1e-4),
            (0.8, 10, 1.3722, 1e-4),
            (0.99, 10, 3.169_272_672_616_95, 1e-9),
            (0.99, 15, 2.9467, 1e-4),
            (0.5, 19, 0.6876, 1e-4),
            (0.999, 30, 3.6460, 1e-4),
            (0.95, 31, 2.0395, 1e-4),
            (0.99, 39, 2.707_913_183_517_7, 1e-9),
            (0.95, 1000, 1.962_339_080_826_4, 1e-9),
            (0.999, NORMAL, 3.2905, 1e-4),
            // 2/pi over the probability outside, for one degree of freedom.
            (1.0 - 1e-6, 1, 636_619.772_367, 1e-3),
        ] {
            let got = student_critical(confidence, freedom);
            assert!((got - want).abs() < off, "{confidence} {freedom}: {got}, not {want}");
        }
        let (below, at) = (upper_tail(2.0, NORMAL - 1), upper_tail(2.0, NORMAL));
        assert!((below / at - 1.0).abs() < 1e-4, "{below} {at}");
    }

    #[test]
    fn agrees_with_the_distribution_that_is_clipped() {
        use crate::noise::{Noise, StudentT};
        for (confidence, freedom) in [(0.3, 3), (0.9, 4), (0.99, 25), (0.999, 60)] {
            // P(|T| <= c) is what clipping at c leaves at zero risk.
            let noise = StudentT::new(freedom as f64, 1.0).unwrap();
            let inside = noise.clipped(0.0, student_critical(confidence, freedom)).mu;
            assert!((inside - confidence).abs() < 1e-12, "{confidence} {freedom}: {inside}");
        }
    }

    #[test]
    fn a_point_is_a_curve_of_no_length_and_a_circle_is_known() {
        assert_eq!(simultaneous(1.0 - 0.95, 20, 0.0), student_critical(0.95, 20));
        // Along half a great circle |⟨γ, T⟩| reaches the length of a plane vector: P(F_{2,n} >
        // t²/2) is (1 + t²/n)^(−n/2), which is what the tube gives without the ends.
        let n = 24;
        let t = simultaneous(0.05, n, PI);
        let exact = (24.0 * (0.05_f64.powf(-2.0 / 24.0) - 1.0)).sqrt();
        assert!(t > exact && t < 1.1 * exact, "{t} against {exact}");
    }
}
