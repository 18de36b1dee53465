//! C-HSGD with momentum: every direction is simulated, also where eigenvalues repeat.

use super::Momentum;
use super::forces::{Buffer, Forces};
use super::transition::Transition;
use crate::dynamics::block::Blocks;
use crate::dynamics::diffusion::Diffusion;
use crate::dynamics::{Hsgd, Scheme};
use crate::sim::Purpose;
use crate::sim::normal::Normals;

/// Weights and buffer of every direction with $\lambda > 0$, block by block.
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

impl State {
    fn start(hsgd: &Hsgd) -> Self {
        let Blocks { lambda, counts, lengths, .. } = &hsgd.blocks;
        let blocks: Vec<(f64, usize)> =
            lambda.iter().zip(counts).map(|(lambda, count)| (*lambda, *count as usize)).collect();
        let each = |(u, (_, count)): (&f64, &(f64, usize))| {
            std::iter::repeat_n(u / (*count as f64).sqrt(), *count)
        };
        let theta: Vec<f64> = lengths.iter().zip(&blocks).flat_map(each).collect();
        State { blocks, buffer: vec![0.0; theta.len()], theta }
    }

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

/// A path with momentum, and its random numbers.
pub(crate) struct MomentumPath<'a> {
    hsgd: &'a Hsgd,
    buffer: Buffer,
    state: State,
    sums: Sums,
    normals: Normals,
    /// The normal draws of a step, two a direction.
    xi: Vec<f64>,
}

impl<'a> MomentumPath<'a> {
    /// The start of a path.
    pub(crate) fn new(hsgd: &'a Hsgd, momentum: &Momentum, seed: u64, index: u64) -> Self {
        let state = State::start(hsgd);
        let mut path = MomentumPath {
            hsgd,
            buffer: Buffer::new(momentum, hsgd.problem.step(), hsgd.blocks.dim),
            sums: state.sums(hsgd.blocks.frozen),
            normals: Normals::new(seed, index, Purpose::Brownian),
            xi: vec![0.0; 2 * state.theta.len()],
            state,
        };
        let head = path.buffer.head(&path.rates(0.0, path.sums.risk));
        if head.y > 0.0 {
            path.normals.fill(&mut path.xi);
            let (state, xi) = (&mut path.state, &path.xi);
            let mut at = 0;
            for &(lambda, count) in &state.blocks {
                for i in at..at + count {
                    state.buffer[i] = head.b * lambda * state.theta[i];
                    state.buffer[i] += (head.y * lambda).sqrt() * xi[2 * i];
                }
                at += count;
            }
            path.sums = path.state.sums(hsgd.blocks.frozen);
        }
        path
    }
}

impl Diffusion for MomentumPath<'_> {
    type Rates = Forces;

    fn risk(&self) -> f64 {
        self.sums.risk
    }

    fn distance(&self) -> f64 {
        self.sums.distance
    }

    fn rates(&self, t: f64, risk: f64) -> Forces {
        let control = self.hsgd.problem.policy().at(t, risk);
        let moments = self.hsgd.moments(risk, control.c);
        self.buffer.forces(self.hsgd.problem.step(), risk, control, moments)
    }

    fn speed(&self, f: &Forces) -> f64 {
        let rate = f.lag() * self.buffer.delta;
        let per_dim = rate * self.hsgd.trace_sq / self.hsgd.blocks.dim;
        let speed = (f.lag() * f.learn).abs() * per_dim.max(1.0);
        match self.hsgd.scheme {
            Scheme::Exponential => speed,
            // Explicit: the buffer has to be followed.
            Scheme::EulerMaruyama => speed.max(f.forget),
        }
    }

    /// $\sum\lambda\theta M$ relaxes from its present value to the one that the weights imply, at
    /// the rate of the buffer.
    fn predicted_risk(&self, f: &Forces, dt: f64) -> f64 {
        let (hsgd, sums) = (self.hsgd, self.sums);
        if f.forget == 0.0 {
            return sums.risk;
        }
        let noise = f.noise / hsgd.blocks.dim * hsgd.trace_sq / (2.0 * f.forget);
        let settled = (f.learn * sums.curvature - f.follow * noise) / f.forget;
        let late = -(-f.forget * dt).exp_m1() / f.forget;
        (sums.risk - f.follow * (settled * dt + (sums.slope - settled) * late)).max(0.0)
    }

    fn advance(&mut self, f: &Forces, dt: f64) {
        let dim = self.hsgd.blocks.dim;
        self.normals.fill(&mut self.xi);
        match self.hsgd.scheme {
            Scheme::Exponential => {
                self.state.advance(|lambda| Transition::exact(f, lambda, dim, dt), &self.xi);
            }
            Scheme::EulerMaruyama => {
                self.state.advance(|lambda| Transition::euler(f, lambda, dim, dt), &self.xi);
            }
        }
        self.sums = self.state.sums(self.hsgd.blocks.frozen);
    }
}
