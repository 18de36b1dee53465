//! Uniform noise.

use super::{Feature, Noise, check_scale, one_of, short, spread};
use crate::error::{Error, Result};
use crate::factors::batch::SquaredResidual;
use crate::factors::kernel::{Moments, clipped_normal};
use crate::numerics::special::{GAUSS_LEGENDRE_16, normal_mass, phi, upper_tail};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

/// Uniform noise on $\[-M, M\]$: $\sigma = M/\sqrt{3}$.
///
/// With $s = \sqrt{2R}$, $a = (c-M)/s$, $b = (c+M)/s$ and the iterated tails $T_0(z) =
/// \int_z^\infty Q$, $T_{n+1}(z) = \int_z^\infty T_n$,
/// $$ 1 - \mu = \tfrac{s}{M}\[T_0(a) - T_0(b)\], \qquad
/// 2R + \tfrac{M^2}{3} - m^{(2)} = \tfrac{2}{M}\[cs^2(T_1(a)-T_1(b)) + s^3(T_2(a)-T_2(b))\] $$
/// for $c \ge M$; for $c < M$ the same functions reflected. Where the smaller of $c$ and $M$ is
/// below $s$ these differences cancel, and sixteen points on the shorter interval are exact.
///
/// ```
/// use toclip::noise::{Noise, Uniform};
/// let noise = Uniform::new(3.0)?;
/// assert_eq!(noise.variance(), 3.0);
/// // Without model error, clipping at M/2 keeps half of the samples.
/// assert_eq!(noise.clipped(0.0, 1.5).mu, 0.5);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Raw")]
pub struct Uniform {
    half_width: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    half_width: Option<f64>,
    sigma: Option<f64>,
}

impl TryFrom<Raw> for Uniform {
    type Error = Error;
    fn try_from(raw: Raw) -> Result<Self> {
        let natural = ("half_width", raw.half_width);
        Uniform::new(one_of("uniform", natural, raw.sigma, |s| 3f64.sqrt() * s)?)
    }
}

impl Uniform {
    /// From the half-width $M > 0$.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless M is positive and finite.
    pub fn new(half_width: f64) -> Result<Self> {
        Ok(Uniform { half_width: check_scale("half_width", half_width)? })
    }

    /// From the standard deviation: $M = \sqrt{3}\thinspace \sigma$.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless σ is positive and finite.
    pub fn from_sigma(sigma: f64) -> Result<Self> {
        Ok(Uniform { half_width: 3f64.sqrt() * check_scale("sigma", sigma)? })
    }

    /// Both moments without model error, $R = 0$.
    fn exact(&self, c: f64) -> Moments {
        let m = self.half_width;
        if c >= m {
            Moments { mu: 1.0, m2: m * m / 3.0 }
        } else {
            Moments { mu: c / m, m2: c * c * (1.0 - 2.0 * c / (3.0 * m)) }
        }
    }

    /// Averages the kernel over the noise, for $M < s$ and $M \le c$.
    fn over_noise(&self, s: f64, c: f64) -> Moments {
        let mut x = Moments::default();
        for (u, w) in GAUSS_LEGENDRE_16 {
            x.add(w, clipped_normal(u * self.half_width, s, c));
        }
        x
    }

    /// Integrates the density of the residual over $\[0, c\]$, for $c < s$ and $c < M$.
    fn over_residual(&self, s: f64, c: f64) -> Moments {
        let m = self.half_width;
        let (mut mass, mut gap) = (0.0, 0.0);
        for (u, w) in GAUSS_LEGENDRE_16 {
            let x = u * c;
            let f = w * clipped_normal(x, s, m).mu;
            mass += f;
            gap += f * (1.0 - u * u);
        }
        let y = c / m;
        Moments { mu: y * mass, m2: c * c * (1.0 - y * gap) }
    }

    /// The closed form for $s \le c < M$, summed from the unclipped part.
    fn inside(&self, s: f64, c: f64) -> Moments {
        let m = self.half_width;
        let (near, far) = (Tails::at((m - c) / s), Tails::at((m + c) / s));
        let mu = (c + s * (far.t0 - near.t0)) / m;
        let t = s / c;
        let gap = 1.0 / 3.0 - t * t * (near.t1 + far.t1) + t * t * t * (near.t2 - far.t2);
        Moments { mu, m2: c * c * (1.0 - 2.0 * (c / m) * gap) }
    }

    /// The closed form for $c \ge M \ge s$, summed from the clipped part.
    fn outside(&self, s: f64, c: f64) -> Moments {
        let m = self.half_width;
        let (near, far) = (Tails::at((c - m) / s), Tails::at((c + m) / s));
        let mu = 1.0 - s / m * (near.t0 - far.t0);
        let (s_, c_) = (s / m, c / m);
        let excess = if near.t0 == 0.0 {
            0.0
        } else {
            2.0 * s_ * s_ * (c_ * (near.t1 - far.t1) + s_ * (near.t2 - far.t2))
        };
        Moments { mu, m2: m * m * (1.0 / 3.0 + s_ * s_ - excess) }
    }
}

/// Iterated integrals of the normal tail at one point: $T_0 = \int_z^\infty Q$, and so on.
struct Tails {
    t0: f64,
    t1: f64,
    t2: f64,
}

impl Tails {
    fn at(z: f64) -> Self {
        // Beyond 38 standard deviations all three underflow, and z itself may be infinite.
        if z > 38.0 {
            return Tails { t0: 0.0, t1: 0.0, t2: 0.0 };
        }
        let (q, f, z2) = (upper_tail(z), phi(z), z * z);
        Tails {
            t0: f - z * q,
            t1: 0.5 * ((1.0 + z2) * q - z * f),
            t2: ((2.0 + z2) * f - z * (3.0 + z2) * q) / 6.0,
        }
    }
}

impl Noise for Uniform {
    fn describe(&self) -> String {
        format!("uniform (M = {})", short(self.half_width))
    }

    fn sample(&self, rng: &mut dyn Rng) -> f64 {
        let u: f64 = rng.random();
        self.half_width * (2.0 * u - 1.0)
    }

    fn mean(&self) -> Option<f64> {
        Some(0.0)
    }

    fn second_moment(&self) -> f64 {
        self.half_width * self.half_width / 3.0
    }

    fn clipped(&self, r: f64, c: f64) -> Moments {
        let (s, m) = (spread(r), self.half_width);
        let second_moment = 2.0 * r + self.second_moment();
        if c == f64::INFINITY {
            return Moments::open(second_moment);
        }
        let x = if s == 0.0 {
            self.exact(c)
        } else if c < m {
            if c < s { self.over_residual(s, c) } else { self.inside(s, c) }
        } else if m < s {
            self.over_noise(s, c)
        } else {
            self.outside(s, c)
        };
        x.within(c, second_moment)
    }

    fn residual_density(&self, r: f64, x: f64) -> Option<(f64, f64)> {
        let (s, m) = (spread(r), self.half_width);
        // For M < s the mass between the edges is a difference of close tails, which the kernel
        // computes without cancellation.
        let f =
            if m < s { clipped_normal(x, s, m).mu } else { normal_mass((x - m) / s, (x + m) / s) };
        // The difference of the two ends, where they are close without cancellation.
        let between = x / s * (m / s);
        let df = if between.abs() < 1.0 {
            -2.0 * phi(x / s) * (-0.5 * (m / s).powi(2)).exp() * between.sinh() / s
        } else {
            (phi((x + m) / s) - phi((x - m) / s)) / s
        };
        Some((0.5 * f / m, 0.5 * df / m))
    }

    fn squared_residual(&self, r: f64) -> Option<SquaredResidual> {
        let m = self.half_width;
        // Below this the edges of the noise are treated as sharp, with an error of this size.
        let (v, least) = (2.0 * r, 1e-7 * m * m);
        Some(SquaredResidual::uniform(m, v.max(least)).exact_if(v >= least))
    }

    fn is_symmetric(&self) -> bool {
        true
    }

    fn features(&self, r: f64) -> Vec<Feature> {
        let (s, m) = (spread(r), self.half_width);
        vec![Feature::new(0.0, m + s), Feature::new(m, s), Feature::new(-m, s)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// All four regimes against the definition: the kernel averaged over a fine grid of noise.
        #[test]
        fn is_the_average_of_the_kernel(log_s in -2.0..2.0f64, log_c in -2.0..2.0f64) {
            let (s, c) = (10f64.powf(log_s), 10f64.powf(log_c));
            let noise = Uniform::new(1.0).unwrap();
            let got = noise.clipped(0.5 * s * s, c);
            let n = 20_000;
            let mut want = Moments::default();
            for i in 0..n {
                let e = (f64::from(i) + 0.5) / f64::from(n);
                want.add(1.0 / f64::from(n), clipped_normal(e, s, c));
            }
            prop_assert!((got.mu / want.mu - 1.0).abs() < 1e-6, "mu {} {}", got.mu, want.mu);
            prop_assert!((got.m2 / want.m2 - 1.0).abs() < 1e-6, "m2 {} {}", got.m2, want.m2);
        }
    }

    #[test]
    fn regimes_meet_without_a_step() {
        let noise = Uniform::new(1.0).unwrap();
        for s in [0.01, 0.3, 0.9999999999999, 1.0, 1.0000000000001, 5.0, 100.0] {
            for edge in [s, 1.0] {
                let at = |c: f64| noise.clipped(0.5 * s * s, c);
                let (below, above) = (at(edge * (1.0 - 1e-15)), at(edge * (1.0 + 1e-15)));
                assert!((below.mu / above.mu - 1.0).abs() < 1e-13, "mu at s = {s}, c = {edge}");
                assert!((below.m2 / above.m2 - 1.0).abs() < 1e-13, "m2 at s = {s}, c = {edge}");
            }
        }
    }
}
