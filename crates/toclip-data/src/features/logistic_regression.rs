//! Logistic regression: $\theta^\ast$ of two classes.

use super::Design;
use super::tall_matrix::{times, weighted_gram};
use crate::Result;
use crate::error::bail;
use faer::linalg::solvers::Solve;
use faer::{Mat, Side};
use std::fmt;

/// The ridge where $K$ is singular and the classes are not separable, as that of least squares.
const SINGULAR: f64 = 1e-6;
/// Newton steps; a fit that exists takes about ten.
const MOST_STEPS: usize = 60;
/// What half of Newton's decrement, in nats, may be left.
const CONVERGED: f64 = 1e-13;

/// Why there is a ridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RidgeReason {
    /// It was requested.
    Requested,
    /// A plane separates the classes, or nearly: without a ridge $\theta^\ast$ is infinite.
    Separable,
    /// So many directions have no variance.
    Singular(usize),
}

/// $\rho$, which adds $\frac\rho2\Vert\theta\Vert ^2$ to the cross-entropy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogisticRidge {
    /// $\rho$, where $\Vert K\Vert = 1$.
    pub value: f64,
    /// Why there is one.
    pub reason: RidgeReason,
}

impl fmt::Display for LogisticRidge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a ridge of {} ||K||", toclip_words::short(self.value))?;
        match self.reason {
            RidgeReason::Requested => Ok(()),
            RidgeReason::Separable => write!(f, " (1/n), because the classes are separable"),
            RidgeReason::Singular(1) => write!(f, ", because K is singular in one direction"),
            RidgeReason::Singular(n) => write!(f, ", because K is singular in {n} directions"),
        }
    }
}

/// $\theta^\ast = \arg\min_\theta \frac1n\sum_k\left(\ln(1 + e^{u_k}) - y_ku_k\right) + \frac\rho2\Vert\theta\Vert ^2$
/// with $u_k = \langle x_k, \theta\rangle$: logistic regression without intercept, by Newton's method.
///
/// There is no ridge unless it is requested or needed: $1/n$, which is a standard normal prior on
/// $\theta$, where the classes are separable and the minimum is at infinity, and $10^{-6}$ where $K$ is
/// singular and they are not.
///
/// ```
/// use toclip_data::{Design, Features, LogisticRegression, Matrix, RidgeReason, Samples};
/// let fit = |y: [f64; 6]| {
///     let x = Matrix::new(6, 1, vec![-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])?;
///     let design = Design::new(&Samples::new(x, y.to_vec())?, Features::None, 1)?;
///     LogisticRegression::new(&design, &design.labels()?, None)
/// };
/// let mixed = fit([0.0, 0.0, 1.0, 0.0, 1.0, 1.0])?;
/// assert!(mixed.ridge.is_none() && mixed.optimum[0] > 0.0);
/// let separable = fit([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])?;
/// assert_eq!(separable.ridge.map(|r| r.reason), Some(RidgeReason::Separable));
/// # Ok::<(), toclip_data::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LogisticRegression {
    /// $\theta^\ast$.
    pub optimum: Vec<f64>,
    /// $\rho$; `None` where there is no ridge.
    pub ridge: Option<LogisticRidge>,
}

impl LogisticRegression {
    /// Fits labels 0 and 1, one for each row; with a ridge of this share of $\Vert K\Vert $, or, for
    /// `None`, with one only where it is needed.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a ridge that is not positive, another number of
    /// labels than rows, and where Newton's method does not converge.
    pub fn new(design: &Design, labels: &[f64], ridge: Option<f64>) -> Result<Self> {
        let (n, p) = (design.rows(), design.cols());
        if labels.len() != n {
            bail!("{} labels for {n} samples", labels.len());
        }
        if let Some(value) = ridge {
            if !(value > 0.0 && value.is_finite()) {
                bail!("the ridge must be a positive share of ||K||, for example 1e-3");
            }
            let ridge = Some(LogisticRidge { value, reason: RidgeReason::Requested });
            return Self::with_ridge(design, labels, ridge);
        }
        let negligible = n.max(p) as f64 * f64::EPSILON;
        let flat = design.eigenvalues().iter().filter(|l| **l <= negligible).count();
        let least = (flat > 0)
            .then_some(LogisticRidge { value: SINGULAR, reason: RidgeReason::Singular(flat) });
        match newton(design, labels, least.map_or(0.0, |r| r.value), true) {
            Newton::Found(optimum) => Ok(LogisticRegression { optimum, ridge: least }),
            Newton::Separable | Newton::Lost => {
                let value = 1.0 / n as f64;
                let ridge = LogisticRidge { value, reason: RidgeReason::Separable };
                Self::with_ridge(design, labels, Some(ridge))
            }
        }
    }

    fn with_ridge(design: &Design, labels: &[f64], ridge: Option<LogisticRidge>) -> Result<Self> {
        match newton(design, labels, ridge.map_or(0.0, |r| r.value), false) {
            Newton::Found(optimum) => Ok(LogisticRegression { optimum, ridge }),
            _ => bail!(
                "{}: logistic regression did not converge in {MOST_STEPS} steps; use a larger ridge",
                design.name()
            ),
        }
    }

    /// $\langle x_k, \theta^\ast\rangle$ of samples: those of the fit, or others.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for samples with another number of features.
    pub fn logits(&self, design: &Design) -> Result<Vec<f64>> {
        if design.cols() != self.optimum.len() {
            let fitted = self.optimum.len();
            bail!("the samples have {} features, but the fit has {fitted}", design.cols());
        }
        Ok(times(design.features(), &self.optimum))
    }
}

/// How Newton's method ended.
enum Newton {
    Found(Vec<f64>),
    /// A point was met that classifies every sample correctly.
    Separable,
    Lost,
}

fn newton(design: &Design, labels: &[f64], rho: f64, stop_if_separated: bool) -> Newton {
    let p = design.cols();
    let mut at = State::new(design, labels, rho, vec![0.0; p]);
    for _ in 0..MOST_STEPS {
        let off: Vec<f64> = at.logits.iter().zip(labels).map(|(u, y)| sigmoid(*u) - y).collect();
        let mut gradient = design.mean_of(&off);
        gradient.iter_mut().zip(&at.theta).for_each(|(g, w)| *g += rho * w);
        let slopes: Vec<f64> = at.logits.iter().map(|u| sigmoid(*u) * sigmoid(-u)).collect();
        let mut hessian = weighted_gram(design.features(), p, Some(&slopes));
        (0..p).for_each(|i| hessian[(i, i)] += rho);
        let Ok(factor) = hessian.llt(Side::Lower) else { return Newton::Lost };
        let step = factor.solve(Mat::from_fn(p, 1, |i, _| gradient[i]));
        let decrement: f64 = (0..p).map(|i| gradient[i] * step[(i, 0)]).sum();
        if !decrement.is_finite() {
            return Newton::Lost;
        }
        let mut length = 1.0;
        let next = loop {
            let theta =
                at.theta.iter().enumerate().map(|(i, w)| w - length * step[(i, 0)]).collect();
            let next = State::new(design, labels, rho, theta);
            // Near the minimum losses differ by rounding only, and a full step is right.
            let near = 0.5 * decrement <= CONVERGED;
            if near || next.loss <= at.loss - 0.25 * length * decrement || length < 1e-6 {
                break next;
            }
            length *= 0.5;
        };
        at = next;
        if stop_if_separated && at.separates(labels) {
            return Newton::Separable;
        }
        if 0.5 * decrement <= CONVERGED {
            return Newton::Found(at.theta);
        }
    }
    Newton::Lost
}

struct State {
    theta: Vec<f64>,
    logits: Vec<f64>,
    loss: f64,
}

impl State {
    fn new(design: &Design, labels: &[f64], rho: f64, theta: Vec<f64>) -> Self {
        let logits = times(design.features(), &theta);
        let loss = |(u, y): (&f64, &f64)| u.max(0.0) + (-u.abs()).exp().ln_1p() - y * u;
        let total: f64 = logits.iter().zip(labels).map(loss).sum();
        let square: f64 = theta.iter().map(|w| w * w).sum();
        let loss = total / labels.len() as f64 + 0.5 * rho * square;
        State { theta, logits, loss }
    }

    fn separates(&self, labels: &[f64]) -> bool {
        self.logits.iter().zip(labels).all(|(u, y)| if *y == 1.0 { *u > 0.0 } else { *u < 0.0 })
    }
}

fn sigmoid(u: f64) -> f64 {
    (1.0 + (-u).exp()).recip()
}

#[cfg(test)]
#[path = "logistic_regression_tests.rs"]
mod tests;
