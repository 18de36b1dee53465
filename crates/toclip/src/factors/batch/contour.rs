//! The clipped moments of a sum of squares, from its Laplace transform.
//!
//! With $G(z) = E e^{-zS}$ and $\zeta = \sqrt{az}$, along any path from $z_0 > 0$ upwards,
//! $$ P(S \le a) = \frac1\pi \Im\int \frac{e^{az}G}{z}\thinspace dz, \qquad
//! E(a-S)_+ = \frac1\pi \Im\int \frac{e^{az}G}{z^2}\thinspace dz, $$
//! $$ E\[S^{-1/2}; S > a\] = \frac1{\sqrt\pi}\Bigl( \int_0^{z_0} \frac{G}{\sqrt z}\thinspace dz +
//! \Re\int \frac{e^{az} w(\zeta)\thinspace G}{\sqrt z}\thinspace dz \Bigr). $$
//! The first two are Bromwich's integral. The third is $\int_a^\infty x^{-1/2} e^{zx} dx =
//! \sqrt{\pi/(-z)}\operatorname{erfc}\sqrt{-az}$ against $G$, on a path from the origin whose first
//! part is the real axis, where the real part of $e^{az}w(\zeta)$ is one.
//!
//! Where $a > ES$ and $G$ exists for some $z_0 < 0$, the path starts there. It then has the pole at
//! zero on its other side, and the integrals are $P(S \le a) - 1$, $E(S-a)_+$, and the third
//! without its first part, since on the negative axis that is imaginary. So small
//! quantities are computed as small numbers, without cancellation for any threshold.
//!
//! Heavy tails have no such $z_0$, and the path starts at $z_0 > 0$ for every threshold. There the same
//! integrals with $1 - G$ in place of $G$ are $P(S > a)$ and $E\min(S, a)$: small numbers again,
//! which the transform gives to every digit.
//!
//! Skipping also needs $f_S(a) = \frac1\pi \Im\int e^{az}G\thinspace dz$.
//!
//! The path goes through the saddle point of $e^{az}G(z)/z$ and leaves it along the parabola of
//! steepest descent, as far as the transform allows.

use super::squared_residual::TransformShape;
use crate::numerics::complex::{exp_m1, faddeeva, square_root};
use crate::numerics::special::GAUSS_LEGENDRE_16;
use num_complex::Complex64;
use std::f64::consts::PI;

/// A sum of $n$ squares, in units of the threshold $a$.
pub(super) struct SumOfSquares<'a> {
    /// $\ln E e^{-zS/a}$.
    pub ln_g: &'a dyn Fn(Complex64) -> Complex64,
    /// Where else than in the right half plane it may be used.
    pub shape: TransformShape,
    /// $n$.
    pub n: f64,
    /// $E S/a$.
    pub mean: f64,
    /// The largest $x$ for which it exists at $-x$; zero for heavy tails.
    pub edge: f64,
    /// $P(S \le a)$ below $e$ to minus this is not computed.
    pub nothing: f64,
    /// How far apart the squares of the atoms are, in units of $a$.
    pub range: f64,
}

/// The moments of $S$ clipped at $a$.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct ClippedSquares {
    /// $P(S \le a)$.
    pub inside: f64,
    /// $E\[\sqrt{a/S}; S > a\]$.
    pub outside: f64,
    /// $E\min(S/a, 1)$.
    pub square: f64,
    /// $E\[S/a; S \le a\]$.
    pub square_inside: f64,
    /// $a f_S(a)$, with $f_S$ the density of $S$.
    pub density: f64,
}

impl ClippedSquares {
    /// No batch is clipped.
    pub fn all_inside(mean: f64) -> Self {
        ClippedSquares {
            inside: 1.0,
            outside: 0.0,
            square: mean,
            square_inside: mean,
            density: 0.0,
        }
    }

    /// Every batch is, with $E\sqrt{a/S}$ given.
    pub fn all_outside(outside: f64) -> Self {
        ClippedSquares { inside: 0.0, outside, square: 1.0, square_inside: 0.0, density: 0.0 }
    }

    /// NaN: the integrals did not converge.
    fn undefined() -> Self {
        let nan = f64::NAN;
        ClippedSquares { inside: nan, outside: nan, square: nan, square_inside: nan, density: nan }
    }

    /// Adds `weight` times another.
    pub fn add(&mut self, weight: f64, other: ClippedSquares) {
        self.inside += weight * other.inside;
        self.outside += weight * other.outside;
        self.square += weight * other.square;
        self.square_inside += weight * other.square_inside;
        self.density += weight * other.density;
    }

    /// Divides by the total weight.
    pub fn over(self, total: f64) -> Self {
        ClippedSquares {
            inside: self.inside / total,
            outside: self.outside / total,
            square: self.square / total,
            square_inside: self.square_inside / total,
            density: self.density / total,
        }
    }
}

/// Terms below this share of the sum end it.
const NEGLIGIBLE: f64 = 1e-17;
/// Factors below $e^{-38}$ are negligible.
pub(super) const NOTHING: f64 = 38.0;
/// The same where that factor is the whole result: smaller numbers underflow.
pub(super) const UNDERFLOW: f64 = 690.0;
/// Widths of panels, against the distance of the pole and the width of the bell.
const WIDE: (f64, f64) = (1.2, 2.5);
/// E-folds of $z$ in a panel on the real axis.
const PANEL_FOLDS: f64 = 2.0;
/// Panels of sixteen points that an integral may take.
const MOST_PANELS: usize = 20_000;

/// NaN where the path does not end within [`MOST_PANELS`].
pub(super) fn clipped_squares(sum: &SumOfSquares<'_>) -> ClippedSquares {
    let path = Contour::new(sum);
    if !(path.start.is_finite() && path.bend.is_finite() && path.level.is_finite()) {
        return ClippedSquares::undefined();
    }
    if path.start < 0.0 && path.start + path.level < -NOTHING {
        // By Chernoff's bound no batch is clipped.
        return ClippedSquares::all_inside(sum.mean);
    }
    let first = if path.start > 0.0 { path.real_axis(sum.ln_g) } else { 0.0 };
    if path.start > 0.0 && path.start + path.level < -sum.nothing {
        // By the same bound all are.
        return ClippedSquares::all_outside(first / PI.sqrt());
    }
    let (mut inside, mut below, mut rest, mut density) = (0.0, 0.0, 0.0, 0.0);
    // P(S > a) and E min(S/a, 1).
    let (mut tail, mut above) = (0.0, 0.0);
    let mut y = 0.0;
    let mut quiet = 0;
    // Where a small probability is all that is wanted, its size is that at the saddle.
    let scale = if sum.nothing > NOTHING { (path.start + path.level).exp().min(1.0) } else { 1.0 };
    let mut done = false;
    for _ in 0..MOST_PANELS {
        let width = path.panel(y, sum);
        let half = 0.5 * width;
        let mut size = 0.0f64;
        for (u, weight) in GAUSS_LEGENDRE_16 {
            for y in [y + half * (1.0 - u), y + half * (1.0 + u)] {
                let z = path.at(y);
                let step = Complex64::new(-2.0 * path.bend * y, 1.0) * (weight * half);
                let ln_g = (sum.ln_g)(z);
                let grown = (z + ln_g).exp() * step;
                let over = grown / z;
                let root = square_root(z);
                density += grown.im;
                inside += over.im;
                below += (over / z).im;
                rest += (grown / root * faddeeva(root)).re;
                size = size.max(over.norm());
                if path.near {
                    let free = z.exp() * step / z;
                    let missing = -exp_m1(ln_g) * free;
                    tail += missing.im;
                    above += (missing / z).im;
                    size = size.max(free.norm());
                }
            }
        }
        y += width;
        // Two panels in a row, for a term may vanish by chance.
        let floor = NEGLIGIBLE * inside.abs().max(below.abs()).max(1e-3 * scale);
        quiet = if size <= floor { quiet + 1 } else { 0 };
        if path.ended(y, sum) || (quiet >= 2 && !matches!(sum.shape, TransformShape::Atoms(_))) {
            done = true;
            break;
        }
    }
    if !done {
        return ClippedSquares::undefined();
    }
    let (inside, below) = (inside / PI, below / PI);
    let (outside, density) = ((first + rest) / PI.sqrt(), density / PI);
    if path.start < 0.0 {
        let square = sum.mean - below;
        let square_inside = square + inside;
        return ClippedSquares { inside: 1.0 + inside, outside, square, square_inside, density };
    }
    if path.near {
        let (tail, square) = (tail / PI, above / PI);
        let square_inside = if tail < 0.5 { square - tail } else { inside - below };
        return ClippedSquares { inside, outside, square, square_inside, density };
    }
    ClippedSquares { inside, outside, square: 1.0 - below, square_inside: inside - below, density }
}

/// $z(y) = z_0 + iy - \beta y^2$.
struct Contour {
    start: f64,
    bend: f64,
    /// The distance over which $G$ falls on both sides of the saddle, $(\ln G)^{\prime\prime
    /// -1/2}$.
    bell: f64,
    /// $\ln G(z_0)$.
    level: f64,
    /// Whether $e^{z}$ is harmless along the path, so that small squares can be summed directly.
    near: bool,
}

impl Contour {
    fn new(sum: &SumOfSquares<'_>) -> Self {
        let ln_g = sum.ln_g;
        let (start, second) = saddle(sum);
        let level = ln_g(Complex64::new(start, 0.0)).re;
        let bell = second.max(1e-30).sqrt().recip();
        let curvature = second + 1.0 / (start * start);
        // The third derivative, from imaginary parts at two distances.
        let room = start + sum.edge;
        let y = 0.2 * start.abs().min(room).min(bell);
        let [one, two] = [y, 2.0 * y].map(|y| {
            let z = Complex64::new(start, y);
            z.im + ln_g(z).im - (z / start).arg()
        });
        let third = (2.0 * one - two) / (y * y * y);
        let steepest = -third / (6.0 * curvature);
        // The bounds may be NaN, and then the path is too.
        let steepest = if room > 0.0 { steepest.clamp(0.02 / room, 0.5 / room) } else { f64::NAN };
        let bend = match sum.shape {
            TransformShape::Free => steepest,
            TransformShape::Spread(v) | TransformShape::Atoms(v) => steepest.min(2.0 * v),
        };
        let near = start > 0.0 && start < 6.0 && sum.shape == TransformShape::Free;
        Contour { start, bend, bell, level, near }
    }

    fn at(&self, y: f64) -> Complex64 {
        Complex64::new(self.start - self.bend * y * y, y)
    }

    /// The width of the panel at `y`: sixteen points resolve the pole at zero, the branch point at
    /// the edge, the bell around the saddle, and, further out, whatever is smooth on a logarithmic
    /// scale.
    fn panel(&self, y: f64, sum: &SumOfSquares<'_>) -> f64 {
        let free = self.bell.hypot(y / sum.n.sqrt());
        let bell = match sum.shape {
            TransformShape::Free => free,
            // A bell narrower than atoms make it is that of a wide component, and ends with it.
            TransformShape::Atoms(_) => free.min(2.0 / (sum.n.sqrt() * sum.range)).max(self.bell),
            TransformShape::Spread(_) => self.bell,
        };
        let width = (WIDE.0 * self.start.hypot(0.5 * y)).min(WIDE.1 * bell);
        if sum.edge > 0.0 && !matches!(sum.shape, TransformShape::Spread(_)) {
            // The path runs along the cut at this speed, past the branch points of other parts.
            let speed = 1f64.hypot(2.0 * self.bend * y);
            return width.min(WIDE.0 * (self.start + sum.edge).hypot(y) / speed);
        }
        width
    }

    /// Whether the normal part of the residuals alone has put an end to the integrand at `y`.
    ///
    /// $|E e^{-zX^2}|$ falls at least by $|1+2zv|^{-1/2}$ from its value on the axis, however
    /// often the rest of it comes back.
    fn ended(&self, y: f64, sum: &SumOfSquares<'_>) -> bool {
        let lost = self.bend * y * y;
        match sum.shape {
            TransformShape::Free => lost > NOTHING + self.level.abs(),
            TransformShape::Spread(v) | TransformShape::Atoms(v) => {
                let smoothed = (1.0 + 2.0 * v * self.at(y)).norm() / (1.0 + 2.0 * v * self.start);
                // The integrand may be tiny at the saddle already.
                let saddle = (self.start + self.level).min(0.0);
                let far = (y / self.start.abs()).ln();
                lost + 0.5 * sum.n * smoothed.ln() + far - saddle > NOTHING
            }
        }
    }

    /// $\int_0^{z_0} z^{-1/2} G\thinspace dz$.
    ///
    /// Up to where $G$ begins to fall, in the variable $z = T\tau^6$, which smooths the corner that
    /// heavy tails leave at zero; from there in $\ln z$, until it is negligible.
    fn real_axis(&self, ln_g: &dyn Fn(Complex64) -> Complex64) -> f64 {
        let value = |z: f64| ln_g(Complex64::new(z, 0.0)).re;
        // ln G is convex and zero at zero, so this comes down to its first fall and no further.
        let (mut knee, mut level) = (self.start, self.level);
        while level < -1.5 {
            knee *= 0.75 / -level;
            let next = value(knee);
            // Where part of the mass is at infinity G(0+) < 1, and there may be no such place.
            let flat = next <= level * (1.0 - 1e-9);
            level = next;
            if flat {
                break;
            }
        }
        // In eighths, for atoms leave a fall of their own long before the knee.
        let f = |tau: f64| tau * tau * value(knee * tau.powi(6)).exp();
        let eighths = (0..8).map(|k| panel(f64::from(k) / 8.0, f64::from(k + 1) / 8.0, f));
        let head = 6.0 * knee.sqrt() * eighths.sum::<f64>();
        let (mut sum, mut from) = (head, knee.ln());
        let end = self.start.ln();
        while from < end - 1e-12 {
            let to = (from + PANEL_FOLDS).min(end);
            let part = panel(from, to, |x| (0.5 * x + value(x.exp())).exp());
            sum += part;
            if part < NEGLIGIBLE * sum {
                break;
            }
            from = to;
        }
        sum
    }
}

/// Sixteen points on $\[a, b\]$.
fn panel(a: f64, b: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (centre, half) = (0.5 * (a + b), 0.5 * (b - a));
    let pairs =
        GAUSS_LEGENDRE_16.iter().map(|&(u, w)| w * (f(centre - half * u) + f(centre + half * u)));
    half * pairs.sum::<f64>()
}

/// The minimum of $\Psi(z) = z + \ln G(z) - \ln|z|$ on the side of zero where the path starts, and
/// the second derivative of $\ln G$ there.
fn saddle(sum: &SumOfSquares<'_>) -> (f64, f64) {
    // The derivatives in ln|z|, from the value a little above the axis.
    let slopes = |z: f64| {
        let h = 1e-3 * z.abs().min(z + sum.edge);
        let (on, off) = ((sum.ln_g)(Complex64::new(z, 0.0)), (sum.ln_g)(Complex64::new(z, h)));
        let second = -2.0 * (off.re - on.re) * (z / h).powi(2);
        (z - 1.0 + off.im * (z / h), second.max(0.0), z + on.re)
    };
    let (sign, mut low, mut high, mut t) = if sum.mean < 1.0 && sum.edge > 0.0 {
        let guess = (0.5 * sum.edge).min(1.0 / (1.0 - sum.mean));
        (-1.0, f64::NEG_INFINITY, (0.999_999 * sum.edge).ln(), guess.ln())
    } else {
        // At z = 1 the slope is that of ln G, which falls.
        (1.0, -1e-3, f64::INFINITY, 0.0)
    };
    let mut found = (sign * t.exp(), 1.0);
    for _ in 0..100 {
        let z = sign * t.exp();
        let (first, second, height) = slopes(z);
        if !(first.is_finite() && second.is_finite()) || (z < 0.0 && height > NOTHING) {
            // So far to the left G is NaN, or so large that its phase is not known; at the saddle it is
            // small.
            high = t;
            t = if low.is_finite() { 0.5 * (low + t) } else { t - 2.0 };
            continue;
        }
        found = (z, second / (z * z));
        if first * first < 0.01 * (1.0 + second)
            || high - low < 1e-9
            || (z < 0.0 && height < -NOTHING)
        {
            break;
        }
        if first < 0.0 {
            low = t;
        } else {
            high = t;
        }
        // Newton in ln|z|, never out of the bracket and never by more than two e-folds.
        let next = t + (-first / (first + 1.0 + second).max(0.1 + 0.1 * second)).clamp(-2.0, 2.0);
        t = if next <= low {
            0.5 * (low + t)
        } else if next >= high {
            0.5 * (high + t)
        } else {
            next
        };
    }
    found
}
