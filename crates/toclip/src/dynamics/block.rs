//! Directions of equal eigenvalue grouped into blocks, for the collapsed methods.

use crate::error::{Error, Result};
use crate::numerics::sum::dot;
use crate::spectrum::{Mode, Modes};
use rand::Rng;
use rand_distr::{Distribution, Exp1, Gamma, StandardNormal};

/// $(\lambda_b, n_b, u_b(0))$ in columns: blocks of several directions first, single ones after.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    /// $d$.
    pub dim: f64,
    /// The number of the mode of each block.
    pub modes: Vec<usize>,
    /// $n_b$.
    pub counts: Vec<f64>,
    /// $\lambda_b > 0$.
    pub lambda: Vec<f64>,
    /// $\lambda_b^2$.
    pub lambda_sq: Vec<f64>,
    /// $\sqrt{\lambda_b}$.
    pub root: Vec<f64>,
    /// $u_b(0) = \Vert \theta_b\Vert $.
    pub lengths: Vec<f64>,
    /// The distribution of $h_b \sim \chi^2(n_b - 1)$ of the blocks of several directions, which
    /// come first.
    pub rest: Vec<ChiSquare>,
    /// The distribution of $\chi^2(n_b - 2)$ of the same blocks; none for $n_b = 2$.
    pub rest_but_one: Vec<Option<ChiSquare>>,
    /// $\sum u_b^2$ over $\lambda_b = 0$, where nothing moves.
    pub frozen: f64,
}

impl Blocks {
    /// Those of modes that were not compressed.
    pub fn new(modes: &Modes) -> Result<Self> {
        let numbered = modes.modes().iter().copied().enumerate();
        let (moving, still): (Vec<_>, Vec<_>) = numbered.partition(|(_, m)| m.lambda > 0.0);
        let (mut moving, single): (Vec<(usize, Mode)>, Vec<_>) =
            moving.into_iter().partition(|(_, m)| m.count > 1.0);
        let rest =
            moving.iter().map(|(_, m)| ChiSquare::new(m.count - 1.0)).collect::<Result<_>>()?;
        let fewer = |(_, m): &(usize, Mode)| {
            (m.count > 2.0).then(|| ChiSquare::new(m.count - 2.0)).transpose()
        };
        let rest_but_one = moving.iter().map(fewer).collect::<Result<_>>()?;
        moving.extend(single);
        let column = |f: fn(&Mode) -> f64| moving.iter().map(|(_, m)| f(m)).collect::<Vec<_>>();
        Ok(Self {
            dim: modes.dim(),
            modes: moving.iter().map(|(number, _)| *number).collect(),
            counts: column(|m| m.count),
            lambda: column(|m| m.lambda),
            lambda_sq: column(|m| m.lambda * m.lambda),
            root: column(|m| m.lambda.sqrt()),
            lengths: column(|m| (2.0 * m.energy).sqrt()),
            rest,
            rest_but_one,
            frozen: still.iter().map(|(_, m)| 2.0 * m.energy).sum(),
        })
    }

    /// $u_b^2 \leftarrow (u_b - s\sqrt{\lambda_b}\thinspace g_b)^2 + a_b$ with $g$ `along` the
    /// directions of $u$ and $a_b$ = `gained`(`across`$_b$, $\lambda_b$) in the blocks that have
    /// others; $R$ and $D$ after that.
    #[inline]
    pub fn advance(
        &self,
        u: &mut [f64],
        step: f64,
        along: &[f64],
        across: &[f64],
        gained: impl Fn(f64, f64) -> f64,
    ) -> (f64, f64) {
        let (mut twice_risk, mut distance) = (0.0, self.frozen);
        for (((u, g), root), lambda) in u.iter_mut().zip(along).zip(&self.root).zip(&self.lambda) {
            // Its sign is immaterial: a single direction keeps it, and so needs no root.
            *u -= step * root * g;
            twice_risk += lambda * *u * *u;
            distance += *u * *u;
        }
        for ((u, g), lambda) in u.iter_mut().zip(across).zip(&self.lambda) {
            let gained = gained(*g, *lambda);
            twice_risk += lambda * gained;
            distance += gained;
            *u = (*u * *u + gained).sqrt();
        }
        (0.5 * twice_risk, distance)
    }

    /// $R$ and $D$ of the squares $u_b^2$.
    pub fn risk_and_distance(&self, squares: &[f64]) -> (f64, f64) {
        (0.5 * dot(&self.lambda, squares), self.frozen + squares.iter().sum::<f64>())
    }
}

/// $\chi^2(m)$, $m \ge 1$, by the cheapest exact way.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ChiSquare {
    /// $m = 1$: the square of a normal.
    Square,
    /// $m = 2$: twice an exponential.
    Exponential,
    /// Marsaglia and Tsang (2000), one normal and one uniform nearly always.
    Gamma(Gamma<f64>),
}

impl ChiSquare {
    pub fn new(m: f64) -> Result<Self> {
        if m == 1.0 {
            return Ok(Self::Square);
        }
        if m == 2.0 {
            return Ok(Self::Exponential);
        }
        let refused = |_| Error::parameter("degrees of freedom", m, "must be positive");
        Gamma::new(0.5 * m, 2.0).map(Self::Gamma).map_err(refused)
    }

    pub fn sample(&self, rng: &mut impl Rng) -> f64 {
        match self {
            Self::Square => {
                let z: f64 = StandardNormal.sample(rng);
                z * z
            }
            Self::Exponential => {
                let e: f64 = Exp1.sample(rng);
                2.0 * e
            }
            Self::Gamma(gamma) => gamma.sample(rng),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{Purpose, scalar_rng};

    #[test]
    fn every_way_has_the_moments_of_chi_squared() {
        // Mean m and variance 2m; the variance of (h − m)² is 8m² + 48m. 100 000 draws, five
        // standard errors each: false alarm 6e-6 in all.
        for m in [1.0, 2.0, 3.0, 10.0, 999_999.0] {
            let rest = ChiSquare::new(m).unwrap();
            let mut rng = scalar_rng(3, 0, Purpose::Lengths);
            let n = 100_000;
            let draws: Vec<f64> = (0..n).map(|_| rest.sample(&mut rng) - m).collect();
            let mean = draws.iter().sum::<f64>() / f64::from(n);
            let variance = draws.iter().map(|h| h * h).sum::<f64>() / f64::from(n);
            assert!(mean.abs() < 5.0 * (2.0 * m / f64::from(n)).sqrt(), "{m}: {mean}");
            let error = (8.0 * m * m + 48.0 * m) / f64::from(n);
            assert!((variance - 2.0 * m).abs() < 5.0 * error.sqrt(), "{m}: {variance}");
        }
    }
}
