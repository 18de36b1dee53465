//! Laplace noise (the paper's symmetrised exponential).

use super::{Feature, Noise, check_scale, one_of, short, spread};
use crate::error::{Error, Result};
use crate::factors::batch::SquaredResidual;
use crate::factors::kernel::{Moments, clipped_centred};
use crate::numerics::special::{GAUSS_LEGENDRE_16, SQRT_2_OVER_PI, erf, erfc, erfcx};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};
use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

/// Laplace noise of variance $\sigma^2$: density $\tfrac{\lambda}{2}e^{-\lambda|x|}$ with rate
/// $\lambda = \sqrt{2}/\sigma$.
///
/// With $s = \sqrt{2R}$, $\alpha = \lambda s$, $y = c/s$ the residual has density
/// $$ f(x) = \tfrac{\lambda}{4} e^{\alpha^2/2} \left\[ e^{-\lambda x}
/// \operatorname{erfc}\tfrac{\alpha - x/s}{\sqrt2} + e^{\lambda x}
/// \operatorname{erfc}\tfrac{\alpha + x/s}{\sqrt2} \right\], $$
/// which solves $f - {f^{\prime\prime}}/\lambda^2 = \varphi_s$. Integrated against the indicator of
/// $\[-c, c\]$ and against $\min(x^2, c^2)$, that equation gives both moments from those of the
/// normal distribution:
/// $$ \mu = \mu_{N(0,s^2)} + \sigma^2 {f^\prime}(c), \qquad
/// m^{(2)} = m^{(2)}_{N(0,s^2)} + \sigma^2 \[\mu - 2c f(c)\]. $$
/// These cancel when clipping is below the scale of the noise ($\lambda c < 1/2$). There a power
/// series in $\alpha$ takes over, and for $c < s$ a quadrature of the density.
///
/// ```
/// use toclip::noise::{Laplace, Noise};
/// let noise = Laplace::new(2f64.sqrt())?; // rate 1
/// let x = noise.clipped(0.0, 1.0);
/// assert!((x.mu - (1.0 - (-1f64).exp())).abs() < 1e-15);
/// assert!((x.m2 - (2.0 - 4.0 * (-1f64).exp())).abs() < 1e-15);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Raw")]
pub struct Laplace {
    sigma: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    rate: Option<f64>,
    sigma: Option<f64>,
}

impl TryFrom<Raw> for Laplace {
    type Error = Error;
    fn try_from(raw: Raw) -> Result<Self> {
        if let (None, Some(sigma)) = (raw.rate, raw.sigma) {
            return Laplace::new(sigma);
        }
        Laplace::from_rate(one_of("laplace", ("rate", raw.rate), raw.sigma, |s| SQRT_2 / s)?)
    }
}

impl Laplace {
    /// From the standard deviation $\sigma > 0$.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless σ is positive and finite.
    pub fn new(sigma: f64) -> Result<Self> {
        Ok(Laplace { sigma: check_scale("sigma", sigma)? })
    }

    /// From the rate $\lambda > 0$ of the exponential: $\sigma = \sqrt{2}/\lambda$.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless λ is positive and finite.
    pub fn from_rate(rate: f64) -> Result<Self> {
        Laplace::new(SQRT_2 / check_scale("rate", rate)?)
    }

    /// Both moments without model error, $R = 0$, for $t = \lambda c$.
    fn exact(&self, c: f64) -> Moments {
        let t = SQRT_2 * c / self.sigma;
        // σ²[1 − e^(−t)(1+t)] = c²·2[1 − e^(−t)(1+t)]/t²: near zero the bracket is t²/2.
        let m2 = if t < 0.5 {
            let (mut sum, mut term) = (0.0, 1.0);
            for n in 0..18 {
                let k = f64::from(n);
                sum += term / (k + 2.0);
                term *= -t / (k + 1.0);
            }
            2.0 * c * c * sum
        } else {
            self.sigma * self.sigma * (1.0 - (-t).exp() * (1.0 + t.min(1e300)))
        };
        Moments { mu: -(-t).exp_m1(), m2 }
    }

    /// Integrates the density over $\[0, c\]$, for $c < s$.
    fn below_spread(&self, s: f64, c: f64) -> Moments {
        let (mut mass, mut gap) = (0.0, 0.0);
        for (u, w) in GAUSS_LEGENDRE_16 {
            let f = w * self.density(s, u * c).0;
            mass += f;
            gap += f * (1.0 - u * u);
        }
        Moments { mu: 2.0 * c * mass, m2: c * c * (1.0 - 2.0 * c * gap) }
    }

    /// The power series in $\alpha$, for $s \le c$ and $t = \lambda c = \alpha y < 1/2$.
    ///
    /// With $A, B = e^{\alpha^2/2 \mp \alpha y} \operatorname{erfc}((\alpha \mp y)/\sqrt2)$ we have
    /// $\mu = \tfrac12\[(A-B)(0) - (A-B)(\alpha)\]$, and ${A^\prime} = (\alpha - y)A - k$,
    /// ${B^\prime} = (\alpha + y)B - k$ with $k = \sqrt{2/\pi}\thinspace e^{-y^2/2}$ give the
    /// coefficients $p_n$ of $A+B$ and $q_n$ of $A-B$ by recurrence; below they carry their powers
    /// of $\alpha$, so nothing overflows. In $c^2 - m^{(2)} = \lambda^{-2}\sum_{n\ge3}(q_n + y
    /// p_{n-1}/\alpha)\alpha^n$ the two leading orders have cancelled on paper rather than in
    /// rounding.
    fn small_rate(&self, s: f64, c: f64) -> Moments {
        let (y, t) = (c / s, SQRT_2 * c / self.sigma);
        let alpha = t / y;
        let a2 = alpha * alpha;
        let edge = if y < 40.0 { 2.0 * SQRT_2_OVER_PI * (-0.5 * y * y).exp() * alpha } else { 0.0 };
        let (mut p_before, mut q_before) = (2.0, 2.0 * erf(y * FRAC_1_SQRT_2));
        let (mut p, mut q) = (-t * q_before - edge, -t * p_before);
        let (mut mu, mut gap) = (-q, 0.0);
        for n in 2..24 {
            let n = f64::from(n);
            let p_next = (a2 * p_before - t * q) / n;
            let q_next = (a2 * q_before - t * p) / n;
            mu -= q_next;
            if n > 2.0 {
                gap += q_next + t * p;
            }
            (p_before, q_before, p, q) = (p, q, p_next, q_next);
        }
        // gap·σ²/2 in units of c²: σ² = 2c²/t².
        Moments { mu: 0.5 * mu, m2: c * c * (1.0 - gap / (t * t)) }
    }

    /// The closed form, for $s \le c$ and $\lambda c \ge 1/2$.
    fn closed(&self, s: f64, c: f64) -> Moments {
        let normal = clipped_centred(s, c);
        let (f, df) = self.density(s, c);
        let sigma2 = self.sigma * self.sigma;
        let mu = normal.mu + sigma2 * df;
        // c·f(c) with c infinitely far out is zero, not ∞·0.
        let edge = if f == 0.0 { 0.0 } else { 2.0 * c * f };
        Moments { mu, m2: normal.m2 + sigma2 * (mu - edge) }
    }

    /// The density of the residual at $x \ge 0$ and its derivative.
    fn density(&self, s: f64, x: f64) -> (f64, f64) {
        let rate = SQRT_2 / self.sigma;
        if s == 0.0 {
            let f = 0.5 * rate * (-rate * x).exp();
            return (f, -rate * f);
        }
        let (alpha, u) = (rate * s, x / s);
        let gauss = (-0.5 * u * u).exp();
        let far = gauss * erfcx((alpha + u) * FRAC_1_SQRT_2);
        let near = if alpha >= u {
            gauss * erfcx((alpha - u) * FRAC_1_SQRT_2)
        } else {
            // Here the exponent is negative, and erfcx of a negative number would overflow.
            (alpha * (0.5 * alpha - u)).exp() * erfc((alpha - u) * FRAC_1_SQRT_2)
        };
        (0.25 * rate * (near + far), 0.25 * rate * rate * (far - near))
    }

    /// The derivative of the density at $x \ge 0$, to rounding where `far` and `near` above cancel:
    /// next to zero, and where the normal part is the wider.
    fn slope(&self, s: f64, x: f64) -> f64 {
        let rate = SQRT_2 / self.sigma;
        let (p, q) = (rate * s * FRAC_1_SQRT_2, x / s * FRAC_1_SQRT_2);
        let converges =
            if p < FEW_TERMS_BELOW { q <= 0.1 } else { q <= 1.5_f64.max(0.25 * p).min(6.0) };
        if s == 0.0 || q > p || !converges {
            return self.density(s, x).1;
        }
        0.25 * rate * rate * (-q * q).exp() * erfcx_difference(p, q)
    }
}

/// Below this $p$ a few terms of the series are computed upwards.
const FEW_TERMS_BELOW: f64 = 1.5;

/// $\operatorname{erfcx}(p+q) - \operatorname{erfcx}(p-q) = -2\sum_{n\text{ odd}} (2q)^n I_n(p)$ with
/// $I_n(p) = e^{p^2}\thinspace i^n\operatorname{erfc}(p)$, the repeated integrals: all terms have
/// one sign. They follow $I_{n-2} = 2n I_n + 2p I_{n-1}$ from $I_{-1} = 2/\sqrt\pi$, downwards
/// (Miller's algorithm) for large $p$, where upwards would lose digits, and upwards for small $p$ and
/// $q$.
fn erfcx_difference(p: f64, q: f64) -> f64 {
    // Miller's algorithm loses e^(−2p(√(2·TERMS) − √(2n))) of term n.
    const TERMS: usize = 200;
    let first = SQRT_2_OVER_PI * SQRT_2;
    let (mut sum, mut power) = (0.0, 2.0 * q);
    if p < FEW_TERMS_BELOW {
        let (mut before, mut last) = (first, erfcx(p));
        for n in 1..12 {
            let next = (before - 2.0 * p * last) / f64::from(2 * n);
            (before, last) = (last, next);
            if n % 2 == 1 {
                sum += power * next;
                power *= 4.0 * q * q;
            }
        }
        return -2.0 * sum;
    }
    // terms[n + 1] is I_n, up to one factor.
    let mut terms = [0.0; TERMS + 2];
    terms[TERMS + 1] = 1e-300;
    for n in (1..=TERMS).rev() {
        terms[n - 1] = 2.0 * n as f64 * terms[n + 1] + 2.0 * p * terms[n];
        // The factor is found at the end: keep within the range of numbers.
        if terms[n - 1] > 1e200 {
            terms[n - 1..].iter_mut().for_each(|term| *term *= 1e-250);
        }
    }
    for term in terms.iter().skip(2).step_by(2) {
        sum += power * term;
        power *= 4.0 * q * q;
    }
    -2.0 * sum * (first / terms[0])
}

impl Noise for Laplace {
    fn describe(&self) -> String {
        format!("Laplace (σ = {})", short(self.sigma))
    }

    fn sample(&self, rng: &mut dyn Rng) -> f64 {
        // The sign and the size from one uniform number on (−1, 1), never ln 0.
        let u: f64 = 1.0 - rng.random::<f64>();
        let v = 2.0 * u - 1.0;
        let size = -self.sigma * FRAC_1_SQRT_2 * (1.0 - v.abs()).max(f64::EPSILON * 0.5).ln();
        size.copysign(v)
    }

    fn mean(&self) -> Option<f64> {
        Some(0.0)
    }

    fn second_moment(&self) -> f64 {
        self.sigma * self.sigma
    }

    fn clipped(&self, r: f64, c: f64) -> Moments {
        let s = spread(r);
        let second_moment = 2.0 * r + self.second_moment();
        if c == f64::INFINITY {
            return Moments::open(second_moment);
        }
        let x = if s == 0.0 {
            self.exact(c)
        } else if c < s {
            self.below_spread(s, c)
        } else if SQRT_2 * c < 0.5 * self.sigma {
            self.small_rate(s, c)
        } else {
            self.closed(s, c)
        };
        x.within(c, second_moment)
    }

    fn residual_density(&self, r: f64, x: f64) -> Option<(f64, f64)> {
        let (s, size) = (spread(r), x.abs());
        let df = self.slope(s, size);
        Some((self.density(s, size).0, if x < 0.0 { -df } else { df }))
    }

    fn squared_residual(&self, r: f64) -> Option<SquaredResidual> {
        Some(SquaredResidual::laplace(self.sigma, 2.0 * r))
    }

    fn is_symmetric(&self) -> bool {
        true
    }

    fn features(&self, r: f64) -> Vec<Feature> {
        super::centred_features(spread(r), self.sigma)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factors::kernel::clipped_normal;
    use proptest::prelude::*;

    proptest! {
        /// Every regime against the definition: the kernel averaged over the exponential
        /// distribution of the variance, $\epsilon \sim N(0, \sigma^2 w)$, $w \sim
        /// \mathrm{Exp}(1)$.
        #[test]
        fn is_a_mixture_in_scale(log_s in -2.0..2.0f64, log_c in -3.0..2.0f64) {
            let (s, c) = (10f64.powf(log_s), 10f64.powf(log_c));
            let got = Laplace::new(1.0).unwrap().clipped(0.5 * s * s, c);
            let (mut want, h) = (Moments::default(), 0.005);
            for k in -8000..1000 {
                // w = e^u, trapezoidal in u.
                let u = f64::from(k) * h;
                let std = (s * s + u.exp()).sqrt();
                want.add(h * (u - u.exp()).exp(), clipped_normal(0.0, std, c));
            }
            prop_assert!((got.mu / want.mu - 1.0).abs() < 1e-12, "mu {} {}", got.mu, want.mu);
            prop_assert!((got.m2 / want.m2 - 1.0).abs() < 1e-12, "m2 {} {}", got.m2, want.m2);
        }
    }

    proptest! {
        /// The slope against the same mixture, $-E\[x/V\thinspace\varphi_V(x)\]$, which has one sign.
        #[test]
        fn the_slope_keeps_its_digits(log_s in -3.0..4.0f64, log_x in -6.0..0.9f64) {
            let s = 10f64.powf(log_s);
            let x = 10f64.powf(log_x) * s;
            let (_, got) = Laplace::new(1.0).unwrap().residual_density(0.5 * s * s, x).unwrap();
            let (mut want, h) = (0.0, 0.005);
            for k in -12000..1000 {
                let u = f64::from(k) * h;
                let v = s * s + u.exp();
                want -= h * (u - u.exp()).exp() * x / v * (-0.5 * x * x / v).exp() / v.sqrt();
            }
            want *= 0.5 * SQRT_2_OVER_PI;
            prop_assert!((got / want - 1.0).abs() < 3e-13, "s = {s}, x = {x}: {got} {want}");
        }
    }

    #[test]
    fn rate_and_sigma_are_two_names_for_one_noise() {
        let by_rate: Laplace = serde_json::from_str(r#"{"rate": 2.0}"#).unwrap();
        assert!((by_rate.sigma - FRAC_1_SQRT_2).abs() < 1e-16);
        assert_eq!(serde_json::to_string(&by_rate).unwrap(), r#"{"sigma":0.7071067811865476}"#);
    }
}
