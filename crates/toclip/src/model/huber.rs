//! Huber regression.

use super::{Coefficients, Label, Model, Overlaps};
use crate::error::{Error, Result};
use crate::noise::{Noise, short, spread};
use crate::numerics::quadrature::{half_line, interval, panels_from};
use crate::numerics::risk_table::{EVERYWHERE, PanelValues, RiskTable};
use rand::Rng;
use std::sync::{Arc, OnceLock};

/// Regression with Huber's loss: $y = v + \epsilon$ and $r = \operatorname{clip}_\delta(u - y)$.
///
/// The residual before clipping is $X = \sqrt{2R}\thinspace z - \epsilon$ with $2R = Q - 2P + V$, so the
/// coefficients are those of least squares clipped at $\min(c, \delta)$:
/// $$ a = -b = P(|X| \le \min(c, \delta)), \qquad m^{(2)} = E\min(X^2, c^2, \delta^2). $$
/// $\delta = \infty$ is least squares. The noise may be of any [family](crate::noise).
///
/// ```
/// use std::sync::Arc;
/// use toclip::model::{Huber, Model, Overlaps};
/// use toclip::{Factors, noise::StudentT};
/// let noise = StudentT::new(1.0, 0.5)?;
/// let model = Huber::new(Arc::new(noise.clone()), 0.7)?;
/// let at = model.coefficients(&Overlaps::new(0.5, 0.6, 1.0)?, f64::INFINITY);
/// let least_squares = Factors::new(&noise, 0.15, 0.7)?;
/// assert_eq!(at.a, -at.b);
/// assert!((at.a - least_squares.mu).abs() < 1e-15 && (at.m2 - least_squares.m2).abs() < 1e-15);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Huber {
    noise: Arc<dyn Noise>,
    delta: f64,
    losses: Arc<Losses>,
}

/// $E\thinspace\ell$ along the risk: the integral over a heavy tail takes up to a second.
#[derive(Debug)]
struct Losses {
    table: RiskTable<1>,
    /// That at the spread [`ANCHOR`]$\cdot\delta$.
    anchor: OnceLock<f64>,
}

/// The relative error of a tabulated loss.
const TOLERANCE: f64 = 1e-11;
/// The spread of the error of the model, in units of $\delta$, from which losses are integrated.
const ANCHOR: f64 = 1e-3;

impl Huber {
    /// With this noise in the targets and the corner of the loss at $\delta$.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless $0 < \delta \le \infty$.
    pub fn new(noise: Arc<dyn Noise>, delta: f64) -> Result<Self> {
        if !(delta > 0.0) {
            return Err(Error::parameter("delta", delta, "give a positive number, or infinity"));
        }
        let losses = Losses { table: RiskTable::default(), anchor: OnceLock::new() };
        Ok(Huber { noise, delta, losses: Arc::new(losses) })
    }

    fn risk(at: &Overlaps) -> f64 {
        (0.5 * (at.q - 2.0 * at.p + at.v)).max(0.0)
    }

    /// $E\thinspace\ell$ at risk $r$ by its definition.
    fn integrated_loss(&self, r: f64) -> f64 {
        let delta = self.delta;
        let mut points: Vec<f64> = Vec::new();
        for feature in self.noise.features(r) {
            let (at, width) = (feature.at.abs(), feature.width);
            points.extend([at - width, at, at + width, at + 4.0 * width]);
        }
        points.push(2.0 * delta);
        let points = panels_from(delta, points);
        let density = |x: f64| self.noise.residual_density(r, x).map(|(f, _)| f);
        // From the density where there is one: 1 - μ is all rounding in a heavy tail.
        let [tail] = if r > 0.0 && density(delta).is_some() {
            let both = |x: f64| density(x).unwrap_or(0.0) + density(-x).unwrap_or(0.0);
            half_line(|x| [(x - delta) * both(x)], &points)
        } else {
            half_line(|x| [1.0 - self.noise.clipped(r, x).mu], &points)
        };
        0.5 * self.noise.clipped(r, delta).m2 + delta * tail
    }

    /// $E\thinspace\ell$ at increasing risks.
    ///
    /// Only the first is an integral over the tail. As $\partial_R E\thinspace\ell = E\thinspace\ell^{\prime\prime} =
    /// \mu_\delta(R)$, the others follow by sums of positive numbers.
    fn losses(&self, risks: &[f64]) -> Vec<[f64; 1]> {
        let Some(&first) = risks.first() else { return Vec::new() };
        let growth = |from: f64, to: f64| {
            // Panels as wide as their distance from zero at most.
            let panels = (to / from).log2().ceil().max(1.0);
            let edge = |i: f64| from * (to / from).powf(i / panels);
            let edges: Vec<f64> = (0..=panels as u32).map(|i| edge(f64::from(i))).collect();
            let [grown] =
                interval(|s| [s * self.noise.clipped(0.5 * s * s, self.delta).mu], &edges);
            grown
        };
        let start = ANCHOR * self.delta;
        let mut loss = if spread(first) > start {
            let anchor = || self.integrated_loss(0.5 * start * start);
            self.losses.anchor.get_or_init(anchor) + growth(start, spread(first))
        } else {
            self.integrated_loss(first)
        };
        let mut losses = vec![[loss]];
        for ends in risks.windows(2) {
            loss += growth(spread(ends[0]), spread(ends[1]));
            losses.push([loss]);
        }
        losses
    }
}

impl Model for Huber {
    fn describe(&self) -> String {
        let noise = self.noise.describe();
        if self.delta == f64::INFINITY {
            return format!("least squares, {noise} noise");
        }
        format!("Huber regression (δ = {}), {noise} noise", short(self.delta))
    }

    fn loss(&self, u: f64, y: f64) -> f64 {
        let x = (u - y).abs();
        let inside = x.min(self.delta);
        let outside = x - inside;
        0.5 * inside * inside + if outside > 0.0 { self.delta * outside } else { 0.0 }
    }

    fn residual(&self, u: f64, y: f64) -> f64 {
        (u - y).clamp(-self.delta, self.delta)
    }

    fn residual_slope(&self, u: f64, y: f64) -> f64 {
        if (u - y).abs() <= self.delta { 1.0 } else { 0.0 }
    }

    fn labels(&self, _v: f64) -> Vec<Label> {
        Vec::new()
    }

    fn sample(&self, v: f64, rng: &mut dyn Rng) -> f64 {
        v + self.noise.sample(rng)
    }

    fn coefficients(&self, at: &Overlaps, c: f64) -> Coefficients {
        let x = self.noise.clipped(Huber::risk(at), c.min(self.delta));
        Coefficients { a: x.mu, b: -x.mu, m2: x.m2 }
    }

    /// $\tfrac12 E\min(X^2, \delta^2) + \delta\thinspace E(|X| - \delta)^+$; infinite where
    /// $E|X|$ is.
    fn expected_loss(&self, at: &Overlaps) -> f64 {
        let r = Huber::risk(at);
        if self.delta == f64::INFINITY {
            return r + 0.5 * self.noise.second_moment();
        }
        if self.noise.mean().is_none() {
            return f64::INFINITY;
        }
        let fill = |risks: &[f64]| Some(PanelValues::relative(self.losses(risks), TOLERANCE));
        match self.losses.table.at(r, EVERYWHERE, &fill) {
            Some(piece) => piece.values[0],
            None => self.integrated_loss(r),
        }
    }
}
