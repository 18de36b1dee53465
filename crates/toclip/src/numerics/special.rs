//! Special functions of the normal distribution, and a fixed quadrature rule, shared by the noise
//! families.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

pub(crate) use libm::{erf, erfc};

/// $\sqrt{2/\pi}$.
pub(crate) const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;
/// $1/\sqrt{2\pi}$.
pub const FRAC_1_SQRT_2PI: f64 = 0.398_942_280_401_432_7;

/// The standard normal density $\varphi(x)$; zero at $\pm\infty$.
pub fn phi(x: f64) -> f64 {
    FRAC_1_SQRT_2PI * (-0.5 * x * x).exp()
}

/// The upper tail of the standard normal distribution, $Q(x) = P(z > x)$.
pub(crate) fn upper_tail(x: f64) -> f64 {
    0.5 * erfc(x * FRAC_1_SQRT_2)
}

/// $P(a < z < b)$ for a standard normal $z$ and $a \le b$, without cancellation in either tail.
///
/// Not for neighbouring points in one tail, where it takes the difference of two numbers that agree
/// to many digits: integrate the density instead.
pub(crate) fn normal_mass(a: f64, b: f64) -> f64 {
    if a > 0.0 {
        upper_tail(a) - upper_tail(b)
    } else if b < 0.0 {
        upper_tail(-b) - upper_tail(-a)
    } else {
        0.5 * (erf(b * FRAC_1_SQRT_2) - erf(a * FRAC_1_SQRT_2))
    }
}

/// $x^2 - \operatorname{fl}(x^2)$, exactly: the rounding error of the square.
pub(crate) fn rounding_of_square(x: f64) -> f64 {
    let square = x * x;
    if cfg!(target_family = "wasm") {
        // No fused operation there: x in two halves, whose products are exact (Dekker 1971).
        let split = 134_217_729.0 * x;
        let high = split - (split - x);
        let low = x - high;
        ((high * high - square) + 2.0 * high * low) + low * low
    } else {
        x.mul_add(x, -square)
    }
}

/// The scaled complementary error function $\operatorname{erfcx}(x) =
/// e^{x^2}\operatorname{erfc}(x)$.
///
/// Up to $x = 25$, where $\operatorname{erfc}$ is still a normal number, the product is formed with
/// $x^2$ carried to twice the working precision, so that the large exponent costs no digits.
/// Beyond, seven terms of the asymptotic series are exact to rounding.
pub(crate) fn erfcx(x: f64) -> f64 {
    if x < 25.0 {
        let square = x * x;
        let rest = rounding_of_square(x);
        let scale = square.exp();
        // For very negative x the square overflows: the function itself is infinite there.
        if scale.is_infinite() { f64::INFINITY } else { scale * (1.0 + rest) * erfc(x) }
    } else {
        let t = 0.5 / (x * x);
        let terms = [1.0, -1.0, 3.0, -15.0, 105.0, -945.0, 10395.0];
        terms.iter().rev().fold(0.0, |sum, term| sum * t + term) / (x * PI.sqrt())
    }
}

/// Positive nodes and weights of the 16-point Gauss–Legendre rule on $[-1, 1]$, which is symmetric
/// (Abramowitz and Stegun 1972, table 25.4).
pub(crate) const GAUSS_LEGENDRE_16: [(f64, f64); 8] = [
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_096),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_894),
    (0.865_631_202_387_831_8, 0.095_158_511_682_492_79),
    (0.755_404_408_355_003, 0.124_628_971_255_533_88),
    (0.617_876_244_402_643_8, 0.149_595_988_816_576_74),
    (0.458_016_777_657_227_37, 0.169_156_519_395_002_54),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_58),
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
];

/// The same of the 8-point rule.
pub(crate) const GAUSS_LEGENDRE_8: [(f64, f64); 4] = [
    (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
    (0.525_532_409_916_329, 0.313_706_645_877_887_3),
    (0.183_434_642_495_649_8, 0.362_683_783_378_361_96),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erfcx_meets_values_of_forty_digits() {
        // mpmath: exp(x^2) * erfc(x) at 40 digits.
        for (x, want) in [
            (-3.0, 16205.988853999587),
            (0.0, 1.0),
            (0.5, 0.615_690_344_192_925_9),
            (5.0, 0.11070463773306863),
            (24.9, 0.022639987776049506),
            (25.1, 0.02245987581758139),
            (1e8, 5.641895835477563e-9),
        ] {
            let got = erfcx(x);
            assert!((got / want - 1.0).abs() < 1e-15, "erfcx({x}) = {got:e}, not {want:e}");
        }
        assert_eq!(erfcx(f64::INFINITY), 0.0);
        assert_eq!(erfcx(-50.0), f64::INFINITY);
    }

    #[test]
    fn the_quadrature_rule_is_exact_for_polynomials() {
        for degree in (0..=30).step_by(2) {
            let sum: f64 = GAUSS_LEGENDRE_16.iter().map(|&(x, w)| 2.0 * w * x.powi(degree)).sum();
            let want = 2.0 / f64::from(degree + 1);
            assert!((sum - want).abs() < 2e-16 * 8.0, "degree {degree}: {sum} against {want}");
            let sum: f64 = GAUSS_LEGENDRE_8.iter().map(|&(x, w)| 2.0 * w * x.powi(degree)).sum();
            assert_eq!((sum - want).abs() < 2e-16 * 8.0, degree < 16, "degree {degree}: {sum}");
        }
    }

    #[test]
    fn normal_mass_keeps_the_tails() {
        let far = normal_mass(30.0, 31.0);
        assert!((far / 4.906713927147918e-198 - 1.0).abs() < 1e-12, "{far:e}");
        assert_eq!(normal_mass(-31.0, -30.0), far);
        assert_eq!(normal_mass(f64::NEG_INFINITY, f64::INFINITY), 1.0);
    }
}
