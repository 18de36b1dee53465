//! Functions of a complex variable that the transforms need.

use num_complex::Complex64;
use std::f64::consts::PI;
use std::sync::OnceLock;

/// $\ln(1+z)$ without losing a small $z$.
pub(crate) fn ln_1p(z: Complex64) -> Complex64 {
    Complex64::new(0.5 * (2.0 * z.re + z.norm_sqr()).ln_1p(), z.im.atan2(1.0 + z.re))
}

/// $e^z - 1$ without losing a small $z$.
pub(crate) fn exp_m1(z: Complex64) -> Complex64 {
    let (sin, cos) = z.im.sin_cos();
    let half = (0.5 * z.im).sin();
    Complex64::new(z.re.exp_m1() * cos - 2.0 * half * half, z.re.exp() * sin)
}

/// $\sqrt z$ on the plane cut along the negative axis, without the angles of a general power.
pub(crate) fn square_root(z: Complex64) -> Complex64 {
    if z.im == 0.0 && z.re >= 0.0 {
        return z.re.sqrt().into();
    }
    let large = (0.5 * ((z.re * z.re + z.im * z.im).sqrt() + z.re.abs())).sqrt();
    let small = 0.5 * z.im.abs() / large;
    let (re, im) = if z.re >= 0.0 { (large, small) } else { (small, large) };
    Complex64::new(re, im.copysign(z.im))
}

/// Terms of Weideman's series.
const TERMS: usize = 44;

/// $w(\zeta) = e^{-\zeta^2}\operatorname{erfc}(-i\zeta)$ for $\Im\zeta \ge 0$.
///
/// Weideman's rational series (1994): powers of $(L+i\zeta)/(L-i\zeta)$ with the Fourier
/// coefficients of a Gaussian on the circle. With 44 terms it is good to $10^{-14}$.
pub(crate) fn faddeeva(zeta: Complex64) -> Complex64 {
    static COEFFICIENTS: OnceLock<[f64; TERMS]> = OnceLock::new();
    let length = (TERMS as f64 / std::f64::consts::SQRT_2).sqrt();
    let a = COEFFICIENTS.get_or_init(|| {
        let points = 2 * TERMS;
        std::array::from_fn(|n| {
            // f(θ) is even, so the Fourier coefficient n+1 is a sum of cosines.
            let term = |k: usize| {
                let theta = PI * k as f64 / points as f64;
                let t = length * (0.5 * theta).tan();
                (length * length + t * t) * (-t * t).exp() * ((n + 1) as f64 * theta).cos()
            };
            // θ = π is t = ∞, where f vanishes.
            let sum: f64 = (1..points).map(term).sum();
            (2.0 * sum + term(0)) / (2.0 * points as f64)
        })
    });
    if zeta.norm_sqr() > 49.0 {
        // i/(√π ζ) Σ (2k−1)!!/(2ζ²)^k: sixteen terms are rounding here.
        let t = 0.5 / (zeta * zeta);
        let odd = (1..=16).rev().map(|k| f64::from(2 * k - 1));
        let series = odd.fold(Complex64::ONE, |sum, odd| 1.0 + odd * t * sum);
        return Complex64::new(0.0, 1.0 / PI.sqrt()) * series / zeta;
    }
    let turned = Complex64::new(-zeta.im, zeta.re);
    let below = (length - turned).inv();
    let ratio = (length + turned) * below;
    // Even and odd powers apart: two short chains instead of a long one.
    let square = ratio * ratio;
    let (mut even, mut odd) = (Complex64::ZERO, Complex64::ZERO);
    for pair in a.chunks_exact(2).rev() {
        even = even * square + pair[0];
        odd = odd * square + pair[1];
    }
    let series = even + ratio * odd;
    2.0 * series * below * below + below / PI.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faddeeva_meets_values_of_thirty_digits() {
        // mpmath: exp(-z^2) * erfc(-i z) at 30 digits.
        for (re, im, want_re, want_im) in FADDEEVA {
            let got = faddeeva(Complex64::new(re, im));
            let want = Complex64::new(want_re, want_im);
            assert!((got - want).norm() < 2e-14 * want.norm(), "w({re}+{im}i) = {got}, not {want}");
        }
    }

    const FADDEEVA: [(f64, f64, f64, f64); 9] = [
        (0.0, 0.0, 1.0, 0.0),
        (0.0, 2.0, 0.25539567631050575, 0.0),
        (0.5, 0.1, 0.7175877421575944, 0.40847440160301646),
        (1.0, 1.0, 0.3047442052569126, 0.20821893820283163),
        (3.0, 0.01, 0.0009088307067415805, 0.2011464625401964),
        (3.0, 3.0, 0.09640250558304454, 0.09123632600421876),
        (10.0, 0.5, 0.0028569536993223133, 0.05656032893530877),
        (40.0, 40.0, 0.007053471210193231, 0.007051267345439577),
        (1000.0, 1.0, 5.641898656424071e-07, 0.0005641893014522593),
    ];

    #[test]
    fn the_square_root_is_the_principal_one() {
        for (re, im) in
            [(4.0, 0.0), (3.0, -4.0), (-3.0, 4.0), (-4.0, 1e-9), (0.0, 2.0), (1e-9, 1.0)]
        {
            let z = Complex64::new(re, im);
            let root = square_root(z);
            assert!((root * root - z).norm() < 1e-15 * z.norm() && root.re >= 0.0, "{z} {root}");
        }
    }

    #[test]
    fn small_arguments_keep_their_digits() {
        let z = Complex64::new(1e-12, -3e-13);
        assert!((exp_m1(ln_1p(z)) - z).norm() < 1e-27);
        let z = Complex64::new(0.7, 2.0);
        assert!((ln_1p(z) - (z + 1.0).ln()).norm() < 1e-15);
        assert!((exp_m1(z) - (z.exp() - 1.0)).norm() < 1e-15);
    }
}
