//! The distribution of $X^2$, by its Laplace transform.

use super::scale_mixture::ScaleMixture;
use crate::numerics::complex::{exp_m1, faddeeva, ln_1p};
use num_complex::Complex64;
use std::f64::consts::PI;
use std::fmt;
use std::sync::Arc;

/// How far the transform reaches beyond the right half plane, and how it decays there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum TransformShape {
    /// Mixtures of centred normals: analytic in the plane cut along the negative axis.
    Free,
    /// Normals of at least this variance about spread-out means: bounded where
    /// $\Re(z/(1+2zv)) \ge 0$, and once it has decayed it stays so.
    Spread(f64),
    /// The same about a few means: between its decays it comes back, as the transforms of atoms do.
    Atoms(f64),
}

/// $\ln E e^{-zX^2}$ of a residual $X$, which determines the sum of squares over a batch.
///
/// For $S = \sum_{i\le N} X_i^2$ it is $N$ times as large, and it determines the effect of clipping
/// on a batch ([`Batch`](crate::Batch)).
///
/// A noise of your own returns one from
/// [`Noise::squared_residual`](crate::noise::Noise::squared_residual).
///
/// ```
/// use num_complex::Complex64;
/// use toclip::SquaredResidual;
/// // X is N(0, 1) with probability 3/4, and N(2, 0.25) otherwise.
/// let squared = SquaredResidual::normals(vec![(0.75, 0.0, 1.0), (0.25, 2.0, 0.25)]);
/// let small = squared.ln_transform(Complex64::new(1e-6, 0.0));
/// let second_moment = 0.75 + 0.25 * 4.25;
/// assert!((small.re / (-1e-6 * second_moment) - 1.0).abs() < 1e-5);
/// ```
pub struct SquaredResidual {
    transform: Box<dyn Fn(Complex64) -> Complex64 + Send + Sync>,
    pub(crate) shape: TransformShape,
    /// The largest $x$ for which $E e^{xX^2}$ exists; zero for heavy tails.
    pub(crate) edge: f64,
    pub(crate) pair: Option<Pair>,
    pub(crate) atoms: Option<Atoms>,
    /// The largest difference of the $m_j^2$ of [`TransformShape::Atoms`].
    pub(crate) range: f64,
    /// Whether the transform is that of the residual to rounding: not where narrow parts were
    /// widened for the paths of batches, or a density was replaced by points.
    pub(crate) exact: bool,
}

/// Normals of one variance about a few means, narrow against their distances.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Atoms {
    /// Weights and $m_j^2$, different ones, in order.
    pub squares: Vec<(f64, f64)>,
    /// The variance about them.
    pub v: f64,
}

/// Normals of variance `v`, about $\pm\lambda$ with probability `p` and about zero otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair {
    /// $\lambda^2$.
    pub square: f64,
    /// The probability of it.
    pub p: f64,
    /// The variance about it.
    pub v: f64,
}

impl fmt::Debug for SquaredResidual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SquaredResidual").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl SquaredResidual {
    pub(crate) fn new(
        shape: TransformShape,
        widest: f64,
        transform: impl Fn(Complex64) -> Complex64 + Send + Sync + 'static,
    ) -> Self {
        SquaredResidual {
            transform: Box::new(transform),
            shape,
            edge: 0.5 / widest,
            pair: None,
            atoms: None,
            range: 0.0,
            exact: true,
        }
    }

    /// A mixture of normals: weights $w_j$ that add up to one, means $m_j$ and variances $v_j$,
    /// $$ E e^{-zX^2} = \sum_j w_j (1+2zv_j)^{-1/2} \exp\Bigl(-\frac{z m_j^2}{1+2zv_j}\Bigr). $$
    pub fn normals(parts: Vec<(f64, f64, f64)>) -> Self {
        let least = parts.iter().map(|p| p.2).fold(f64::INFINITY, f64::min);
        let widest = parts.iter().map(|p| p.2).fold(0.0, f64::max);
        let range = range(parts.iter().map(|p| p.1 * p.1));
        let centred = parts.iter().all(|p| p.1 == 0.0);
        let shape = if centred { TransformShape::Free } else { TransformShape::Atoms(least) };
        if centred {
            return SquaredResidual::scales(parts.into_iter().map(|(w, _, v)| (w, v)).collect());
        }
        let squared = SquaredResidual::new(shape, widest, move |z| {
            ln_of_sum(parts.iter().map(|&(w, m, v)| {
                let spread = 2.0 * v * z;
                (w, -0.5 * ln_1p(spread) - m * m * z / (1.0 + spread))
            }))
        });
        SquaredResidual { range, ..squared }
    }

    /// A mixture of centred normals of variances $v_j$.
    pub(crate) fn scales(parts: Vec<(f64, f64)>) -> Self {
        let (weights, variances): (Vec<f64>, Vec<f64>) = parts.into_iter().unzip();
        let widest = variances.iter().fold(0.0, |a: f64, v| a.max(*v));
        SquaredResidual::new(TransformShape::Free, widest, move |z| {
            if let ([_], [v]) = (&weights[..], &variances[..]) {
                return -0.5 * ln_1p(2.0 * v * z);
            }
            let lost = mixed_scales(&weights, &variances, z);
            if lost.norm() < 0.9 {
                return ln_1p(-lost);
            }
            let parts = weights.iter().zip(&variances);
            parts.map(|(w, v)| w / (1.0 + 2.0 * v * z).sqrt()).sum::<Complex64>().ln()
        })
    }

    /// A heavy-tailed mixture of centred normals, its variances times $\sigma^2$, with variance `v`
    /// about it:
    /// $E e^{-zX^2} = (1+2vz)^{-1/2}\thinspace h\bigl(\tfrac{2\sigma^2z}{1+2vz}\bigr)$.
    pub(crate) fn heavy(scales: Arc<ScaleMixture>, sigma: f64, v: f64) -> Self {
        SquaredResidual::new(TransformShape::Free, f64::INFINITY, move |z| {
            let spread = 2.0 * v * z;
            let q = 2.0 * sigma * sigma * z / (1.0 + spread);
            -0.5 * ln_1p(spread) + scales.ln_transform(q)
        })
    }

    /// Normals of variance `v` about the means of weights $w_j$.
    pub(crate) fn located(means: Vec<(f64, f64)>, v: f64, shape: TransformShape) -> Self {
        let squares: Vec<(f64, f64)> = means.into_iter().map(|(w, m)| (w, m * m)).collect();
        let range = range(squares.iter().map(|s| s.1));
        let squared = SquaredResidual::new(shape, v, move |z| {
            let spread = 2.0 * v * z;
            let (root, w) = (-0.5 * ln_1p(spread), z / (1.0 + spread));
            root + ln_of_sum(squares.iter().map(|&(p, q)| (p, -w * q)))
        });
        SquaredResidual { range, ..squared }
    }

    /// The same, with a note whether it is [exact](Self::exact).
    pub(crate) fn exact_if(self, exact: bool) -> Self {
        SquaredResidual { exact, ..self }
    }

    /// With the exact atoms behind this smoothed distribution: weights, means, and the variance
    /// about all of them. Where there are few ways to draw a batch from them, these are summed.
    pub(crate) fn of_atoms(self, means: impl Iterator<Item = (f64, f64)>, v: f64) -> Self {
        let mut sorted: Vec<(f64, f64)> = means.map(|(w, m)| (w, m * m)).collect();
        sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut squares: Vec<(f64, f64)> = Vec::new();
        for (w, q) in sorted {
            match squares.last_mut() {
                Some(last) if last.1 == q => last.0 += w,
                _ => squares.push((w, q)),
            }
        }
        SquaredResidual { atoms: Some(Atoms { squares, v }), ..self }
    }

    /// Two means as a sum of squares sees them: how many are at $\pm\lambda$ is binomial.
    pub(crate) fn pair(lambda: f64, p: f64, v: f64) -> Self {
        let squared = SquaredResidual::located(
            vec![(1.0 - p, 0.0), (p, lambda)],
            v,
            TransformShape::Atoms(v),
        );
        SquaredResidual { pair: Some(Pair { square: lambda * lambda, p, v }), ..squared }
    }

    /// A uniform mean on $\[-M, M\]$ with variance `v` about it: an error function.
    pub(crate) fn uniform(half_width: f64, v: f64) -> Self {
        SquaredResidual::new(TransformShape::Spread(v), v, move |z| {
            let spread = 2.0 * v * z;
            let centre = -0.5 * ln_1p(spread);
            let square = half_width * half_width * z / (1.0 + spread);
            centre
                + if square.norm() < 1.0 {
                    // ∫₀¹ e^(−qt²) dt − 1 by its power series.
                    let (mut sum, mut term) = (Complex64::ZERO, -square);
                    for n in 1..20 {
                        sum += term / f64::from(2 * n + 1);
                        term *= -square / f64::from(n + 1);
                    }
                    ln_1p(sum)
                } else {
                    let zeta = square.sqrt();
                    let turned = Complex64::new(-zeta.im, zeta.re);
                    let erf = 1.0 - (-square).exp() * upper_faddeeva(turned);
                    (0.5 * PI.sqrt() * erf / zeta).ln()
                }
        })
    }

    /// Laplace noise of variance $\sigma^2$ with variance `v` about it: an exponential mixture of
    /// scales, $\int e^{-w}(1 + 2zv + 2z\sigma^2 w)^{-1/2} dw$.
    pub(crate) fn laplace(sigma: f64, v: f64) -> Self {
        SquaredResidual::new(TransformShape::Free, f64::INFINITY, move |z| {
            let centre = -0.5 * ln_1p(2.0 * v * z);
            let b = (1.0 + 2.0 * v * z) / (2.0 * sigma * sigma * z);
            centre
                + if b.norm() > 60.0 {
                    // √(πb) erfcx(√b) − 1 by its asymptotic series.
                    let (mut sum, mut term) = (Complex64::ZERO, -0.5 / b);
                    for k in 1..24 {
                        sum += term;
                        term *= -f64::from(2 * k + 1) * 0.5 / b;
                    }
                    ln_1p(sum)
                } else {
                    let root = b.sqrt();
                    let turned = Complex64::new(-root.im, root.re);
                    (PI.sqrt() * root * upper_faddeeva(turned)).ln()
                }
        })
    }

    /// $\ln E e^{-zX^2}$, for $\Re z > 0$ and somewhat beyond; up to multiples of $2\pi i$.
    pub fn ln_transform(&self, z: Complex64) -> Complex64 {
        (self.transform)(z)
    }
}

fn range(squares: impl Iterator<Item = f64>) -> f64 {
    let (low, high) =
        squares.fold((f64::INFINITY, 0.0f64), |(low, high), q| (low.min(q), high.max(q)));
    (high - low).max(0.0)
}

/// $\ln\sum_j w_j e^{q_j}$ for weights that add up to one, without losing small $q_j$, nor those so
/// negative that their exponentials underflow.
fn ln_of_sum(parts: impl Iterator<Item = (f64, Complex64)> + Clone) -> Complex64 {
    let lost = parts.clone().fold(Complex64::ZERO, |sum, (w, q)| sum - w * exp_m1(q));
    if lost.norm() < 0.9 {
        return ln_1p(-lost);
    }
    let top = parts.clone().map(|(_, q)| q.re).fold(f64::NEG_INFINITY, f64::max);
    top + parts.fold(Complex64::ZERO, |sum, (w, q)| sum + w * (q - top).exp()).ln()
}

/// $\sum_j w_j (1 - (1+x_j)^{-1/2})$ with $x_j = 2 z v_j$.
///
/// The difference is $x/(1 + x + \sqrt{1+x})$: no cancellation and no logarithm, and written out in
/// real numbers the loop is four nodes at a time.
fn mixed_scales(weights: &[f64], variances: &[f64], z: Complex64) -> Complex64 {
    let (z_re, z_im) = (2.0 * z.re, 2.0 * z.im);
    let (mut re, mut im) = (0.0, 0.0);
    if z_im == 0.0 {
        for (w, v) in weights.iter().zip(variances) {
            let x = z_re * v;
            re += w * (x / (1.0 + x + (1.0 + x).sqrt()));
        }
        return Complex64::new(re, 0.0);
    }
    for (w, v) in weights.iter().zip(variances) {
        let (x, y) = (z_re * v, z_im * v);
        let p = 1.0 + x;
        let large = (0.5 * ((p * p + y * y).sqrt() + p.abs())).sqrt();
        let small = 0.5 * y.abs() / large;
        let (root_re, root_im) = if p >= 0.0 { (large, small) } else { (small, large) };
        let (d_re, d_im) = (p + root_re, y + root_im.copysign(y));
        let scale = w / (d_re * d_re + d_im * d_im);
        re += scale * (x * d_re + y * d_im);
        im += scale * (y * d_re - x * d_im);
    }
    Complex64::new(re, im)
}

/// $w(\zeta)$ where rounding may have put $\zeta$ slightly below the real axis.
fn upper_faddeeva(zeta: Complex64) -> Complex64 {
    faddeeva(Complex64::new(zeta.re, zeta.im.max(0.0)))
}
