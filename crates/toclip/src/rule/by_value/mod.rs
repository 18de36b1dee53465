//! $\mu$ and $m^{(2)}$ of one coordinate of the gradient under clipping by value.
//!
//! Coordinate $j$ of the gradient of a sample is $U = X\sqrt\lambda\thinspace z$ with $X$ the
//! residual and $z$ a standard normal variable, independent of $X$ in high dimensions. Clipped at
//! $c$ it has, with $u = c/\sqrt\lambda$ and by Stein's lemma,
//! $$ \mu = E\[z^2; |Xz| \le u\], \qquad \frac{m^{(2)}}{\lambda} = E\min(X^2z^2, u^2). $$
//! Integrated over $X$ first, both are averages of the clipped moments of the residual, which
//! every [noise](crate::noise) provides:
//! $$ \mu = E\thinspace z^2 \mu_{u/|z|}(R), \qquad
//! \frac{m^{(2)}}{\lambda} = E\thinspace z^2 m^{(2)}_{u/|z|}(R). $$
//! All terms are positive, so nothing cancels, however small or large $u$ is.
//!
//! The usual form of the first, $\mu = P(|U| \le c) - c\thinspace(f_U(c) + f_U(-c))$, is the same
//! number: $(z\thinspace g(z))^\prime = g(z) + z\thinspace g^\prime(z)$ with $g(z) = \mu_{u/z}$.
//!
//! * [`Profile`]: the distribution of $|X|$ at one risk, averaged by a [`Quadrature`] for many $u$;
//! * [`ByValueTable`]: both numbers over $(\ln R, \ln u)$, filled where it is used.

mod table;

pub(crate) use table::ByValueTable;

use crate::factors::kernel::Moments;
use crate::noise::{Feature, Noise};
use crate::numerics::special::{GAUSS_LEGENDRE_16, SQRT_2_OVER_PI};
use std::collections::HashMap;

/// Beyond this $z^2\varphi(z)$ is lost to rounding.
const FAR: f64 = 9.5;
/// The last panel ends at so many e-folds above all scales, where the weight $(u/x)^3$ is
/// $10^{-15}$. From there on $\mu$ is constant and $m^{(2)}$ a power of $x$.
const FOLDS: f64 = 11.5;
/// The length of panels in $\ln x$: sixteen points integrate the weight over them to 3e-14.
const SHORT: f64 = 1.2;
/// Where $z = u/x$ is below [`NEAR`] the weight is a power of $x$, and panels are three times as
/// long.
const LONG: f64 = 3.0 * SHORT;
const NEAR: f64 = 0.3;
/// A panel is halved until the last coefficients of its Legendre series are below this. The errors
/// of the integrals are those coefficients times the same ones of the weight, which are
/// $10^{-6}$.
const TAIL: f64 = 1e-8;
/// A panel is cut into at most this many pieces: a staircase of thousands of steps would take forever.
const MOST_PIECES: usize = 2000;

/// $\mu$ and $m^{(2)}$ of a coordinate with eigenvalue $\lambda$, clipped at $c$.
pub(crate) fn clipped_coordinate(noise: &dyn Noise, lambda: f64, r: f64, c: f64) -> Moments {
    let u = c / lambda.sqrt();
    if u == f64::INFINITY {
        let m2 = if lambda == 0.0 { 0.0 } else { lambda * (2.0 * r + noise.second_moment()) };
        return Moments { mu: 1.0, m2 };
    }
    let x = Profile::new(noise, r).quadrature(noise, u, u).at(u);
    Moments { mu: x.mu, m2: lambda * x.m2 }
}

/// $\mu_x(R)$ and $m^{(2)}_x(R)$ at one risk, at the points of panels over $\ln x$.
///
/// Panels have fixed places and are computed when they are first needed, so that several ranges of
/// $u$ share them and none changes another.
#[derive(Debug)]
pub(crate) struct Profile {
    r: f64,
    second_moment: f64,
    /// The largest scale of the residual; zero for none.
    scale: f64,
    /// $\ln x$ where the distribution changes within a fraction of $x$.
    edges: Vec<f64>,
    short: HashMap<i64, Vec<Point>>,
    long: HashMap<i64, Vec<Point>>,
}

/// $x$, the weight of $d\ln x$, and the moments clipped at $x$.
type Point = (f64, f64, Moments);

impl Profile {
    pub fn new(noise: &dyn Noise, r: f64) -> Self {
        let features = noise.features(r);
        let scale = features.iter().map(|f| f.at.abs() + 8.0 * f.width).fold(0.0, f64::max);
        let sharp = features.iter().filter(|f| f.width < 0.25 * f.at.abs());
        let about =
            |f: &Feature| [-8.0, -2.0, 0.0, 2.0, 8.0].map(|k| (f.at.abs() + k * f.width).ln());
        let mut edges: Vec<f64> = sharp.flat_map(about).filter(|y| y.is_finite()).collect();
        edges.sort_by(f64::total_cmp);
        let second_moment = 2.0 * r + noise.second_moment();
        let (short, long) = (HashMap::new(), HashMap::new());
        Profile { r, second_moment, scale, edges, short, long }
    }

    /// The integrals for all $u$ from `low` to `high`, both finite and positive.
    pub fn quadrature(&mut self, noise: &dyn Noise, low: f64, high: f64) -> Quadrature {
        let first = ((low.ln() - FAR.ln()) / SHORT).floor() as i64;
        let middle = ((high.ln() - NEAR.ln()) / LONG).ceil() as i64;
        let last = ((self.scale.max(high).ln() + FOLDS) / LONG).ceil() as i64;
        let mut points = Vec::new();
        for k in first..3 * middle {
            self.add_panel(noise, k, SHORT, &mut points);
        }
        for k in middle..last.max(middle) {
            self.add_panel(noise, k, LONG, &mut points);
        }
        let end = abscissa(last.max(middle) as f64 * LONG);
        let at_end = noise.clipped(self.r, end);
        // d m2/dx = 2x (1 − μ).
        let slope = 2.0 * end * (1.0 - at_end.mu) * (end / at_end.m2);
        let growth = if slope.is_finite() { slope.clamp(0.0, 2.0) } else { 0.0 };
        Quadrature { points, end: (end, at_end), growth, second_moment: self.second_moment }
    }

    fn add_panel(&mut self, noise: &dyn Noise, k: i64, length: f64, points: &mut Vec<Point>) {
        let known = if length == SHORT { &self.short } else { &self.long };
        if let Some(own) = known.get(&k) {
            points.extend(own);
            return;
        }
        let own = self.panel(noise, k as f64 * length, (k + 1) as f64 * length);
        points.extend(&own);
        let known = if length == SHORT { &mut self.short } else { &mut self.long };
        known.insert(k, own);
    }

    /// The points between two values of $\ln x$, in as many pieces as it takes.
    fn panel(&self, noise: &dyn Noise, a: f64, b: f64) -> Vec<Point> {
        let inside = self.edges.iter().copied().filter(|y| *y > a && *y < b);
        let mut ends: Vec<f64> = [a].into_iter().chain(inside).chain([b]).collect();
        ends.dedup_by(|b, a| *b - *a <= 1e-13);
        let mut open: Vec<(f64, f64)> = ends.windows(2).map(|w| (w[0], w[1])).collect();
        let mut points = Vec::with_capacity(16 * open.len());
        let mut pieces = open.len();
        while let Some((a, b)) = open.pop() {
            let piece = Piece::new(noise, self.r, a, b);
            let long = b - a > 1e-13 * b.abs().max(1.0);
            if long && pieces < MOST_PIECES && !piece.is_resolved(self.scale) {
                open.extend([(a, 0.5 * (a + b)), (0.5 * (a + b), b)]);
                pieces += 1;
                continue;
            }
            points.extend(piece.points);
        }
        points
    }
}

/// The integrals over a range of $x$ at one risk, as functions of $u$.
#[derive(Debug)]
pub(crate) struct Quadrature {
    points: Vec<Point>,
    /// The end of the last panel, and the moments clipped there.
    end: (f64, Moments),
    /// $p$ of $m^{(2)} \propto x^p$ from there on; zero for a finite variance.
    growth: f64,
    second_moment: f64,
}

impl Quadrature {
    /// $\mu$ and $m^{(2)}/\lambda$ at $u$.
    pub fn at(&self, u: f64) -> Moments {
        let (mut mu, mut m2) = (0.0, 0.0);
        for &(x, w, at) in &self.points {
            let z = u / x;
            // 2 z³ φ(z) dlnx.
            let weight = w * z * z * z * (-0.5 * z * z).exp();
            mu += weight * at.mu;
            m2 += weight * at.m2;
        }
        // ∫_0^a z² φ(z) dz of a tiny a, and the same with z^(−p).
        let rest = (u / self.end.0).powi(3);
        mu = SQRT_2_OVER_PI * (mu + rest / 3.0 * self.end.1.mu);
        m2 = SQRT_2_OVER_PI * (m2 + rest / (3.0 - self.growth) * self.end.1.m2);
        Moments { mu, m2 }.within(u, self.second_moment)
    }
}

/// Sixteen points of Gauss and Legendre between two values of $\ln x$.
struct Piece {
    points: [Point; 16],
}

impl Piece {
    fn new(noise: &dyn Noise, r: f64, a: f64, b: f64) -> Self {
        let (centre, half) = (0.5 * (a + b), 0.5 * (b - a));
        let point = |(t, w): (f64, f64)| {
            let x = abscissa(centre + half * t);
            (x, w * half, noise.clipped(r, x))
        };
        Piece { points: legendre_points().map(point) }
    }

    /// Whether the polynomials through the points are $\mu$ and $m^{(2)}$ on the piece.
    ///
    /// No integral is less than a constant times $\mu_x (u/x)^3$ at the `scale` of the residual,
    /// where $\mu_x$ is about one: where $\mu_x x^{-3}$ is negligible beside that, it need not be
    /// resolved.
    fn is_resolved(&self, scale: f64) -> bool {
        let (mut tails, mut sizes) = ([[0.0; 3]; 2], [0.0_f64; 2]);
        for ((t, w), p) in legendre_points().into_iter().zip(&self.points) {
            let last = last_legendre(t);
            for (k, y) in [p.2.mu, p.2.m2].into_iter().enumerate() {
                sizes[k] = sizes[k].max(y);
                for i in 0..3 {
                    tails[k][i] += w * last[i] * y;
                }
            }
        }
        // Numbers next to underflow have no digits to resolve.
        let small = |k: usize| {
            sizes[k] < 1e-280 || tails[k].iter().all(|a| 15.0 * a.abs() <= TAIL * sizes[k])
        };
        let x = self.points[0].0.min(self.points[1].0);
        let negligible = sizes[0] <= 1e-17 * (x / scale).powi(3);
        (small(0) || negligible) && small(1)
    }
}

/// $x$ of $\ln x$, within the range of numbers.
fn abscissa(y: f64) -> f64 {
    y.clamp(-708.0, 709.0).exp()
}

fn legendre_points() -> [(f64, f64); 16] {
    std::array::from_fn(|i| {
        let (t, w) = GAUSS_LEGENDRE_16[i / 2];
        (if i % 2 == 0 { -t } else { t }, w)
    })
}

/// $P_{13}, P_{14}, P_{15}$ at $t$.
fn last_legendre(t: f64) -> [f64; 3] {
    let mut p = [1.0, t, 0.5 * (3.0 * t * t - 1.0)];
    for n in 2..15 {
        let n = f64::from(n);
        p = [p[1], p[2], ((2.0 * n + 1.0) * t * p[2] - n * p[1]) / (n + 1.0)];
    }
    p
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Component, Family, Gaussian, Laplace, Mixture, NoNoise, Rademacher};
    use crate::noise::{StudentT, Uniform};
    use crate::numerics::quadrature::{half_line, panels_from};
    use crate::numerics::special::phi;
    use crate::rule::radial::skip;

    pub(super) fn families() -> Vec<Family> {
        let parts = [
            Component { weight: 0.7, mean: -0.5, std: 0.01 },
            Component { weight: 0.3, mean: 2.0, std: 0.3 },
        ];
        vec![
            NoNoise.into(),
            Gaussian::new(0.7).unwrap().into(),
            Rademacher::new(1.0, 0.4).unwrap().into(),
            Rademacher::new(1.0, 1.0).unwrap().into(),
            Uniform::new(1.0).unwrap().into(),
            Laplace::new(2.0).unwrap().into(),
            StudentT::new(1.0, 0.5).unwrap().into(),
            StudentT::new(2.5, 0.3).unwrap().into(),
            Mixture::new(&parts).unwrap().into(),
        ]
    }

    /// The usual form of μ: an average of what skipping leaves of the residual.
    #[test]
    fn is_the_average_of_skipping() {
        for noise in families() {
            for r in [1e-3, 0.3] {
                for u in [0.02, 1.0, 9.0] {
                    let features = noise.features(r);
                    let points = features.iter().flat_map(|f| {
                        [0.5, 1.0, 2.0, 4.0, 8.0]
                            .into_iter()
                            .flat_map(|k| [f.at.abs() + k * f.width, f.at.abs() - k * f.width])
                            .map(|x| u / x)
                    });
                    let points = points.filter(|z| *z < 10.0).chain([1e-3, 0.1, 1.0, 3.0]);
                    let f = |z: f64| [2.0 * phi(z) * skip(&noise, r, u / z).mu];
                    let [want] = half_line(f, &panels_from(0.0, points.collect()));
                    let got = clipped_coordinate(&noise, 1.0, r, u).mu;
                    let place = || format!("{} R = {r}, u = {u}", noise.describe());
                    assert!((got - want).abs() < 1e-10, "{}: {got} against {want}", place());
                }
            }
        }
    }

    /// For |X| = 1 and R = 0 all is known: μ = E[z²; |z| ≤ u], m2 = E min(z², u²).
    #[test]
    fn a_sign_is_a_clipped_normal() {
        let noise = Rademacher::new(1.0, 1.0).unwrap();
        for u in [1e-4_f64, 0.1, 1.0, 3.0, 30.0] {
            let at = clipped_coordinate(&noise, 1.0, 0.0, u);
            let exact = skip(&Gaussian::new(1.0).unwrap(), 0.0, u);
            let clip = Gaussian::new(1.0).unwrap().clipped(0.0, u);
            assert!((at.mu / exact.mu - 1.0).abs() < 1e-10, "{u}: {at:?} {exact:?}");
            assert!((at.m2 / clip.m2 - 1.0).abs() < 1e-11, "{u}: {at:?} {clip:?}");
        }
    }

    #[test]
    fn the_ends_of_the_number_line_are_survived() {
        for noise in families() {
            for r in [0.0, 1e-300, 1e-20, 1.0, 1e300] {
                for u in [f64::MIN_POSITIVE, 1e-10, 1.0, 1e150, f64::MAX] {
                    let x = clipped_coordinate(&noise, 1.0, r, u);
                    let place = || format!("{} R = {r:e}, u = {u:e}: {x:?}", noise.describe());
                    assert!((0.0..=1.0).contains(&x.mu) && x.m2 >= 0.0, "{}", place());
                }
            }
        }
    }
}
