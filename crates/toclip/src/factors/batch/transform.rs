//! Rules whose factor is a Laplace transform: the transform of the sum of squares along the real
//! axis gives their moments.
//!
//! With $x = S/a$, $a = c^2N$, and $G(z) = E e^{-zx}$, each rule has a factor $\varphi = F(x)$ with
//! $F(x) = \int_0^\infty \Theta(z)\thinspace e^{-zx}\thinspace dz$, and
//! $$ \mu_N = E F + \frac1N E\[2x{F^\prime}\], \qquad \frac{E\thinspace\varphi^2 s^2}{c^2} = E\[xF^2\]. $$
//!
//! * Normalise: $F = x^{-1/2}$, $\Theta = (\pi z)^{-1/2}$, and $2x{F^\prime} = -F$.
//! * Root: $F = (1+x)^{-1/2}$, $\Theta = e^{-z}(\pi z)^{-1/2}$; $2x{F^\prime} = (1+x)^{-3/2} - F$ and
//!   $xF^2 = x/(1+x)$ are transforms as well.
//! * Tanh: $F = \tanh\sqrt x/\sqrt x$, $\Theta = 2\sum_{k\ge1} e^{-z b_k^2}$ with $b_k =
//!   (k-\tfrac12)\pi$, or $(\pi z)^{-1/2}\sum_m (-1)^m e^{-m^2/z}$; $F + 2x{F^\prime} =
//!   \operatorname{sech}^2\sqrt x$ is the transform of $K = -\Theta - 2z{\Theta^\prime}$, and
//!   $xF^2 = \tanh^2\sqrt x = 1 - \operatorname{sech}^2\sqrt x$.
//!
//! Integrals are over $t = \sqrt z$, in which the integrands are smooth at zero.

use super::squared_residual::SquaredResidual;
use crate::factors::kernel::Moments;
use crate::numerics::quadrature::{half_line, interval};
use crate::rule::Smooth;
use num_complex::Complex64;
use std::f64::consts::{FRAC_2_SQRT_PI, PI};

/// $e^{-t^2}$ and $e^{-b_1^2t^2}$ are negligible from here on.
const END: (f64, f64) = (6.2, 4.0);

/// $G$ is negligible below $e$ to minus this.
const NOTHING: f64 = 45.0;

/// A sum of $N$ squares, in units of $a = c^2N$.
pub(super) struct Squares<'a> {
    pub squared: &'a SquaredResidual,
    pub n: f64,
    pub c: f64,
}

impl Squares<'_> {
    /// $\ln G(t^2)$.
    fn ln_g(&self, t: f64) -> f64 {
        let z = t * t / (self.c * self.c * self.n);
        self.n * self.squared.ln_transform(Complex64::new(z, 0.0)).re
    }

    /// Points from zero to `end` between which $G(t^2)$ is smooth: doubling from where it begins to
    /// fall.
    fn points(&self, end: f64) -> Vec<f64> {
        // ln G falls by one at about this t; in ln t, since it may be anywhere.
        let (mut low, mut high) = (1e-160_f64.ln(), end.ln());
        if self.ln_g(end) < -1.0 {
            // To a quarter of an e-fold: from nearby, where it mostly is, or from afar.
            let nearby = (-3.0f64).min(high - 1.0);
            if self.ln_g(nearby.exp()) >= -1.0 {
                low = nearby;
            }
            while high - low > 0.25 {
                let middle = 0.5 * (low + high);
                if self.ln_g(middle.exp()) < -1.0 { high = middle } else { low = middle }
            }
        }
        let mut points = vec![0.0];
        let mut t = 0.25 * high.exp();
        while t < end {
            points.push(t);
            t *= 2.0;
        }
        points.push(end);
        points
    }

    /// $\mu = (1-\tfrac1N)E x^{-1/2}$; infinite where batches of zeros have a probability.
    pub fn normalised(&self) -> Moments {
        // As far out as the transform is a number.
        let mut end = 1e140 * (self.c * self.n.sqrt()).min(1.0);
        while self.ln_g(end).is_nan() && end > 1.0 {
            end *= 1e-10;
        }
        let points = self.points(end);
        let m2 = self.c * self.c;
        let Some(&knee) = points.get(1).filter(|_| points.len() > 4) else {
            return Moments { mu: f64::INFINITY, m2 };
        };
        // Past the fall only batches near zero contribute.
        let start: Vec<f64> = [0.0, 1.0, 2.0, 4.0, 8.0, 16.0].map(|k| k * knee).to_vec();
        let [mean] = half_line(|t| [FRAC_2_SQRT_PI * self.ln_g(t).exp()], &start);
        Moments { mu: (1.0 - 1.0 / self.n) * mean, m2 }
    }

    /// $\mu$ and $E\thinspace\varphi^2s^2$ of a smooth rule; of one residual for $N = 1$.
    pub fn smoothed(&self, smooth: Smooth) -> Moments {
        // Shares of E F and of E[F + 2xF′] in μ.
        let (outer, inner) = (1.0 - 1.0 / self.n, 1.0 / self.n);
        // 2tΘ and 2tK; for the rule root E[F + 2xF′] is no part of the square.
        let kernels = |t: f64| match smooth {
            Smooth::Root => {
                let bell = (-t * t).exp();
                let theta = FRAC_2_SQRT_PI * bell;
                [outer * theta + inner * 2.0 * t * t * theta, 2.0 * t * bell]
            }
            Smooth::Tanh => {
                let [theta, kernel] = theta(t);
                [outer * theta + inner * kernel, kernel]
            }
        };
        let points = self.points(match smooth {
            Smooth::Root => END.0,
            Smooth::Tanh => END.1,
        });
        // Where G is negligible the transform is not evaluated.
        let gone = points.iter().position(|t| self.ln_g(*t) < -NOTHING).unwrap_or(points.len() - 1);
        let [mu, near] = interval(
            |t| {
                let ([kernel, square], ln_g) = (kernels(t), self.ln_g(t));
                [kernel * ln_g.exp(), -square * ln_g.exp_m1()]
            },
            &points[..=gone],
        );
        let [far] = interval(|t| [kernels(t)[1]], &points[gone..]);
        Moments { mu, m2: self.c * self.c * (near + far) }
    }
}

/// $2t\thinspace\Theta(t^2)$ and $2t\thinspace K(t^2)$ of the rule tanh. Both are positive.
fn theta(t: f64) -> [f64; 2] {
    let z = t * t;
    let mut sum = [0.0; 2];
    if z < 0.5 {
        // The sum over images; the one at zero is no part of K.
        sum[0] = 1.0;
        for m in 1..6 {
            let square = f64::from(m * m) / z.max(1e-300);
            let term = if m % 2 == 0 { 2.0 } else { -2.0 } * (-square).exp();
            // e^(−∞)·∞ would be NaN.
            if term == 0.0 {
                break;
            }
            sum = [sum[0] + term, sum[1] - term * 2.0 * square];
        }
        return sum.map(|x| FRAC_2_SQRT_PI * x);
    }
    for k in 1..8 {
        let square = z * ((f64::from(k) - 0.5) * PI).powi(2);
        let term = 4.0 * t * (-square).exp();
        if term == 0.0 {
            break;
        }
        sum = [sum[0] + term, sum[1] + term * (2.0 * square - 1.0)];
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sums_of_theta_are_one_function() {
        for t in [0.4_f64, 0.6, 0.7, 0.75, 1.0] {
            let z = t * t;
            let images: f64 = (-9..=9)
                .map(|m: i32| (if m % 2 == 0 { 1.0 } else { -1.0 }) * (-f64::from(m * m) / z).exp())
                .sum();
            assert!((theta(t)[0] / (FRAC_2_SQRT_PI * images) - 1.0).abs() < 1e-13, "{t}");
            // K = −Θ − 2zΘ′.
            let h = 1e-5;
            let of = |z: f64| theta(z.sqrt())[0] / (2.0 * z.sqrt());
            let slope = 2.0 * t * z * (of(z * (1.0 + h)) - of(z * (1.0 - h))) / (2.0 * h * z);
            let kernel = -theta(t)[0] - 2.0 * slope;
            assert!((theta(t)[1] - kernel).abs() < 1e-8, "{t}: {} {kernel}", theta(t)[1]);
        }
    }

    #[test]
    fn one_sample_is_the_rule_itself() {
        // For N = 1 and a normal residual: E ψ′(X) and E ψ(X)² by a fine sum.
        for c in [0.05, 0.7, 3.0, 40.0] {
            let squared = SquaredResidual::normals(vec![(1.0, 0.0, 1.0)]);
            let squares = Squares { squared: &squared, n: 1.0, c };
            for smooth in [Smooth::Tanh, Smooth::Root] {
                let (mut want, h) = ([0.0; 2], 2e-4);
                for k in -45_000..=45_000 {
                    let x = f64::from(k) * h;
                    let weight = h * (-0.5 * x * x).exp() / (2.0 * PI).sqrt();
                    let [slope, square] = smooth.slope_and_square(x / c);
                    want = [want[0] + weight * slope, want[1] + weight * square];
                }
                let got = squares.smoothed(smooth);
                assert!((got.mu / want[0] - 1.0).abs() < 1e-11, "{smooth:?} {c}: {got:?} {want:?}");
                let m2 = c * c * want[1];
                assert!((got.m2 / m2 - 1.0).abs() < 1e-11, "{smooth:?} {c}: {got:?} {m2}");
            }
        }
    }
}
