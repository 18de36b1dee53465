//! The one kernel: the clipped moments of a normal variable.
//!
//! Given the noise, the residual of a linear model on Gaussian data is normal. The effect of
//! clipping on SGD depends on two moments of it, and every noise family averages them over the
//! noise; so this file decides how accurate the whole library is.

use crate::numerics::special::{
    FRAC_1_SQRT_2PI, GAUSS_LEGENDRE_16, SQRT_2_OVER_PI, erf, erfc, phi,
};
use std::f64::consts::FRAC_1_SQRT_2;

/// $\mu_c$ and $m^{(2)}_c$: the two moments of a residual $X$ clipped at $c$ that the dynamics
/// depend on.
///
/// $$ \mu_c = P(|X| \le c), \qquad m^{(2)}_c = E\[\min(X^2, c^2)\]. $$
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Moments {
    /// $\mu$, the probability that a sample is not clipped: the share of the descent that is kept.
    pub mu: f64,
    /// $m^{(2)}$, the mean square of the clipped residual: the strength of the noise that is left.
    pub m2: f64,
}

impl Moments {
    /// A residual that is the constant `x`: an atom at `|x| = c` counts as unclipped.
    pub(crate) fn constant(x: f64, c: f64) -> Self {
        let x = x.abs();
        Moments { mu: if x <= c { 1.0 } else { 0.0 }, m2: x.min(c).powi(2) }
    }

    /// A residual that is not clipped, $c = \infty$.
    pub(crate) fn open(second_moment: f64) -> Self {
        Moments { mu: 1.0, m2: second_moment }
    }

    /// Adds `weight` times another pair: a mixture of distributions mixes the moments.
    pub(crate) fn add(&mut self, weight: f64, other: Moments) {
        self.mu += weight * other.mu;
        self.m2 += weight * other.m2;
    }

    /// Removes rounding errors above the bounds $\mu \le 1$, $m^{(2)} \le \min(c^2, E X^2)$.
    pub(crate) fn within(self, c: f64, second_moment: f64) -> Self {
        Moments { mu: self.mu.min(1.0), m2: self.m2.min(c * c).min(second_moment) }
    }
}

/// $\mu$ and $m^{(2)}$ of $X \sim N(m, s^2)$ clipped at $c$.
///
/// With $a = (c-|m|)/s$ and $b = (c+|m|)/s$ the textbook form is
/// $$ \mu = \Phi(a) - \Phi(-b), \qquad
/// m^{(2)} = (m^2+s^2)\mu - s\[(c+|m|)\varphi(a) + (c-|m|)\varphi(b)\] + c^2(1-\mu). $$
/// It cancels completely for $c \ll s$, where the terms are of size $s^2$ and the value is near
/// $c^2$. For $c < s$ we integrate the density instead, which is smooth on $\[-c, c\]$: $m^{(2)} =
/// c^2 - \int (c^2-x^2) f(x)\thinspace dx$, a difference that never loses more than one bit.
///
/// For any $m$, any $s \ge 0$ and any $0 < c \le \infty$.
///
/// ```
/// use toclip::clipped_normal;
/// let x = clipped_normal(0.0, 1.0, 1.345);
/// assert!((x.mu - 0.8213747654313257).abs() < 1e-15);
/// // Clipping far below the scale keeps its relative accuracy: m2 is just under c².
/// let tiny = clipped_normal(0.3, 1.0, 1e-9);
/// assert!((tiny.m2 / 1e-18 - 1.0).abs() < 1e-8 && tiny.m2 < 1e-18);
/// ```
pub fn clipped_normal(m: f64, s: f64, c: f64) -> Moments {
    let m = m.abs();
    if c == f64::INFINITY {
        return Moments { mu: 1.0, m2: m * m + s * s };
    }
    if s == 0.0 {
        return Moments::constant(m, c);
    }
    if m == 0.0 {
        return clipped_centred(s, c);
    }
    if c < s { below_scale(m, s, c) } else { textbook(m, s, c) }
}

/// The textbook form, for $c \ge s$. Squares are taken in units that cannot overflow.
fn textbook(m: f64, s: f64, c: f64) -> Moments {
    let (a, b) = ((c - m) / s, (c + m) / s);
    let tail = 0.5 * (erfc(a * FRAC_1_SQRT_2) + erfc(b * FRAC_1_SQRT_2));
    let (mu, unit) = if c >= m {
        (0.5 * (erf(a * FRAC_1_SQRT_2) + erf(b * FRAC_1_SQRT_2)), m.max(s))
    } else {
        (0.5 * (erfc(-a * FRAC_1_SQRT_2) - erfc(b * FRAC_1_SQRT_2)), c)
    };
    if mu == 0.0 {
        return Moments { mu, m2: c * c };
    }
    if tail == 0.0 {
        return Moments { mu, m2: m * m + s * s };
    }
    let (m_, s_, c_) = (m / unit, s / unit, c / unit);
    let inside = (m_ * m_ + s_ * s_) * mu - s_ * ((c_ + m_) * phi(a) + (c_ - m_) * phi(b));
    Moments { mu, m2: unit * unit * (inside + c_ * c_ * tail) }
}

/// Integrates the density of $|X|$ over $\[0, c\]$, for $c < s$.
///
/// Sixteen points on $\[-c, c\]$ integrate $e^{xm/s^2}$ to rounding while $cm/s^2 \le 4$. Beyond,
/// $\mu$ is a difference of two tails at least $e^8$ apart, and the integral in $m^{(2)}$, which is
/// then below $10^{-4} c^2$, is needed to fewer digits than the rule still has.
fn below_scale(m: f64, s: f64, c: f64) -> Moments {
    let (y, k) = (c / s, m / s);
    let (mut mass, mut gap) = (0.0, 0.0);
    for (u, w) in GAUSS_LEGENDRE_16 {
        let (near, far) = (u * y - k, u * y + k);
        let f = w * ((-0.5 * near * near).exp() + (-0.5 * far * far).exp());
        mass += f;
        gap += f * (1.0 - u * u);
    }
    let mu = if y * k > 4.0 {
        0.5 * (erfc((k - y) * FRAC_1_SQRT_2) - erfc((k + y) * FRAC_1_SQRT_2))
    } else {
        FRAC_1_SQRT_2PI * y * mass
    };
    Moments { mu, m2: c * c * (1.0 - FRAC_1_SQRT_2PI * y * gap) }
}

/// The kernel for a centred variable, $X \sim N(0, s^2)$, $s > 0$, $c < \infty$.
pub(crate) fn clipped_centred(s: f64, c: f64) -> Moments {
    let y = c / s;
    if y < 1.0 {
        let (mu, gap) = centred_series(y);
        Moments { mu, m2: c * c * (1.0 - gap) }
    } else {
        let (mu, square) = centred_textbook(y);
        Moments { mu, m2: s * s * square }
    }
}

/// $\mu$ and $1 - m^{(2)}/c^2$ for $y = c/s < 1$, by their power series in $y$.
#[inline]
pub(crate) fn centred_series(y: f64) -> (f64, f64) {
    let z = -0.5 * y * y;
    let (mut mass, mut gap) = (0.0, 0.0);
    for &(over_mass, over_gap) in CENTRED.iter().rev() {
        mass = mass * z + over_mass;
        gap = gap * z + over_gap;
    }
    (SQRT_2_OVER_PI * y * mass, SQRT_2_OVER_PI * y * gap)
}

/// $\mu$ and $m^{(2)}/s^2$ for $y = c/s \ge 1$.
#[inline]
pub(crate) fn centred_textbook(y: f64) -> (f64, f64) {
    // Beyond 9 standard deviations both are 1 to rounding, and y may be infinite.
    if y > 9.0 {
        return (1.0, 1.0);
    }
    let mu = erf(y * FRAC_1_SQRT_2);
    (mu, mu - 2.0 * y * phi(y) + y * y * erfc(y * FRAC_1_SQRT_2))
}

/// $1/(n!(2n+1))$ and $1/(n!(2n+1)) - 1/(n!(2n+3))$: the coefficients of the series in $-y^2/2$.
const CENTRED: [(f64, f64); 14] = {
    let mut table = [(0.0, 0.0); 14];
    let (mut n, mut factorial) = (0, 1.0);
    while n < 14 {
        let odd = (2 * n + 1) as f64;
        table[n] = (1.0 / (factorial * odd), 2.0 / (factorial * odd * (odd + 2.0)));
        n += 1;
        factorial *= n as f64;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition by brute force: a fine midpoint rule on the density.
    fn by_midpoints(m: f64, s: f64, c: f64) -> Moments {
        let n = 400_000;
        let h = 2.0 * c / f64::from(n);
        let mut x2 = Moments { mu: 0.0, m2: c * c };
        for i in 0..n {
            let x = -c + (f64::from(i) + 0.5) * h;
            let f = phi((x - m) / s) / s * h;
            x2.mu += f;
            x2.m2 -= f * (c * c - x * x);
        }
        x2
    }

    #[test]
    fn agrees_with_the_definition_on_both_sides_of_every_branch() {
        for m in [0.0, 0.1, 0.99, 1.01, 3.0, 6.0] {
            for c in [0.2, 0.9999, 1.0, 1.0001, 2.0, 5.0] {
                let (got, want) = (clipped_normal(m, 1.0, c), by_midpoints(m, 1.0, c));
                assert!((got.mu / want.mu - 1.0).abs() < 1e-9, "mu at {m}, {c}");
                assert!((got.m2 / want.m2 - 1.0).abs() < 1e-9, "m2 at {m}, {c}");
            }
        }
    }

    #[test]
    fn branches_meet_without_a_step() {
        for m in [0.0, 1e-3, 0.5, 2.0, 4.0, 20.0] {
            let (below, above) = (clipped_normal(m, 1.0, 1.0 - 1e-15), clipped_normal(m, 1.0, 1.0));
            assert!((below.mu / above.mu - 1.0).abs() < 1e-13, "mu at {m}");
            assert!((below.m2 / above.m2 - 1.0).abs() < 1e-13, "m2 at {m}");
        }
    }

    #[test]
    fn is_free_of_scale_to_the_ends_of_the_number_line() {
        let unit = clipped_normal(0.7, 1.0, 1.3);
        for scale in [1e-150, 1e-9, 1e9, 1e150] {
            let x = clipped_normal(0.7 * scale, scale, 1.3 * scale);
            assert!((x.mu / unit.mu - 1.0).abs() < 1e-14, "{x:?}");
            assert!((x.m2 / (scale * scale) / unit.m2 - 1.0).abs() < 1e-14, "{x:?}");
        }
        for (m, s, c) in [(1e-300, 1e-300, 1e300), (1e300, 1e-300, 1e-300), (0.0, 1e-300, 1e300)] {
            let x = clipped_normal(m, s, c);
            assert!(!x.mu.is_nan() && !x.m2.is_nan(), "({m:e}, {s:e}, {c:e}) gives {x:?}");
        }
    }

    #[test]
    fn no_spread_is_an_atom() {
        assert_eq!(clipped_normal(-2.0, 0.0, 2.0), Moments { mu: 1.0, m2: 4.0 });
        assert_eq!(clipped_normal(2.0, 0.0, 1.0), Moments { mu: 0.0, m2: 1.0 });
        assert_eq!(clipped_normal(0.0, 0.0, 1.0), Moments { mu: 1.0, m2: 0.0 });
    }
}
