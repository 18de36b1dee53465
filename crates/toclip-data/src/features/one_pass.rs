//! The risk of one pass over real data, with two corrections to the theory of the paper.

use super::clipped_moments::{ClippedMoments, SharedPart};
use super::{ClippedOptimum, Design, LeastSquares};
use crate::Result;
use crate::error::bail;
use toclip::dynamics::log_times;

/// Steps of the integration; each is exact but for the change of the risk within it.
const NODES: usize = 1200;
/// A risk this many times that at the start has diverged.
const DIVERGED: f64 = 1e10;

/// $R(t) = \frac12\sum_i \lambda_i\left((m_i + \delta_i)^2 + s_i - \frac{\lambda_i}{n} S_i^2\right)$: the theory
/// of the paper with two corrections for real data.
///
/// - **The limit.** Clipped SGD tends to $\theta_c$ ([`ClippedOptimum`]), not to $\theta^\ast$. In the
///   eigenbasis let $\delta = \theta_c - \theta^\ast$ and let $m_i$, $s_i$ be mean and variance of
///   $\theta - \theta_c$: $\dot m_i = -\eta\mu_i\lambda_i m_i + \eta\thinspace g_i$,
///   $\dot s_i = -2\eta\mu_i\lambda_i s_i + \frac{\eta^2}{d}\lambda_i m_{2,i}$. Here $\mu_i(R)$ and
///   $m_{2,i}(R)$ are measured along each eigenvector, since residuals that depend on the features
///   are clipped more along some than along others, and $g(R) = E\[x\thinspace
///   \psi_c(\epsilon + \sqrt{2R}\thinspace z)\]$ is the mean clipped gradient that is left: it vanishes with
///   $R$; where $R$ is large, clipping is a matter of $z$ and it leads back to $\theta^\ast$.
/// - **One pass.** Samples drawn without replacement from $n$ are negatively correlated, by
///   $-1/n$: what has come cannot come again. $\dot S_i = -\eta\mu_i\lambda_i S_i + \eta\thinspace q$ adds
///   their correlations up, where $q^2 = E\[E\[\psi_c(X) | \epsilon\]^2\]$ is what one sample has in common
///   with itself at another time.
///
/// Where noise and features are independent, $g$, $\delta$ and the differences between directions
/// are sampling error, and without the second correction this is the ODE of the paper. Left out are
/// fluctuations of finite $d$, and that clipping couples directions.
#[derive(Debug, Clone, PartialEq)]
pub struct OnePass {
    /// $t$, up to divergence.
    pub times: Vec<f64>,
    /// $R$ with both corrections.
    pub risk: Vec<f64>,
    /// $R$ with the first correction alone: samples drawn with replacement.
    pub with_replacement: Vec<f64>,
}

impl OnePass {
    /// Predicts the risk of `start` $= \theta_0$ at the learning rate `eta` and `times`, which increase.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a start of the wrong length or impossible times.
    pub fn new(
        design: &Design,
        fit: &LeastSquares,
        clipped: &ClippedOptimum,
        start: &[f64],
        eta: f64,
        times: &[f64],
    ) -> Result<Self> {
        let point = &clipped.point;
        if start.len() != point.len() || fit.optimum.len() != point.len() {
            bail!("the start has {} coordinates, not {}", start.len(), point.len());
        }
        let minus = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>();
        let lambda = design.eigenvalues();
        let p = lambda.len();
        let mut state = State {
            lambda,
            mean: design.project(&minus(start, point)),
            variance: vec![0.0; p],
            sums: vec![0.0; p],
        };
        let delta = design.project(&minus(point, &fit.optimum));
        let first = state.risk();
        let rates = Rates {
            moments: ClippedMoments::new(design, clipped, first),
            shared: SharedPart::new(&clipped.residuals),
            c: clipped.c,
            eta,
            dim: design.dim(),
        };
        let n = design.rows() as f64;
        let mut found = OnePass { times: vec![], risk: vec![], with_replacement: vec![] };
        let mut wanted = times.iter().peekable();
        let nodes = nodes(times)?;
        let mut half = state.clone();
        for (k, &t) in nodes.iter().enumerate() {
            if k > 0 {
                let h = t - nodes[k - 1];
                // The midpoint rule: the rates in the middle for the whole step.
                half.clone_from(&state);
                half.advance(0.5 * h, &rates, state.risk());
                state.advance(h, &rates, half.risk());
            }
            if !(state.risk() <= DIVERGED * (first + 1.0)) {
                break;
            }
            if wanted.peek() == Some(&&t) {
                wanted.next();
                let risk = state.risk_from(&delta);
                found.times.push(t);
                found.with_replacement.push(risk);
                found.risk.push((risk - state.once() / n).max(0.0));
            }
        }
        Ok(found)
    }
}

/// The rates as functions of the risk.
struct Rates {
    moments: ClippedMoments,
    shared: SharedPart,
    c: f64,
    eta: f64,
    dim: f64,
}

/// $m_i$, $s_i$ and $S_i$.
#[derive(Clone)]
struct State<'a> {
    lambda: &'a [f64],
    mean: Vec<f64>,
    variance: Vec<f64>,
    sums: Vec<f64>,
}

impl State<'_> {
    /// A step of length `h` with the constant rates at one risk, exactly.
    fn advance(&mut self, h: f64, rates: &Rates, risk: f64) {
        let (eta, heat) = (rates.eta, rates.eta * rates.eta / rates.dim);
        let shared = rates.shared.root(risk, rates.c);
        for (i, [mu, m2, drive]) in rates.moments.at(risk).enumerate() {
            let l = self.lambda[i];
            let x = eta * mu * l * h;
            let (decay, gain) = ((-x).exp(), eta * h * mean_decay(x));
            self.mean[i] = self.mean[i] * decay + drive * gain;
            self.sums[i] = self.sums[i] * decay + shared * gain;
            let heat = heat * m2 * l * h * mean_decay(2.0 * x);
            self.variance[i] = self.variance[i] * decay * decay + heat;
        }
    }

    /// About the clipped optimum.
    fn risk(&self) -> f64 {
        let modes = self.lambda.iter().zip(&self.mean).zip(&self.variance);
        0.5 * modes.map(|((l, m), s)| l * (m * m + s)).sum::<f64>()
    }

    /// About a point `delta` away from it.
    fn risk_from(&self, delta: &[f64]) -> f64 {
        let modes = self.lambda.iter().zip(&self.mean).zip(&self.variance).zip(delta);
        0.5 * modes.map(|(((l, m), s), d)| l * ((m + d).powi(2) + s)).sum::<f64>()
    }

    /// $\frac12\sum_i\lambda_i^2 S_i^2$.
    fn once(&self) -> f64 {
        0.5 * self.lambda.iter().zip(&self.sums).map(|(l, s)| (l * s).powi(2)).sum::<f64>()
    }
}

/// $(1 - e^{-x})/x$.
fn mean_decay(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { -(-x).exp_m1() / x }
}

/// The requested times among enough others.
fn nodes(times: &[f64]) -> Result<Vec<f64>> {
    if times.is_empty() || times.iter().any(|t| !(t.is_finite() && *t >= 0.0)) {
        bail!("times must be finite and not negative");
    }
    let end = times.iter().copied().fold(0.0, f64::max);
    let mut nodes = times.to_vec();
    nodes.push(0.0);
    if end > 0.0 {
        nodes.extend(log_times(1e-5 * end, end, NODES)?);
    }
    nodes.sort_by(f64::total_cmp);
    nodes.dedup();
    Ok(nodes)
}

#[cfg(test)]
#[path = "one_pass_tests.rs"]
mod tests;
