//! The transform of a mixture of centred normals whose variances are a geometric sequence.

use crate::numerics::complex::{ln_1p, square_root};
use num_complex::Complex64;

/// Terms of the two series.
const TERMS: usize = 16;
/// The series are used where $|qe_j|$ is below this, or above its inverse: the first term left out
/// is then $10^{-14}$ of the sum.
const NEAR: f64 = 0.15;

/// $h(q) = \sum_j w_j (1 + q e_j)^{-1/2}$ with $e_j = e_0 e^{jh}$, $j < n$, and weights that add up
/// to one with a rest for which the term vanishes.
///
/// Scales of heavy tails spread over many orders of magnitude, and at any $q$ only those with
/// $|qe_j|$ near one need a square root. The others are summed as two power series,
/// $$ 1 - (1+x)^{-1/2} = \sum_{k\ge1} (-1)^{k+1} C_k x^k, \qquad
/// (1+x)^{-1/2} = \sum_{k\ge0} (-1)^k C_k x^{-k-1/2}, \qquad C_k = \frac{(2k-1)!!}{(2k)!!}, $$
/// with sums $\sum_{j<J} w_j e_j^k$ and $\sum_{j\ge J} w_j e_j^{-k-1/2}$ that are known for every $J$.
#[derive(Debug)]
pub(crate) struct ScaleMixture {
    /// $\ln e_0$ and $h$.
    first: f64,
    step: f64,
    /// $(w_j, e_j)$.
    parts: Vec<(f64, f64)>,
    /// $(-1)^{k+1} C_k\sum_{j<J} w_j (e_j/e_{J-1})^k$ for $k = 1, 2, \dots$
    below: Vec<[f64; TERMS]>,
    /// $(-1)^k C_k\sum_{j\ge J} w_j (e_J/e_j)^{k+1/2}$ for $k = 0, 1, \dots$
    above: Vec<[f64; TERMS]>,
    /// $\sum_{j<J} w_j$.
    mass: Vec<f64>,
    /// $\sum_{j\ge J} w_j$ and the weight of what vanishes: summed from the smallest, since one minus
    /// the sum below has no digits far out.
    rest: Vec<f64>,
}

impl ScaleMixture {
    /// From $\ln e_0$, $h > 0$ and the weights, in the order of their scales.
    pub fn new(first: f64, step: f64, weights: Vec<f64>, infinite: f64) -> Self {
        let n = weights.len();
        let mut binomial = [1.0; TERMS + 1];
        for k in 1..=TERMS {
            binomial[k] = -binomial[k - 1] * (k as f64 - 0.5) / k as f64;
        }
        let power = |k: f64| (-k * step).exp();
        let (mut below, mut mass) = (vec![[0.0; TERMS]; n + 1], vec![0.0; n + 1]);
        for (j, w) in weights.iter().enumerate() {
            mass[j + 1] = mass[j] + w;
            for k in 0..TERMS {
                let carried = power(k as f64 + 1.0) * below[j][k];
                below[j + 1][k] = carried - binomial[k + 1] * w;
            }
        }
        let (mut above, mut rest) = (vec![[0.0; TERMS]; n + 1], vec![infinite; n + 1]);
        for (j, w) in weights.iter().enumerate().rev() {
            rest[j] = rest[j + 1] + w;
            for k in 0..TERMS {
                above[j][k] = power(k as f64 + 0.5) * above[j + 1][k] + binomial[k] * w;
            }
        }
        let scale = |j: usize| (first + j as f64 * step).exp();
        let parts = weights.into_iter().enumerate().map(|(j, w)| (w, scale(j))).collect();
        ScaleMixture { first, step, parts, below, above, mass, rest }
    }

    /// $\ln h(q)$ in the plane cut along the negative axis.
    pub fn ln_transform(&self, q: Complex64) -> Complex64 {
        let n = self.parts.len();
        // The number of scales with |q|e_j below x.
        let place = -(q.norm().ln() + self.first) / self.step;
        let count = |ln_x: f64| (place + ln_x / self.step).ceil().clamp(0.0, n as f64) as usize;
        let (from, to) = (count(NEAR.ln()), count(-NEAR.ln()));
        let mut small = Complex64::ZERO;
        if from > 0 {
            let x = q * self.parts[from - 1].1;
            small = series(&self.below[from], x) * x;
        }
        let mut large = Complex64::ZERO;
        if to < n {
            let x = (q * self.parts[to].1).inv();
            large = series(&self.above[to], x) * square_root(x);
        }
        let middle = &self.parts[from..to];
        // Whichever is the smaller of h and 1 − h keeps its digits.
        if 1.0 - self.mass[count(0.0)] > 0.5 {
            let kept = middle.iter().fold(Complex64::ZERO, |sum, &(w, e)| {
                let root = square_root(Complex64::new(1.0 + q.re * e, q.im * e));
                sum + root.conj() * (w / root.norm_sqr())
            });
            return (self.mass[from] - small + kept + large).ln();
        }
        let lost = middle.iter().fold(Complex64::ZERO, |sum, &(w, e)| {
            // 1 − 1/√(1+x) = x/(1 + x + √(1+x)).
            let x = q * e;
            let below = 1.0 + x + square_root(1.0 + x);
            sum + x * below.conj() * (w / below.norm_sqr())
        });
        ln_1p(-(small + lost + (self.rest[to] - large)))
    }
}

/// $\sum_k a_k x^k$.
fn series(a: &[f64; TERMS], x: Complex64) -> Complex64 {
    if x.im == 0.0 {
        return a.iter().rev().fold(0.0, |sum, a| sum * x.re + a).into();
    }
    a.iter().rev().fold(Complex64::ZERO, |sum, a| sum * x + a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The series are what they stand for: the sum term by term, at any q off the cut.
        #[test]
        fn agrees_with_the_plain_sum(
            ln_size in -90.0..30.0f64, arg in 0.0..3.0f64, a in 0.1..8.0f64, step in 0.05..0.6f64
        ) {
            let n = (90.0 / step) as usize;
            // Weights of a heavy tail, and a little that is out of reach.
            let raw: Vec<f64> = (0..n).map(|j| {
                let u = 4.0 - j as f64 * step;
                (a * (1.0 + u - u.exp())).exp()
            }).collect();
            let total = raw.iter().sum::<f64>() / (1.0 - 1e-30);
            let weights: Vec<f64> = raw.iter().map(|w| w / total).collect();
            let mixture = ScaleMixture::new(-4.0, step, weights.clone(), 1e-30);
            let q = Complex64::from_polar(ln_size.exp(), arg);
            let (mut kept, mut lost) = (Complex64::ZERO, Complex64::from(1e-30));
            for (j, w) in weights.iter().enumerate() {
                let x = q * (-4.0 + j as f64 * step).exp();
                let root = (1.0 + x).sqrt();
                kept += w / root;
                lost += w * x / (1.0 + x + root);
            }
            let got = mixture.ln_transform(q);
            prop_assert!((got.exp() - kept).norm() < 1e-12 * kept.norm(), "{got} {kept}");
            let got = -crate::numerics::complex::exp_m1(got);
            prop_assert!((got - lost).norm() < 1e-12 * lost.norm(), "{got} {lost}");
        }
    }
}
