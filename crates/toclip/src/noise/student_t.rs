//! Student-t noise, Cauchy included.

use super::{Feature, Noise, check_scale, one_of, short, spread};
use crate::error::{Error, Result};
use crate::factors::batch::SquaredResidual;
use crate::factors::batch::scale_mixture::ScaleMixture;
use crate::factors::kernel::{Moments, centred_series, centred_textbook, clipped_normal};
use crate::numerics::special::{SQRT_2_OVER_PI, phi};
use rand::Rng;
use rand_distr::{Distribution, Gamma, StandardNormal};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, OnceLock};

/// Student-t noise, $\epsilon = \text{scale}\cdot t_{\text{df}}$, for every df $> 0$; df $= 1$ is
/// Cauchy noise.
///
/// The variance, $\text{scale}^2\thinspace \text{df}/(\text{df}-2)$, is infinite for df ≤ 2. $\mu$
/// and $m^{(2)}$ are finite all the same, and they are all that the dynamics need.
///
/// # How it is computed
///
/// $\epsilon$ is normal with a random precision $w \sim \Gamma(a, a)$, $a = \text{df}/2$, so with
/// $w = e^u$
/// $$ \mu = \int \mu_{N(0,V(u))}\thinspace p(u)\thinspace du, \qquad V(u) = 2R + \text{scale}^2 e^{-u}, \qquad
/// p(u) \propto e^{a(u - e^u)}. $$
/// The integrand is analytic and bounded in the strip $|\Im u| < \pi/2$, so the trapezoidal rule
/// converges exponentially: with step $h$ its error is $(\cos\theta)^{-a} e^{-2\pi\theta/h}$ for
/// every $\theta$ in the strip, and we take the largest $h$ for which some $\theta$ makes that
/// $10^{-16}$. All terms are positive, so nothing cancels at any threshold. To the left the terms
/// decay like $e^{(a+1/2)u}$ only, but there they become geometric series and are summed in
/// closed form. The weights are normalised by their own sum, so no gamma function is needed.
///
/// ```
/// use toclip::noise::{Noise, StudentT};
/// let cauchy = StudentT::new(1.0, 0.5)?;
/// // P(|ε| ≤ scale) = 1/2 for the Cauchy distribution.
/// assert!((cauchy.clipped(0.0, 0.5).mu - 0.5).abs() < 1e-15);
/// assert_eq!(cauchy.mean(), None);
/// assert_eq!(cauchy.variance(), f64::INFINITY);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Raw")]
pub struct StudentT {
    df: f64,
    scale: f64,
    #[serde(skip)]
    quadrature: Arc<Quadrature>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    df: f64,
    scale: Option<f64>,
    sigma: Option<f64>,
}

impl TryFrom<Raw> for StudentT {
    type Error = Error;
    fn try_from(raw: Raw) -> Result<Self> {
        match (raw.scale, raw.sigma) {
            (None, Some(sigma)) => StudentT::from_sigma(raw.df, sigma),
            (scale, sigma) => {
                StudentT::new(raw.df, one_of("student_t", ("scale", scale), sigma, |s| s)?)
            }
        }
    }
}

impl PartialEq for StudentT {
    fn eq(&self, other: &Self) -> bool {
        (self.df, self.scale) == (other.df, other.scale)
    }
}

impl StudentT {
    /// From the degrees of freedom, df $> 0$, and the scale.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless both are positive and finite.
    pub fn new(df: f64, scale: f64) -> Result<Self> {
        if !(df > 0.0 && df.is_finite()) {
            let expected = "degrees of freedom must be positive and finite (for df = inf, use family `gaussian`)";
            return Err(Error::parameter("df", df, expected));
        }
        let scale = check_scale("scale", scale)?;
        Ok(StudentT { df, scale, quadrature: Arc::new(Quadrature::new(0.5 * df)) })
    }

    /// From df $> 2$ and the standard deviation: $\text{scale} =
    /// \sigma\sqrt{(\text{df}-2)/\text{df}}$.
    ///
    /// # Errors
    /// [`Error::Parameter`] for df ≤ 2, whose variance is infinite, or an impossible σ.
    pub fn from_sigma(df: f64, sigma: f64) -> Result<Self> {
        if df <= 2.0 {
            let expected = "Student-t noise has a standard deviation only for df > 2; give `scale` instead of `sigma`";
            return Err(Error::parameter("df", df, expected));
        }
        StudentT::new(df, check_scale("sigma", sigma)? * ((df - 2.0) / df).sqrt())
    }

    /// Thresholds so far from the scale that only a power law is left: $\mu \propto c$ and
    /// $m^{(2)} = c^2$ towards zero, $\mu = 1$ and $m^{(2)} \propto c^{2-\text{df}}$ (or constant)
    /// towards infinity.
    fn far_out(&self, r: f64, c: f64, q: f64) -> Moments {
        let edge = if q > FAR { FAR } else { 1.0 / FAR };
        let at = self.clipped(r, edge * self.scale);
        let ratio = q / edge;
        if q > FAR {
            Moments { mu: at.mu, m2: at.m2 * ratio.powf((2.0 - self.df).max(0.0)) }
        } else {
            Moments { mu: at.mu * ratio, m2: c * c }
        }
    }

    /// Calls `term(V/scale², weight)` for every node of the rule with weight above rounding or
    /// above `floor` (a value of $u$), and returns the last $u$ and weight on the left.
    fn for_each_node(
        &self,
        rho: f64,
        floor: f64,
        negligible: f64,
        mut term: impl FnMut(f64, f64),
    ) -> (f64, f64) {
        let quadrature = &*self.quadrature;
        for &(inverse, weight) in &quadrature.right {
            term(rho + inverse, weight);
        }
        let mut k = 0;
        loop {
            let (u, inverse, weight) = quadrature.left_node(k);
            term(rho + inverse, weight);
            if u < floor || weight < negligible {
                return (u, weight);
            }
            k += 1;
        }
    }
}

/// Ratios of threshold or error to scale beyond which their squares would overflow.
const FAR: f64 = 1e140;

/// The part of the trapezoidal rule that depends on df alone.
#[derive(Debug)]
struct Quadrature {
    /// $a = \text{df}/2$.
    a: f64,
    /// The step in $u$.
    h: f64,
    /// $(e^{-u}, p(u))$ for $u \ge 0$.
    right: Vec<(f64, f64)>,
    /// $(e^{-u}, p(u))$ for $u = -h, -2h, \dots$ as far as most thresholds need.
    left: Vec<(f64, f64)>,
    /// The same nodes, from the first to one so far to the left that no threshold reaches it, for
    /// the transforms of batches and smooth rules.
    scales: OnceLock<Arc<ScaleMixture>>,
}

impl Quadrature {
    fn new(a: f64) -> Self {
        // e^(−36.8) = 1e-16.
        let h = longest_step(a, 36.8);
        let mut quadrature =
            Quadrature { a, h, right: Vec::new(), left: Vec::new(), scales: OnceLock::new() };
        let mut u = 0.0;
        while quadrature.weight(u) > 1e-19 {
            quadrature.right.push(((-u).exp(), quadrature.weight(u)));
            u += h;
        }
        // Recomputed from integers: adding h repeatedly would drift.
        for (k, node) in quadrature.right.iter_mut().enumerate() {
            let u = k as f64 * h;
            *node = ((-u).exp(), (a * log_weight(u)).exp());
        }
        for k in 1..400 {
            let u = -f64::from(k) * h;
            let weight = quadrature.weight(u);
            if u < -45.0 || weight < 1e-60 {
                break;
            }
            quadrature.left.push(((-u).exp(), weight));
        }
        quadrature
    }

    /// The mixture of scales $e^{-u}$, to sixteen digits on the real axis. Along the paths of
    /// batches the integrand is analytic in half of the strip at least, and there are nine left.
    fn scales(&self) -> &Arc<ScaleMixture> {
        self.scales.get_or_init(|| {
            let mut weights: Vec<f64> = self.right.iter().rev().map(|node| node.1).collect();
            let first = -((weights.len() - 1) as f64) * self.h;
            let mut k = 1.0;
            // Squares of variances must not overflow, nor times those of z.
            while self.weight(-k * self.h) > 1e-60 && k * self.h < 160.0 {
                weights.push(self.weight(-k * self.h));
                k += 1.0;
            }
            // Left of the last node the weights are a geometric series.
            let beyond = self.weight(-k * self.h) / -(-self.a * self.h).exp_m1();
            let total = beyond + weights.iter().sum::<f64>();
            weights.iter_mut().for_each(|w| *w /= total);
            Arc::new(ScaleMixture::new(first, self.h, weights, beyond / total))
        })
    }

    /// $p(u)$ up to a constant, one at its peak $u = 0$.
    fn weight(&self, u: f64) -> f64 {
        (self.a * log_weight(u)).exp()
    }

    fn left_node(&self, k: usize) -> (f64, f64, f64) {
        let u = -((k + 1) as f64) * self.h;
        match self.left.get(k) {
            Some(&(inverse, weight)) => (u, inverse, weight),
            None => (u, (-u).exp(), self.weight(u)),
        }
    }
}

/// The longest step with an error of $e^{-\text{digits}}$: $2\pi\theta/h = \text{digits} + a
/// \ln(1/\cos\theta)$ for the best $\theta$.
fn longest_step(a: f64, digits: f64) -> f64 {
    let step = |theta: f64| {
        // For tiny θ the cosine rounds to one.
        let bend = if theta < 1e-3 { 0.5 * theta * theta } else { -theta.cos().ln() };
        2.0 * std::f64::consts::PI * theta / (digits + a * bend)
    };
    let mut h = 0.0f64;
    for k in 1..600 {
        h = h.max(step(std::f64::consts::FRAC_PI_2 * f64::from(k) / 600.0));
        // For large df the best θ is of order 1/√a.
        h = h.max(step((f64::from(k) / 50.0 / a.sqrt()).min(1.5)));
    }
    h
}

/// $1 + u - e^u$, without cancellation near zero, where large df concentrates the weight.
fn log_weight(u: f64) -> f64 {
    if u.abs() > 0.3 {
        return 1.0 + u - u.exp();
    }
    let (mut sum, mut term) = (0.0, -0.5 * u * u);
    for n in 3..20 {
        sum += term;
        term *= u / f64::from(n);
    }
    sum
}

/// Below this, second-order terms of the left tail are beneath rounding.
const TAIL: f64 = 1e-9;

impl Noise for StudentT {
    fn describe(&self) -> String {
        format!("Student-t (df = {}, scale = {})", short(self.df), short(self.scale))
    }

    fn sample(&self, rng: &mut dyn Rng) -> f64 {
        let z: f64 = StandardNormal.sample(rng);
        let a = 0.5 * self.df;
        // Both parameters are positive and finite by construction.
        let precision = Gamma::new(a, 1.0 / a).map_or(1.0, |gamma| gamma.sample(rng));
        // For tiny df the precision underflows; the draw is then the largest number, not ∞ or NaN.
        let draw = self.scale * z / precision.sqrt();
        draw.clamp(-f64::MAX, f64::MAX)
    }

    fn mean(&self) -> Option<f64> {
        (self.df > 1.0).then_some(0.0)
    }

    fn second_moment(&self) -> f64 {
        if self.df > 2.0 {
            self.scale * self.scale * self.df / (self.df - 2.0)
        } else {
            f64::INFINITY
        }
    }

    fn variance(&self) -> f64 {
        self.second_moment()
    }

    fn clipped(&self, r: f64, c: f64) -> Moments {
        let second_moment = 2.0 * r + self.second_moment();
        if c == f64::INFINITY {
            return Moments::open(second_moment);
        }
        // In units of the scale: V = ρ + e^(−u), threshold q = c/scale.
        let (s, q) = (spread(r) / self.scale, c / self.scale);
        if s > FAR {
            // The noise is lost in the error of the model.
            return clipped_normal(0.0, spread(r), c).within(c, second_moment);
        }
        if !(0.99 / FAR..=1.01 * FAR).contains(&q) {
            return self.far_out(r, c, q).within(c, second_moment);
        }
        let (a, h) = (self.quadrature.a, self.quadrature.h);
        let rho = s * s;
        let q2 = q * q;
        let (mut total, mut mu, mut m2) = (0.0, 0.0, 0.0);
        let add = |v: f64, weight: f64| {
            let y = q / v.sqrt();
            total += weight;
            if y < 1.0 {
                let (inside, gap) = centred_series(y);
                mu += weight * inside;
                m2 += weight * q2 * (1.0 - gap);
            } else {
                let (inside, square) = centred_textbook(y);
                mu += weight * inside;
                m2 += weight * v * square;
            }
        };
        // Left of the floor a·e^u, ρe^u and q²e^u are below TAIL; where the weight is so small
        // that even c² per sample would not show, there is no tail to add.
        let floor = TAIL.ln() - a.max(rho).max(q2).max(1e-300).ln();
        let negligible = 1e-19 / (q2 / (1.0 + rho).min(q2)).max(1.0);
        let (u, weight) = self.for_each_node(rho, floor, negligible, add);
        if weight >= negligible {
            // Σ over the nodes left of u: geometric series with a first-order correction.
            let e = u.exp();
            let y = q * (0.5 * u).exp();
            let geometric = |power: f64| 1.0 / (power * h).exp_m1();
            let mass = geometric(a) - a * e * geometric(a + 1.0);
            let root = |over: f64| {
                let correction = a * e + 0.5 * rho * e + y * y / over;
                geometric(a + 0.5) - correction * geometric(a + 1.5)
            };
            // p(u) carries its own correction at the last node: divide it out.
            let lead = weight / (1.0 - a * e);
            total += lead * mass;
            mu += lead * SQRT_2_OVER_PI * y * root(6.0);
            m2 += lead * q2 * (mass - 2.0 / 3.0 * SQRT_2_OVER_PI * y * root(10.0));
        }
        let unit = self.scale * self.scale;
        Moments { mu: mu / total, m2: unit * (m2 / total) }.within(c, second_moment)
    }

    fn residual_density(&self, r: f64, x: f64) -> Option<(f64, f64)> {
        let s = spread(r) / self.scale;
        let x = x / self.scale;
        let (mut total, mut f, mut df) = (0.0, 0.0, 0.0);
        // Where e^(−u) is above ρ and x², V is e^(−u) and the terms decay like e^((a+1/2)u).
        let floor = -2.0 - 40.0 / (self.quadrature.a + 0.5) - (s * s + x * x).max(1.0).ln();
        let last = self.for_each_node(s * s, floor, 1e-300, |v, weight| {
            let std = v.sqrt();
            let g = weight * phi(x / std) / std;
            total += weight;
            f += g;
            df -= g * x / v;
        });
        total += last.1 / (self.quadrature.a * self.quadrature.h).exp_m1();
        Some((f / total / self.scale, df / total / (self.scale * self.scale)))
    }

    fn squared_residual(&self, r: f64) -> Option<SquaredResidual> {
        Some(SquaredResidual::heavy(self.quadrature.scales().clone(), self.scale, 2.0 * r))
    }

    fn is_symmetric(&self) -> bool {
        true
    }

    fn features(&self, r: f64) -> Vec<Feature> {
        super::centred_features(spread(r), self.scale)
    }
}
