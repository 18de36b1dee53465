//! The risk of one pass over real data, with what the paper leaves out.

use super::{Design, Destination, LeastSquares};
use crate::{Error, Result};
use std::f64::consts::{FRAC_1_SQRT_2, PI};
use toclip::dynamics::{Ode, log_times};
use toclip::noise::Empirical;
use toclip::schedule::Policy;

/// Points on which the rates along the path are integrated.
const NODES: usize = 400;

/// $R(t) = R_c(t) + \sum_i \lambda_i \delta_i w_i e^{-\lambda_i\Gamma_t} + \frac12\sum_i\lambda_i\delta_i^2
/// - \frac{1}{2n}\sum_i \lambda_i^2 S_i(t)^2$: the theory of the paper with two corrections for
/// real data.
///
/// - **The destination.** Clipped SGD tends to $\theta_c$ ([`Destination`]), not to $\theta^\ast$: the
///   ODE is solved about $\theta_c$ for $R_c$, with the residuals from there, and the risk is
///   measured from $\theta^\ast$. Here $\delta = \theta_c - \theta^\ast$ and $w = \theta_0 - \theta_c$ in the
///   eigenbasis, and $\Gamma_t = \int_0^t \eta\mu\thinspace ds$.
/// - **One pass.** Samples drawn without replacement from $n$ are negatively correlated, by
///   $-1/n$: what has come cannot come again. $S_i(t) = \int_0^t \eta\thinspace q\thinspace
///   e^{-\lambda_i(\Gamma_t-\Gamma_s)}ds$ adds their correlations up, where $q^2 = E\[E\[\psi_c(X) | \epsilon\]^2\]$
///   is what one sample has in common with itself at another time.
///
/// Left out are the fluctuations of finite $d$.
#[derive(Debug, Clone, PartialEq)]
pub struct OnePass {
    /// $t$, as far as the path went.
    pub times: Vec<f64>,
    /// $R$ with both corrections.
    pub risk: Vec<f64>,
    /// $R$ with the destination alone: samples drawn with replacement.
    pub with_replacement: Vec<f64>,
}

impl OnePass {
    /// Predicts the risk of `start` $= \theta_0$ at `times`, which increase.
    ///
    /// # Errors
    /// Those of the [`Ode`], and [`Error::Invalid`] for a start of the wrong length.
    pub fn new(
        design: &Design,
        fit: &LeastSquares,
        destination: &Destination,
        start: &[f64],
        policy: &dyn Policy,
        times: &[f64],
    ) -> Result<Self> {
        let point = &destination.point;
        if start.len() != point.len() || fit.optimum.len() != point.len() {
            let (found, wanted) = (start.len(), point.len());
            return Err(Error::Invalid(format!("a start of {found} coordinates, not {wanted}")));
        }
        let minus = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>();
        let gap = minus(start, point);
        let (w, delta) = (design.project(&gap), design.project(&minus(point, &fit.optimum)));
        let noise = Empirical::new(&destination.residuals)?;
        let modes = design.modes(&gap)?;
        let (nodes, grid) = grid(times)?;
        let path = Ode::new(&modes, &noise, policy).keep_path(true).solve(&grid)?;
        let points = path.path.unwrap_or_default();
        let lambda = design.eigenvalues();
        let n = design.rows() as f64;
        let common = Common::new(&destination.residuals);
        let drives: Vec<f64> = points
            .iter()
            .zip(&path.risk)
            .map(|(at, r)| at.eta * common.root(r.max(0.0), at.c))
            .collect();
        let (mut clock, mut sums) = (0.0, vec![0.0; lambda.len()]);
        let mut found = OnePass { times: vec![], risk: vec![], with_replacement: vec![] };
        let mut wanted = times.iter().peekable();
        for (k, &t) in nodes.iter().enumerate() {
            // Nodes are at even places of the grid, the middles of their gaps at odd ones.
            if 2 * k >= path.risk.len() {
                break;
            }
            if k > 0 {
                let h = (t - nodes[k - 1]) / 6.0;
                let simpson =
                    |f: &dyn Fn(usize) -> f64| h * (f(2 * k - 2) + 4.0 * f(2 * k - 1) + f(2 * k));
                let gain = simpson(&|i| points[i].eta * points[i].mu);
                // Nearly constant over a gap.
                let drive = simpson(&|i| drives[i]);
                clock += gain;
                for (s, l) in sums.iter_mut().zip(lambda) {
                    *s = *s * (-l * gain).exp() + drive * mean_decay(l * gain);
                }
            }
            if wanted.peek() == Some(&&t) {
                wanted.next();
                let parts = lambda
                    .iter()
                    .zip(&w)
                    .zip(&delta)
                    .map(|((l, w), d)| l * d * (w * (-l * clock).exp() + 0.5 * d));
                let risk = path.risk[2 * k] + parts.sum::<f64>();
                let once: f64 =
                    sums.iter().zip(lambda).map(|(s, l)| (l * s).powi(2)).sum::<f64>() / (2.0 * n);
                found.times.push(t);
                found.with_replacement.push(risk.max(0.0));
                found.risk.push((risk - once).max(0.0));
            }
        }
        Ok(found)
    }
}

/// Residuals, thinned: what they are used for is a small correction.
struct Common(Vec<f64>);

impl Common {
    const MOST: usize = 1000;

    fn new(residuals: &[f64]) -> Self {
        let mut sorted = residuals.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (n, count) = (sorted.len(), sorted.len().min(Self::MOST));
        // The middles of equal shares.
        Common((0..count).map(|k| sorted[(2 * k + 1) * n / (2 * count)]).collect())
    }

    /// $q$ at risk $R$.
    fn root(&self, r: f64, c: f64) -> f64 {
        let spread = (2.0 * r).sqrt();
        let square = |e: &f64| mean_clipped(*e, spread, c).powi(2);
        (self.0.iter().map(square).sum::<f64>() / self.0.len() as f64).sqrt()
    }
}

/// $E\thinspace \psi_c(X)$ of $X \sim N(m, s^2)$.
fn mean_clipped(m: f64, s: f64, c: f64) -> f64 {
    if s == 0.0 || c.is_infinite() {
        return m.clamp(-c, c);
    }
    let over = |a: f64| {
        let y = a / s;
        // E max(0, X - m - a): what a bound at a above the mean cuts off.
        s * (-0.5 * y * y).exp() / (2.0 * PI).sqrt() - a * 0.5 * libm::erfc(y * FRAC_1_SQRT_2)
    };
    m - over(c - m) + over(c + m)
}

/// $(1 - e^{-x})/x$.
fn mean_decay(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { -(-x).exp_m1() / x }
}

/// The times asked for among enough others, and the same with the middle of every gap.
fn grid(times: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
    let end = times.last().copied().unwrap_or(0.0);
    let mut nodes = times.to_vec();
    nodes.push(0.0);
    if end > 0.0 {
        nodes.extend(log_times(1e-4 * end, end, NODES)?);
    }
    nodes.sort_by(f64::total_cmp);
    nodes.dedup();
    let middles = nodes.windows(2).flat_map(|w| [w[0], 0.5 * (w[0] + w[1])]);
    let mut grid: Vec<f64> = middles.collect();
    grid.extend(nodes.last());
    grid.dedup();
    if grid.len() + 1 != 2 * nodes.len() {
        return Err(Error::Invalid("two times are too close to tell apart".into()));
    }
    Ok((nodes, grid))
}

#[cfg(test)]
#[path = "one_pass_tests.rs"]
mod tests;
