//! The steps of C-HSGD through time, under any optimizer.

use super::{Counts, Hsgd, Scheme, Stop, Trajectory};

/// A path of a stochastic differential equation whose coefficients depend on $t$ and $R$ alone.
pub(crate) trait Diffusion {
    /// The coefficients, which a step holds fixed.
    type Rates;

    /// $R$ now.
    fn risk(&self) -> f64;

    /// $D$ now.
    fn distance(&self) -> f64;

    /// The coefficients at time $t$ and risk $R$.
    fn rates(&self, t: f64, risk: f64) -> Self::Rates;

    /// The inverse of the time in which $R$ and the coefficients change by their own size.
    fn speed(&self, rates: &Self::Rates) -> f64;

    /// $R$ after `dt` without fluctuations.
    fn predicted_risk(&self, rates: &Self::Rates, dt: f64) -> f64;

    /// Makes one step.
    fn advance(&mut self, rates: &Self::Rates, dt: f64);
}

impl Hsgd {
    /// Follows a path and saves it at the given times.
    ///
    /// Steps end on these times and on the breakpoints of the policy.
    pub(crate) fn follow<D: Diffusion>(&self, mut path: D, times: &[f64]) -> Trajectory {
        let last = times.last().copied().unwrap_or(0.0);
        let mut breaks = self.problem.policy().breakpoints();
        breaks.retain(|b| *b > 0.0 && *b < last);
        breaks.sort_by(f64::total_cmp);
        let mut breaks = breaks.into_iter().peekable();

        let mut saved = Trajectory::with_capacity(times.len());
        let mut counts = Counts::default();
        let mut t = 0.0;
        let mut stop = Stop::Finished;
        // The rates of the step before; None where they do not predict the next.
        let mut known: Option<D::Rates> = None;
        let mut span = self.fraction;
        'path: for &time in times {
            while t < time {
                let end = breaks.peek().map_or(time, |b| b.min(time));
                let mut rates = match (known.take(), self.scheme) {
                    (Some(rates), Scheme::Exponential) => rates,
                    _ => {
                        counts.evaluations += 1;
                        path.rates(t, path.risk())
                    }
                };
                // At most twice the last, for a policy may grow from zero.
                span = (2.0 * span).min(self.fraction / path.speed(&rates));
                let pieces = ((end - t) / span).ceil().max(1.0);
                let dt = (end - t) / pieces;
                // Steps too small for the resolution of time: the learning rate grew without bound.
                if t + dt == t {
                    stop = Stop::Diverged { t };
                    break 'path;
                }
                if self.scheme == Scheme::Exponential {
                    let middle = path.predicted_risk(&rates, 0.5 * dt);
                    rates = path.rates(t + 0.5 * dt, middle);
                    counts.evaluations += 1;
                }
                path.advance(&rates, dt);
                counts.steps += 1;
                known = Some(rates);
                t = if pieces > 1.0 { t + dt } else { end };
                if breaks.next_if(|b| *b <= t).is_some() {
                    known = None;
                }
                if path.risk().is_nan() || path.risk() > self.limit {
                    stop = Stop::Diverged { t };
                    break 'path;
                }
            }
            saved.save(time, path.risk(), path.distance());
        }
        saved.ended((stop, counts))
    }
}
