//! The integrals of logistic regression.
//!
//! As $P(y = 1 | v) = \rho + (1-2\rho)\sigma(v)$ with $\sigma(-v) = 1 - \sigma(v)$, and $r(u, 1) = -r(-u, 0)$, the
//! pair $(-u, -v)$ has the other label, so it is enough to look at label 0. With $\psi$ the residual
//! of label 0 clipped at $c$, which has one kink,
//! $$ a = 2E\bigl\[{\psi^\prime}(u)\thinspace P(0 | u)\bigr\], \qquad b = -2(1-2\rho)\thinspace
//! E\bigl\[\psi(u)\thinspace{\sigma^\prime}(v)\bigr\], \qquad m^{(2)} = 2E\bigl\[\psi(u)^2\thinspace P(0 | u)\bigr\]. $$
//! Given $u$ the teacher's logit is normal, and the integral over it is closed
//! ([`link`](super::link)).

use super::link::{LOGISTIC, NormalTail, mean_slope};
use super::logistic::sigmoid;
use super::{Coefficients, Overlaps};
use crate::numerics::special::{FRAC_1_SQRT_2PI, GAUSS_LEGENDRE_8, GAUSS_LEGENDRE_16};
use std::f64::consts::PI;

/// Labels 0 and 1, a share $\rho$ of which is flipped.
pub(super) struct Binary {
    /// $\rho$.
    pub flips: f64,
}

/// How far from the real line $\sigma$ has its first pole.
const POLE: f64 = PI;

/// Sixteen points integrate a function that is analytic in an ellipse around the panel with an error
/// of the power $-32$ of the sum of the half axes.
const ELLIPSE: f64 = 2.45;
/// Half the widest panel on which they integrate a normal density.
const WIDEST: f64 = 1.9;
/// The same for eight points, for short panels next to the kink.
const ELLIPSE_OF_8: f64 = 5.8;
const WIDEST_OF_8: f64 = 0.35;
/// Normal variables are integrated up to here: the mass beyond is below $3\times10^{-14}$.
const REACH: f64 = 7.6;
/// Kinks farther out leave slopes below $10^{-30}$.
const FARTHEST_KINK: f64 = 12.0;

/// The clipped residual of label 0 at $u$ or $-u$, and its slope.
struct Side {
    psi: f64,
    slope: f64,
}

impl Binary {
    /// $a$, $b$, $m^{(2)}$ where the residual is $c$ at $u =$ `kink`.
    pub fn coefficients(&self, at: &Overlaps, c: f64, kink: f64) -> Coefficients {
        let kept = 1.0 - 2.0 * self.flips;
        if at.q == 0.0 {
            let Side { psi, slope } = side(0.0, c, 0.0 <= kink);
            let b = -2.0 * kept * psi * mean_slope(&LOGISTIC, at.v);
            return Coefficients { a: slope, b, m2: psi * psi };
        }
        let root = at.q.sqrt();
        let edge = kink.abs() / root;
        let [mut a, mut b, mut m2] = [0.0; 3];
        Self::integrate(at, edge, |g, weight, tail, density, inside| {
            // Beyond the kink the plus side is clipped, before it the minus side.
            let (plus, minus) = if kink >= 0.0 { (inside, true) } else { (false, !inside) };
            let (plus, minus) = (side(root * g, c, plus), side(-root * g, c, minus));
            let (above, below) = self.label_zero(tail);
            a += weight * (plus.slope * above + minus.slope * below);
            b += weight * density * (plus.psi + minus.psi);
            m2 += weight * (plus.psi * plus.psi * above + minus.psi * minus.psi * below);
        });
        Coefficients { a: 2.0 * a, b: -2.0 * kept * b, m2: 2.0 * m2 }
    }

    /// $P(0 | u)$ and $P(0 | -u)$ from $1 - E\[\sigma(v) | u\]$.
    fn label_zero(&self, tail: f64) -> (f64, f64) {
        let kept = 1.0 - 2.0 * self.flips;
        (self.flips + kept * tail, self.flips + kept * (1.0 - tail))
    }

    /// Calls `f` with $g$, the weight of $g$ and $-g$, $1 - E\[\sigma(v) | u\]$, $E\[{\sigma^\prime}(v) | u\]$
    /// and whether $g$ is below `edge`, for nodes of $u = \sqrt Q\thinspace g$ on the half line.
    fn integrate(at: &Overlaps, edge: f64, mut f: impl FnMut(f64, f64, f64, f64, bool)) {
        let (root, given) = (at.q.sqrt(), at.teacher_given_model());
        let shift = at.p / root;
        let link: Vec<(f64, f64)> =
            LOGISTIC.iter().map(|n| (n.weight, (given + n.variance).sqrt().recip())).collect();
        // σ(m) is as smooth as its widest part at least.
        let smoothness = (given + POLE * POLE).sqrt() / shift.abs();
        let poles = [POLE / root, smoothness];
        let normal = NormalTail::new();
        // Where the kink is far out, the slope contributes next to it only.
        let reach = if edge < FARTHEST_KINK { REACH.max(edge + 3.0) } else { REACH };
        let ends = if edge > 0.0 && edge < reach {
            [(0.0, edge), (edge, reach)]
        } else {
            [(0.0, 0.0), (0.0, reach)]
        };
        let mut panels: Vec<(f64, f64)> = Vec::with_capacity(32);
        panels.extend(ends.into_iter().filter(|(low, high)| high > low));
        while let Some((low, high)) = panels.pop() {
            let (centre, half) = (0.5 * (low + high), 0.5 * (high - low));
            let smooth = poles.map(|y| ellipse(centre / half, y / half));
            let smooth = smooth[0].min(smooth[1]);
            if half > WIDEST || smooth < ELLIPSE {
                panels.push((low, centre));
                panels.push((centre, high));
                continue;
            }
            let inside = centre < edge;
            let rule: &[(f64, f64)] = if half < WIDEST_OF_8 && smooth > ELLIPSE_OF_8 {
                &GAUSS_LEGENDRE_8
            } else {
                &GAUSS_LEGENDRE_16
            };
            for (x, w) in rule {
                for g in [centre - half * x, centre + half * x] {
                    let weight = w * half * FRAC_1_SQRT_2PI * (-0.5 * g * g).exp();
                    let m = shift.abs() * g;
                    let (mut tail, mut density) = (0.0, 0.0);
                    for &(share, inverse) in &link {
                        let x = m * inverse;
                        if x > REACH {
                            continue;
                        }
                        let (phi, upper) = normal.at(x);
                        tail += share * upper;
                        density += share * inverse * phi;
                    }
                    let tail = if shift < 0.0 { 1.0 - tail } else { tail };
                    f(g, weight, tail, density, inside);
                }
            }
        }
    }
}

/// At $u$, `inside` where the residual is below $c$.
fn side(u: f64, c: f64, inside: bool) -> Side {
    if inside {
        let psi = sigmoid(u);
        Side { psi, slope: psi * sigmoid(-u) }
    } else {
        Side { psi: c, slope: 0.0 }
    }
}

/// The sum of the half axes of the ellipse around $[-1, 1]$ through $-x + iy$, with foci $\pm1$.
fn ellipse(x: f64, y: f64) -> f64 {
    // The half axes add up to A + √(A² - 1), A half the sum of the distances from the foci.
    let half = 0.5 * ((x - 1.0).hypot(y) + (x + 1.0).hypot(y));
    half + (half * half - 1.0).max(0.0).sqrt()
}
