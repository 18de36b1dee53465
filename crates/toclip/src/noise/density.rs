//! Noise given by its density: the easiest way to add a distribution of your own.

use super::{Feature, Noise, NoiseError, check_scale, spread};
use crate::error::Result;
use crate::factors::batch::SquaredResidual;
use crate::factors::batch::squared_residual::TransformShape;
use crate::factors::kernel::{Moments, clipped_normal};
use crate::numerics::quadrature::{half_line, panels_from};
use crate::numerics::special::{GAUSS_LEGENDRE_16, phi};
use rand::{Rng, RngExt};
use std::sync::Arc;

type Function = Arc<dyn Fn(f64) -> f64 + Send + Sync>;

/// Noise with any density $f_\epsilon$: $\mu = \int f_\epsilon(e)\thinspace \mu_{N(e,
/// 2R)}\thinspace de$.
///
/// The integrals are adaptive, to about $10^{-12}$ for a density that is smooth on its scale, and
/// cost some tens of microseconds. A family of your own with a closed form implements
/// [`Noise`] directly; see the [module](crate::noise) for an example of this type.
#[derive(Clone)]
pub struct Density {
    name: String,
    density: Function,
    quantile: Function,
    scale: f64,
    mean: Option<f64>,
    second_moment: f64,
    /// $(w_j, |e_j|)$ that stand for the noise in a sum of squares.
    squares: Vec<(f64, f64)>,
}

impl std::fmt::Debug for Density {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Density").field("name", &self.name).field("scale", &self.scale).finish()
    }
}

impl Density {
    /// From a name, the density, the quantile function (to sample) and a typical scale.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) for an impossible scale, [`NoiseError`] if the density is negative
    /// or does not integrate to one within $10^{-6}$.
    ///
    /// ```
    /// use toclip::noise::{Density, Noise};
    /// let cauchy = Density::new(
    ///     "Cauchy",
    ///     |e: f64| 1.0 / (std::f64::consts::PI * (1.0 + e * e)),
    ///     |u: f64| (std::f64::consts::PI * (u - 0.5)).tan(),
    ///     1.0,
    /// )?;
    /// assert_eq!(cauchy.second_moment(), f64::INFINITY);
    /// assert!((cauchy.clipped(0.0, 1.0).mu - 0.5).abs() < 1e-12);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn new(
        name: impl Into<String>,
        density: impl Fn(f64) -> f64 + Send + Sync + 'static,
        quantile: impl Fn(f64) -> f64 + Send + Sync + 'static,
        scale: f64,
    ) -> Result<Self> {
        let name = name.into();
        let scale = check_scale("scale", scale)?;
        let mut noise = Density {
            name,
            density: Arc::new(density),
            quantile: Arc::new(quantile),
            scale,
            mean: None,
            second_moment: 0.0,
            squares: Vec::new(),
        };
        let [mass, absolute, second, first] =
            noise.integrate(&[], |e| [1.0, e.abs(), e * e, e.max(0.0)]);
        if !((mass - 1.0).abs() < 1e-6) {
            return Err(NoiseError::NotNormalised { name: noise.name, mass, scale }.into());
        }
        noise.mean = absolute.is_finite().then_some(2.0 * first - absolute);
        noise.second_moment = second;
        noise.squares = noise.nodes(mass);
        Ok(noise)
    }

    /// Sixteen points on each of the panels that cover $|\epsilon|$: even ones up to four scales,
    /// then wider by a quarter each until the remaining mass is negligible.
    fn nodes(&self, mass: f64) -> Vec<(f64, f64)> {
        let (mut from, mut width, mut sum) = (0.0, 0.25 * self.scale, 0.0);
        let mut nodes = Vec::new();
        while mass - sum > 1e-12 && from < 1e8 * self.scale {
            let half = 0.5 * width;
            for (u, weight) in GAUSS_LEGENDRE_16 {
                for e in [from + half * (1.0 - u), from + half * (1.0 + u)] {
                    let w = weight * half * ((self.density)(e) + (self.density)(-e));
                    nodes.push((w, e));
                    sum += w;
                }
            }
            from += width;
            width = width.max(0.25 * from);
        }
        nodes.push(((mass - sum).max(0.0), from));
        nodes.iter_mut().for_each(|node| node.0 /= sum.max(mass));
        nodes
    }

    /// $\int f_\epsilon(e)\thinspace g(e)\thinspace de$, with panels ending at the given points.
    fn integrate<const N: usize>(&self, points: &[f64], g: impl Fn(f64) -> [f64; N]) -> [f64; N] {
        let side = |sign: f64| {
            let mut ends: Vec<f64> = points.iter().map(|x| sign * x).collect();
            ends.extend([0.25, 0.5, 1.0, 2.0, 4.0].map(|k| k * self.scale));
            half_line(
                |e| {
                    let f = (self.density)(sign * e);
                    g(sign * e).map(|x| f * x)
                },
                &panels_from(0.0, ends),
            )
        };
        let (right, left) = (side(1.0), side(-1.0));
        std::array::from_fn(|i| right[i] + left[i])
    }
}

/// Points around `x` between which a normal kernel of width `s` is smooth.
fn around(x: f64, s: f64) -> impl Iterator<Item = f64> {
    [-8.0, -4.0, -2.0, 0.0, 2.0, 4.0, 8.0].into_iter().map(move |k| x + k * s)
}

impl Noise for Density {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn sample(&self, rng: &mut dyn Rng) -> f64 {
        // Never 0 or 1, where a quantile function may be infinite.
        let u = (rng.random::<f64>() + 0.5 * f64::EPSILON).min(1.0 - f64::EPSILON);
        (self.quantile)(u)
    }

    fn mean(&self) -> Option<f64> {
        self.mean
    }

    fn second_moment(&self) -> f64 {
        self.second_moment
    }

    fn clipped(&self, r: f64, c: f64) -> Moments {
        let second_moment = 2.0 * r + self.second_moment;
        if c == f64::INFINITY {
            return Moments::open(second_moment);
        }
        let s = spread(r);
        let points: Vec<f64> = around(c, s).chain(around(-c, s)).chain(around(0.0, s)).collect();
        let [mu, m2] = self.integrate(&points, |e| {
            let x = clipped_normal(e, s, c);
            [x.mu, x.m2]
        });
        Moments { mu, m2 }.within(c, second_moment)
    }

    fn residual_density(&self, r: f64, x: f64) -> Option<(f64, f64)> {
        let s = spread(r);
        if s == 0.0 {
            return None;
        }
        let points: Vec<f64> = around(-x, s).collect();
        let [f, df] = self.integrate(&points, |e| {
            let z = (x + e) / s;
            let f = phi(z) / s;
            [f, -z / s * f]
        });
        Some((f, df))
    }

    fn squared_residual(&self, r: f64) -> Option<SquaredResidual> {
        // Below this corners of the density are treated as sharp, with an error of this size.
        let v = (2.0 * r).max(1e-7 * self.scale * self.scale);
        let squared = SquaredResidual::located(self.squares.clone(), v, TransformShape::Spread(v));
        Some(squared.exact_if(false))
    }

    fn features(&self, r: f64) -> Vec<Feature> {
        super::centred_features(spread(r), self.scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Laplace;

    fn laplace() -> Density {
        let density = |e: f64| 0.5 * (-e.abs()).exp();
        let quantile = |u: f64| if u < 0.5 { (2.0 * u).ln() } else { -(2.0 * (1.0 - u)).ln() };
        Density::new("two-sided exponential", density, quantile, 1.0).unwrap()
    }

    #[test]
    fn matches_the_closed_form_of_the_same_distribution() {
        let (given, closed) = (laplace(), Laplace::from_rate(1.0).unwrap());
        assert!((given.second_moment() - 2.0).abs() < 1e-12);
        for r in [0.0, 1e-6, 0.1, 3.0, 1e4] {
            for c in [1e-3, 0.5, 2.0, 30.0] {
                let (x, y) = (given.clipped(r, c), closed.clipped(r, c));
                assert!((x.mu / y.mu - 1.0).abs() < 1e-11, "mu at {r}, {c}: {} {}", x.mu, y.mu);
                assert!((x.m2 / y.m2 - 1.0).abs() < 1e-11, "m2 at {r}, {c}: {} {}", x.m2, y.m2);
            }
        }
        let (f, df) = given.residual_density(0.3, 0.7).unwrap();
        let (g, dg) = closed.residual_density(0.3, 0.7).unwrap();
        assert!((f / g - 1.0).abs() < 1e-11 && (df / dg - 1.0).abs() < 1e-11);
    }

    #[test]
    fn refuses_invalid_densities() {
        let half = Density::new("half", |e: f64| 0.25 * (-e.abs()).exp(), |u| u, 1.0);
        assert!(half.unwrap_err().to_string().contains("integrates to 0.5"));
    }
}
