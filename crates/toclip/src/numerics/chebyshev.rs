//! Chebyshev polynomials: interpolation on an interval, of several functions at once.

use std::f64::consts::PI;

/// The points of interpolation on $\[-1, 1\]$, from the smallest.
pub(crate) fn points(count: usize) -> impl Iterator<Item = f64> {
    (0..count).map(move |k| -(PI * (k as f64 + 0.5) / count as f64).cos())
}

/// The coefficients of the polynomials through these values at [`points`].
pub(crate) fn coefficients<const N: usize>(values: &[[f64; N]]) -> Vec<[f64; N]> {
    let count = values.len();
    let coefficient = |n: usize| {
        let mut sum = [0.0; N];
        for (k, value) in values.iter().enumerate() {
            // The cosine is that of the points from the largest; odd polynomials change their sign.
            let weight = (PI * n as f64 * (k as f64 + 0.5) / count as f64).cos()
                * if n == 0 { 1.0 } else { 2.0 }
                * if n.is_multiple_of(2) { 1.0 } else { -1.0 };
            for i in 0..N {
                sum[i] += weight * value[i] / count as f64;
            }
        }
        sum
    };
    (0..count).map(coefficient).collect()
}

/// $\sum_n a_n T_n(x)$ by Clenshaw's recurrence, of at least one coefficient.
pub(crate) fn sum<const N: usize>(a: &[[f64; N]], x: f64) -> [f64; N] {
    let (mut one, mut two) = ([0.0; N], [0.0; N]);
    for a in a[1..].iter().rev() {
        for i in 0..N {
            (one[i], two[i]) = (a[i] + 2.0 * x * one[i] - two[i], one[i]);
        }
    }
    std::array::from_fn(|i| a[0][i] + x * one[i] - two[i])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_polynomial_is_met_exactly() {
        let f = |x: f64| [1.0 + x * (2.0 - x * x), 3.0];
        let values: Vec<_> = points(5).map(f).collect();
        let a = coefficients(&values);
        for x in [-1.0, -0.3, 0.7, 1.0] {
            let got = sum(&a, x);
            assert!((got[0] - f(x)[0]).abs() < 1e-14 && (got[1] - 3.0).abs() < 1e-14, "{got:?}");
        }
        // x³ = (3 T₁ + T₃)/4, and the fourth coefficient is zero.
        assert!((a[1][0] - 1.25).abs() < 1e-15 && (a[3][0] + 0.25).abs() < 1e-15, "{a:?}");
        assert!(a[4][0].abs() < 1e-15);
    }
}
