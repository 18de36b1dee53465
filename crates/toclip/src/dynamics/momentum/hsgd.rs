//! C-HSGD with momentum.

use super::forces::{Buffer, Forces};
use super::transition::Transition;
use crate::dynamics::hsgd::Scheme;
use crate::dynamics::{Counts, Hsgd, Stop, Trajectory};
use crate::momentum::Momentum;
use crate::sim::Purpose;
use crate::sim::normal::Normals;

/// Every direction of every eigenspace that moves, and where its buffer is.
#[derive(Debug)]
struct State {
    /// $\lambda$ and the number of directions.
    blocks: Vec<(f64, usize)>,
    theta: Vec<f64>,
    buffer: Vec<f64>,
}

/// Sums over all directions.
#[derive(Debug, Clone, Copy)]
struct Sums {
    risk: f64,
    distance: f64,
    /// $\sum\lambda\theta M$.
    slope: f64,
    /// $\sum\lambda^2\theta^2$.
    curvature: f64,
}

/// Steps that end on the times to be saved and on the breakpoints of the policy.
#[derive(Debug)]
struct Clock {
    t: f64,
    /// Where the step that is being made ends, if it is the last before a time or a breakpoint.
    end: Option<f64>,
    breaks: std::iter::Peekable<std::vec::IntoIter<f64>>,
    span: f64,
}

impl Clock {
    fn new(hsgd: &Hsgd, times: &[f64]) -> Self {
        let last = times.last().copied().unwrap_or(0.0);
        let mut breaks = hsgd.policy.breakpoints();
        breaks.retain(|b| *b > 0.0 && *b < last);
        breaks.sort_by(f64::total_cmp);
        Clock { t: 0.0, end: None, breaks: breaks.into_iter().peekable(), span: hsgd.fraction }
    }

    /// The next step towards `time`, at most `longest` long; none where steps are too small for the
    /// resolution of time.
    fn next(&mut self, time: f64, longest: f64) -> Option<f64> {
        let end = self.breaks.peek().map_or(time, |b| b.min(time));
        // At most twice the last, for a policy may grow from zero.
        self.span = (2.0 * self.span).min(longest);
        let pieces = ((end - self.t) / self.span).ceil().max(1.0);
        let dt = (end - self.t) / pieces;
        self.end = (pieces == 1.0).then_some(end);
        (self.t + dt > self.t).then_some(dt)
    }

    /// Makes the step; whether a breakpoint was reached.
    fn advance(&mut self, dt: f64) -> bool {
        self.t = self.end.unwrap_or(self.t + dt);
        self.breaks.next_if(|b| *b <= self.t).is_some()
    }
}

impl State {
    fn sums(&self, frozen: f64) -> Sums {
        let mut sums = Sums { risk: 0.0, distance: frozen, slope: 0.0, curvature: 0.0 };
        let mut at = 0;
        for &(lambda, count) in &self.blocks {
            let (mut squares, mut products) = (0.0, 0.0);
            for (theta, m) in self.theta[at..at + count].iter().zip(&self.buffer[at..]) {
                squares += theta * theta;
                products += theta * m;
            }
            at += count;
            sums.risk += 0.5 * lambda * squares;
            sums.distance += squares;
            sums.slope += lambda * products;
            sums.curvature += lambda * lambda * squares;
        }
        sums
    }

    fn advance(&mut self, transition: impl Fn(f64) -> Transition, xi: &[f64]) {
        let mut at = 0;
        for &(lambda, count) in &self.blocks {
            let transition = transition(lambda);
            for i in at..at + count {
                let (theta, m) = (self.theta[i], self.buffer[i]);
                (self.theta[i], self.buffer[i]) =
                    transition.apply(theta, m, [xi[2 * i], xi[2 * i + 1]]);
            }
            at += count;
        }
    }
}

impl Hsgd {
    /// $R$ after `dt` without fluctuations: $\sum\lambda\theta M$ relaxes from what it is to what the
    /// weights imply at the pace of the buffer.
    fn expected(&self, sums: Sums, f: &Forces, dt: f64) -> f64 {
        if f.forget == 0.0 {
            return sums.risk;
        }
        let noise = f.noise / self.blocks.dim * self.trace_sq / (2.0 * f.forget);
        let settled = (f.learn * sums.curvature - f.follow * noise) / f.forget;
        let late = -(-f.forget * dt).exp_m1() / f.forget;
        (sums.risk - f.follow * (settled * dt + (sums.slope - settled) * late)).max(0.0)
    }

    /// [`run`](crate::dynamics::Simulator::run) with momentum. Directions of equal eigenvalue are not treated as one.
    pub(in crate::dynamics) fn run_momentum(
        &self,
        momentum: &Momentum,
        seed: u64,
        index: u64,
        times: &[f64],
    ) -> Trajectory {
        let dim = self.blocks.dim;
        let buffer = Buffer::new(momentum, &self.step, dim);
        let forces = |t: f64, risk: f64| {
            let control = self.policy.at(t, risk);
            buffer.forces(&self.step, risk, control, self.moments(risk, control.c))
        };
        let mut normals = Normals::new(seed, index, Purpose::Brownian);
        let mut state = self.momentum_start();
        let mut xi = vec![0.0; 2 * state.theta.len()];
        let mut sums = state.sums(self.blocks.frozen);
        let mut counts = Counts::default();
        let head = buffer.head(&forces(0.0, sums.risk));
        if head.y > 0.0 {
            normals.fill(&mut xi);
            let mut at = 0;
            for &(lambda, count) in &state.blocks {
                for i in at..at + count {
                    state.buffer[i] = head.b * lambda * state.theta[i];
                    state.buffer[i] += (head.y * lambda).sqrt() * xi[2 * i];
                }
                at += count;
            }
            sums = state.sums(self.blocks.frozen);
        }
        let mut clock = Clock::new(self, times);
        let (mut risk, mut distance) = (Vec::new(), Vec::new());
        let mut stop = Stop::Finished;
        let mut known: Option<Forces> = None;
        'path: for &time in times {
            while clock.t < time {
                let mut now = match (known, self.scheme) {
                    (Some(forces), Scheme::Exponential) => forces,
                    _ => {
                        counts.evaluations += 1;
                        forces(clock.t, sums.risk)
                    }
                };
                let rate = now.lag() * buffer.delta;
                let mut speed =
                    (now.lag() * now.learn).abs() * (rate * self.trace_sq / dim).max(1.0);
                if self.scheme == Scheme::EulerMaruyama {
                    // Explicit: the buffer has to be followed.
                    speed = speed.max(now.forget);
                }
                let Some(dt) = clock.next(time, self.fraction / speed) else {
                    stop = Stop::Diverged { t: clock.t };
                    break 'path;
                };
                if self.scheme == Scheme::Exponential {
                    let middle = self.expected(sums, &now, 0.5 * dt);
                    now = forces(clock.t + 0.5 * dt, middle);
                    counts.evaluations += 1;
                }
                normals.fill(&mut xi);
                match self.scheme {
                    Scheme::Exponential => {
                        state.advance(|lambda| Transition::exact(&now, lambda, dim, dt), &xi);
                    }
                    Scheme::EulerMaruyama => {
                        state.advance(|lambda| Transition::euler(&now, lambda, dim, dt), &xi);
                    }
                }
                sums = state.sums(self.blocks.frozen);
                counts.steps += 1;
                known = if clock.advance(dt) { None } else { Some(now) };
                if sums.risk.is_nan() || sums.risk > self.limit {
                    stop = Stop::Diverged { t: clock.t };
                    break 'path;
                }
            }
            risk.push(sums.risk);
            distance.push(sums.distance);
        }
        let times = times[..risk.len()].to_vec();
        Trajectory { times, risk, distance, path: None, stop, counts }
    }

    fn momentum_start(&self) -> State {
        let blocks: Vec<(f64, usize)> = self
            .blocks
            .lambda
            .iter()
            .zip(&self.blocks.counts)
            .map(|(lambda, count)| (*lambda, *count as usize))
            .collect();
        let theta: Vec<f64> = self
            .blocks
            .lengths
            .iter()
            .zip(&blocks)
            .flat_map(|(u, (_, count))| std::iter::repeat_n(u / (*count as f64).sqrt(), *count))
            .collect();
        State { blocks, buffer: vec![0.0; theta.len()], theta }
    }
}
