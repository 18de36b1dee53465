//! The constant rate and threshold of private SGD with the lowest predicted risk.

use super::search::final_value;
use crate::dynamics::Ode;
use crate::error::{Error, Result};
use crate::numerics::maximise::log_grid;
use crate::policy::{OpenLoop, threshold_range};
use crate::problem::Problem;
use serde::Serialize;

/// Enough to tell two points apart at a flat minimum.
const RTOL: f64 = 1e-7;
/// Points of the first grid for each decade.
const PER_DECADE: f64 = 2.5;
/// $\eta c$ is searched from this share of the smallest threshold to so many times the largest.
const STEPS: (f64, f64) = (0.1, 10.0);
/// The simplex has collapsed when its points agree to this in $\ln c$ and $\ln\eta$.
const COLLAPSED: f64 = 1e-5;

/// The best constant $(\eta, c)$ and the risk $R(T)$ it ends with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TunedPrivate {
    /// $\eta$.
    pub eta: f64,
    /// $c$.
    pub c: f64,
    /// $R(T)$ of the ODE.
    pub risk: f64,
}

/// $\arg\min_{\eta, c} R(T)$ of the ODE of a private step with constant $\eta$ and $c$.
///
/// A grid in $(c, \eta c)$ is searched and its best point refined by the simplex method of Nelder
/// and Mead. Small thresholds with $\eta c$ fixed are all alike (every gradient is clipped), and
/// $\eta c$ is a coordinate of its own for their sake. Thresholds below $10^{-3}$ of the scale of
/// the residuals are not tried.
///
/// # Errors
/// [`Error::Invalid`] for a step without privacy, and if everything diverges; as [`Ode::solve`].
///
/// ```
/// use toclip::{Batch, Problem, Step, noise::Gaussian, privacy::Privacy};
/// use toclip::policy::OpenLoop;
/// use toclip::spectrum::{Modes, Spectrum, Start};
/// use toclip::tuning::tune_private;
/// let modes = Modes::new(&Spectrum::isotropic(1000)?, &Start::Uniform { norm: 1.0 })?;
/// let best = |sigma| {
///     let step = Step::new(Gaussian::new(0.5)?).with_batch(Batch::per_sample(16)?)?;
///     let step = step.with_privacy(Privacy::new(sigma)?)?;
///     tune_private(&Problem::new(modes.clone(), step, OpenLoop::constant(0.1, 1.0)?)?, 5.0)
/// };
/// // Privacy costs risk, and asks for smaller thresholds.
/// let (some, more) = (best(0.05)?, best(0.5)?);
/// assert!(more.risk > 1.2 * some.risk && more.c < some.c);
/// # Ok::<(), toclip::Error>(())
/// ```
pub fn tune_private(problem: &Problem, time: f64) -> Result<TunedPrivate> {
    let step = problem.step();
    if !(step.private_variance(1.0) > 0.0) {
        return Err(Error::Invalid(
            "tuning private SGD needs a step with a noise multiplier above 0".into(),
        ));
    }
    let (low, high) = threshold_range(step, problem.risk());
    let end = |[c, rate]: [f64; 2]| -> Result<f64> {
        let (c, eta) = (c.exp(), (rate - c).exp());
        if !(low..=high).contains(&c) {
            return Ok(f64::INFINITY);
        }
        let problem = problem.with_policy(OpenLoop::constant(eta, c)?)?;
        final_value(&Ode::new(&problem)?.tolerance(RTOL, 0.0), &problem, time)
    };
    // In a short time the rate has to be large, in a long one it may be small.
    let longest = time.max(1.0);
    let rates = log_grid(STEPS.0 * low / longest, STEPS.1 * high / longest.min(10.0), PER_DECADE);
    let mut best = ([f64::NAN; 2], f64::INFINITY);
    for c in log_grid(low, high, PER_DECADE) {
        for rate in &rates {
            let at = [c.ln(), rate.ln()];
            let risk = end(at)?;
            if risk < best.1 {
                best = (at, risk);
            }
        }
    }
    if best.1.is_infinite() {
        return Err(Error::Invalid(format!(
            "private SGD diverges before t = {time} at every rate that was tried"
        )));
    }
    let (at, risk) = simplex(best, std::f64::consts::LN_10 / PER_DECADE / 2.0, end)?;
    Ok(TunedPrivate { eta: (at[1] - at[0]).exp(), c: at[0].exp(), risk })
}

type Vertex = ([f64; 2], f64);

/// The minimum near a point, by the method of Nelder and Mead in the plane.
fn simplex(start: Vertex, size: f64, f: impl Fn([f64; 2]) -> Result<f64>) -> Result<Vertex> {
    let vertex = |at: [f64; 2]| -> Result<Vertex> { Ok((at, f(at)?)) };
    let (x, y) = (start.0[0], start.0[1]);
    let mut points = [start, vertex([x + size, y])?, vertex([x, y + size])?];
    for _ in 0..200 {
        points.sort_by(|a, b| a.1.total_cmp(&b.1));
        let [best, middle, worst] = points;
        let apart = |k: usize| (worst.0[k] - best.0[k]).abs().max((middle.0[k] - best.0[k]).abs());
        if apart(0).max(apart(1)) < COLLAPSED {
            break;
        }
        // Through the centre of the better two, so far.
        let along = |t: f64| {
            [0, 1].map(|k| {
                let centre = 0.5 * (best.0[k] + middle.0[k]);
                centre + t * (centre - worst.0[k])
            })
        };
        let mirrored = vertex(along(1.0))?;
        let next = if mirrored.1 < best.1 {
            let further = vertex(along(2.0))?;
            if further.1 < mirrored.1 { further } else { mirrored }
        } else if mirrored.1 < middle.1 {
            mirrored
        } else {
            vertex(along(if mirrored.1 < worst.1 { 0.5 } else { -0.5 }))?
        };
        if next.1 < worst.1 {
            points[2] = next;
        } else {
            let towards = |p: Vertex| [0, 1].map(|k| 0.5 * (p.0[k] + best.0[k]));
            points = [best, vertex(towards(middle))?, vertex(towards(worst))?];
        }
    }
    points.sort_by(|a, b| a.1.total_cmp(&b.1));
    Ok(points[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simplex_finds_the_end_of_a_curved_valley() {
        let valley = |[x, y]: [f64; 2]| Ok((1.0 - x).powi(2) + 20.0 * (y - x * x).powi(2));
        let start = [-0.5, 0.5];
        let (at, value) = simplex((start, valley(start).unwrap()), 0.3, valley).unwrap();
        assert!((at[0] - 1.0).abs() < 1e-3 && value < 1e-6, "{at:?} {value}");
    }
}
