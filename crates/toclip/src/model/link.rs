//! Label probabilities as mixtures of normal distribution functions.
//!
//! The logistic distribution is that of $2K\thinspace z$, with $z$ standard normal and $K$ of
//! Kolmogorov's distribution (Andrews and Mallows 1974): $\sigma(x) = E\thinspace\Phi(x/2K)$. The
//! trapezoidal rule in $\ln K$ makes this a sum that is exact to $2\times10^{-13}$,
//! $$ \sigma(x) = \sum_k w_k\thinspace\Phi(x/\tau_k), $$
//! after which integrals over normal variables over normal distribution functions, which are closed:
//! $$ E\thinspace\sigma(m + sz) = \sum_k w_k\thinspace\Phi\Bigl(\frac{m}{T_k}\Bigr), \qquad
//! E\thinspace{\sigma^\prime}(m + sz) = \sum_k \frac{w_k}{T_k}\thinspace\varphi\Bigl(\frac{m}{T_k}\Bigr),
//! \qquad T_k^2 = s^2 + \tau_k^2. $$

use crate::numerics::special::{FRAC_1_SQRT_2PI, erfcx};
use std::f64::consts::{FRAC_1_SQRT_2, PI};
use std::sync::LazyLock;

/// One normal distribution of a mixture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    /// $\tau_k^2$.
    pub variance: f64,
    /// $w_k$.
    pub weight: f64,
}

/// $F(v) = \sum_k w_k\thinspace\Phi(v/\tau_k)$.
pub(super) type Link = [Node];

/// $F = \sigma$.
pub(super) static LOGISTIC: LazyLock<Vec<Node>> = LazyLock::new(|| {
    // The step decides the error, exp(-π²/2h); outside the range the density is below 1e-13.
    let (step, first, last) = (0.14, 0.185_f64.ln(), 4.4_f64.ln());
    let count = ((last - first) / step) as usize;
    (0..=count)
        .map(|i| {
            let k = (first + step * i as f64).exp();
            Node { variance: 4.0 * k * k, weight: step * k * kolmogorov_density(k) }
        })
        .collect()
});

/// The density of Kolmogorov's distribution, by whichever of its two series converges at once.
fn kolmogorov_density(k: f64) -> f64 {
    if k < 0.8 {
        let term = |j: i32| {
            let a = (f64::from(2 * j - 1) * PI / k).powi(2) / 8.0;
            (-a).exp() * (2.0 * a - 1.0)
        };
        (1..8).map(term).sum::<f64>() / (FRAC_1_SQRT_2PI * k * k)
    } else {
        let term = |j: i32| {
            let square = f64::from(j * j);
            let sign = if j % 2 == 1 { 1.0 } else { -1.0 };
            sign * square * (-2.0 * square * k * k).exp()
        };
        8.0 * k * (1..8).map(term).sum::<f64>()
    }
}

/// $E\thinspace{F^\prime}(v)$ for $v \sim N(0, V)$: $\sum_k w_k/\sqrt{2\pi(V + \tau_k^2)}$.
pub(super) fn mean_slope(link: &Link, v: f64) -> f64 {
    FRAC_1_SQRT_2PI * link.iter().map(|n| n.weight / (v + n.variance).sqrt()).sum::<f64>()
}

/// $1 - P(u > 0, y = 1) - P(u < 0, y = 0)$ for $P(y = 1 | v) = F(v)$:
/// $\tfrac12 - \tfrac1\pi\sum_k w_k\arcsin\bigl(P/\sqrt{Q(V+\tau_k^2)}\bigr)$.
pub(super) fn error_rate(link: &Link, at: &super::Overlaps) -> f64 {
    if at.q == 0.0 {
        return 0.5;
    }
    let part = |n: &Node| {
        let sine = at.p / (at.q.sqrt() * (at.v + n.variance).sqrt());
        n.weight * sine.clamp(-1.0, 1.0).asin()
    };
    (0.5 - link.iter().map(part).sum::<f64>() / PI).clamp(0.0, 1.0)
}

/// Points to a unit of $x$ in the table of Mills' ratio, and where it ends.
const PER_UNIT: f64 = 16.0;
const TABLE_END: f64 = 9.0;
const TERMS: usize = 9;

/// Taylor coefficients of Mills' ratio $M = (1-\Phi)/\varphi$ at the middle of every cell, from
/// ${M^\prime} = xM - 1$ and $M^{(n+1)} = xM^{(n)} + nM^{(n-1)}$.
static MILLS: LazyLock<Vec<[f64; TERMS]>> = LazyLock::new(|| {
    (0..(PER_UNIT * TABLE_END) as usize)
        .map(|cell| {
            let x = (cell as f64 + 0.5) / PER_UNIT;
            let mut derivatives = [0.0; TERMS];
            derivatives[0] = (0.5 * PI).sqrt() * erfcx(x * FRAC_1_SQRT_2);
            derivatives[1] = x * derivatives[0] - 1.0;
            for n in 1..TERMS - 1 {
                derivatives[n + 1] = x * derivatives[n] + n as f64 * derivatives[n - 1];
            }
            let mut factorial = 1.0;
            for (n, d) in derivatives.iter_mut().enumerate() {
                factorial *= n.max(1) as f64;
                *d /= factorial;
            }
            derivatives
        })
        .collect()
});

/// $\varphi(x)$ and $1 - \Phi(x)$ for $x \ge 0$, for the price of one exponential.
pub(super) struct NormalTail {
    table: &'static [[f64; TERMS]],
}

impl NormalTail {
    pub(super) fn new() -> Self {
        NormalTail { table: &MILLS }
    }

    #[inline]
    pub(super) fn at(&self, x: f64) -> (f64, f64) {
        let density = FRAC_1_SQRT_2PI * (-0.5 * x * x).exp();
        let place = PER_UNIT * x;
        let ratio = match self.table.get(place as usize) {
            Some(terms) => {
                let h = x - (place.floor() + 0.5) / PER_UNIT;
                terms.iter().rev().fold(0.0, |sum, term| sum * h + term)
            }
            // Any value will do: the tail is below 1e-18.
            None => x.recip(),
        };
        (density, density * ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::special::upper_tail;

    #[test]
    fn the_logistic_distribution_is_a_mixture_of_normal_ones() {
        let weights: f64 = LOGISTIC.iter().map(|n| n.weight).sum();
        assert!((weights - 1.0).abs() < 3e-13, "{weights}");
        for i in 0..400 {
            let x = 0.1 * f64::from(i);
            let tail = 1.0 / (1.0 + x.exp());
            let mixed: f64 =
                LOGISTIC.iter().map(|n| n.weight * upper_tail(x / n.variance.sqrt())).sum();
            assert!((mixed - tail).abs() < 3e-13, "{x}: {mixed} {tail}");
            let slope: f64 = LOGISTIC
                .iter()
                .map(|n| {
                    n.weight * crate::numerics::special::phi(x / n.variance.sqrt())
                        / n.variance.sqrt()
                })
                .sum();
            assert!((slope - tail * (1.0 - tail)).abs() < 3e-13, "{x}: {slope}");
        }
        assert!(LOGISTIC.len() < 25);
    }

    #[test]
    fn the_table_is_the_normal_tail() {
        let table = NormalTail::new();
        for i in 0..3000 {
            let x = 0.004 * f64::from(i);
            let (density, tail) = table.at(x);
            assert!((density - crate::numerics::special::phi(x)).abs() < 1e-16);
            assert!((tail - upper_tail(x)).abs() < 2e-15, "{x}: {tail} {}", upper_tail(x));
        }
    }
}
