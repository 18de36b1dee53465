//! One step of the system with momentum.

use super::Momentum;
use super::chunk::{Chunk, ErrorWeights, Iterate, Newton};
use super::forces::{Buffer, Forces};
use super::radau::{NODES, RADAU};
use crate::dynamics::solver::Drive;
use crate::factors::kernel::Moments;
use crate::policy::Control;
use crate::problem::Problem;
use crate::sim::Isa;
use crate::spectrum::Mode;

/// $(R, D/2)$.
pub(super) type RiskSums = [f64; 2];

/// More iterations than this mean that a shorter step is cheaper.
const MOST_ITERATIONS: usize = 25;

/// The system and the step that is being tried.
#[derive(Debug)]
pub(super) struct RadauStep<'a> {
    pub drive: Drive<'a>,
    buffer: Buffer,
    isa: Isa,
    chunks: Vec<Chunk>,
    pub t: f64,
    h: f64,
    /// $(R, D/2)$ at the start of the step and at its nodes.
    start: RiskSums,
    nodes: [RiskSums; NODES],
    /// $\sum\lambda b = -\dot R/\eta p$ at the start.
    slope: f64,
}

impl<'a> RadauStep<'a> {
    pub fn new(problem: &'a Problem, momentum: &Momentum) -> Self {
        let (modes, step) = (problem.modes(), problem.step());
        let d = modes.dim();
        let mut panel = RadauStep {
            drive: Drive::new(step, problem.policy()),
            buffer: Buffer::new(momentum, step, d),
            isa: Isa::best(),
            chunks: Vec::new(),
            t: 0.0,
            h: 0.0,
            start: [0.0; 2],
            nodes: [[0.0; 2]; NODES],
            slope: 0.0,
        };
        let forces = panel.forces(0.0, modes.risk());
        let head = panel.buffer.head(&forces);
        let state = |m: &Mode| {
            let a = 2.0 * m.energy;
            let buffer = [head.b * m.lambda * a, head.y * m.lambda * m.count];
            (m.lambda, m.lambda * m.count / d, [a, buffer[0], buffer[1]])
        };
        let states: Vec<_> = modes.modes().iter().map(state).collect();
        panel.chunks = states.chunks(8).map(Chunk::new).collect();
        panel.settle();
        panel
    }

    /// Sums over the modes where the next step starts.
    fn settle(&mut self) {
        let total = self.chunks.iter().map(Chunk::sums).fold([0.0; 3], |mut sum, x| {
            sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
            sum
        });
        self.start = [total[0], total[1]];
        self.slope = total[2];
    }

    /// $(R, D/2)$ at the start of the step.
    pub fn start(&self) -> RiskSums {
        self.start
    }

    /// The forces on the modes at time $t$ and risk $R$.
    pub fn forces(&mut self, t: f64, risk: f64) -> Forces {
        let point = self.drive.act(t, risk);
        let control = Control { eta: point.eta, c: point.c };
        let x = Moments { mu: point.mu, m2: point.m2 };
        self.buffer.forces(self.drive.step(), risk.max(0.0), control, x)
    }

    /// Tries a step of length `h`, with no evaluation after `latest`: the estimated errors of $R$
    /// and $D/2$, or `None` where the iteration does not converge to the share `converged` of them.
    pub fn solve(&mut self, h: f64, latest: f64, converged: f64) -> Option<RiskSums> {
        self.h = h;
        let t = self.t;
        let at = |j: usize| (t + RADAU.nodes[j] * h).min(latest);
        let first = self.forces(t, self.start[0]);
        let mut forces = [first; NODES];
        for j in 0..NODES {
            forces[j] = self.forces(at(j), self.guess(&first, RADAU.nodes[j] * h));
        }
        let newton = Newton::new(h, &forces[NODES / 2]);
        let weights = ErrorWeights::new(&forces[NODES / 2]);
        self.chunks.iter_mut().for_each(Chunk::begin);
        let mut last = f64::INFINITY;
        for number in 0..MOST_ITERATIONS {
            if !forces.iter().all(Forces::is_finite) {
                return None;
            }
            let chunks = &mut self.chunks;
            let done = self.isa.run(Iterate { chunks, newton: &newton, forces: &forces, weights });
            self.nodes = done.sums;
            let mut change: f64 = 0.0;
            for j in 0..NODES {
                for k in 0..2 {
                    let size = done.sums[j][k].abs().max(self.start[k]).max(f64::MIN_POSITIVE);
                    let share = done.changes[j][k] / size;
                    // `max` would drop a NaN.
                    change = if share.is_nan() { f64::INFINITY } else { change.max(share) };
                }
            }
            if !change.is_finite() || number > 2 && change > 0.8 * last {
                // At the level of rounding changes do not fall any more.
                if !(change < 1e-12) {
                    return None;
                }
                break;
            }
            for j in 0..NODES {
                forces[j] = self.forces(at(j), self.nodes[j][0]);
            }
            if change < converged {
                break;
            }
            last = change;
            if number + 1 == MOST_ITERATIONS {
                return None;
            }
        }
        let misfits = self.chunks.iter().map(|c| c.misfit(&newton, &first, &forces, weights));
        Some(misfits.fold([0.0; 2], |s, x| [s[0] + x[0], s[1] + x[1]]))
    }

    /// $R$ after a time, to begin with.
    fn guess(&self, first: &Forces, time: f64) -> f64 {
        let decay = first.follow * self.slope / self.start[0] * time;
        if decay.is_finite() {
            self.start[0] * (-decay).clamp(-2.0, 2.0).exp()
        } else {
            self.start[0]
        }
    }

    /// $(R, D/2)$ at the end of the step.
    pub fn end(&self) -> RiskSums {
        self.nodes[NODES - 1]
    }

    /// $(R, D/2)$ inside the step.
    pub fn at(&self, t: f64) -> RiskSums {
        RADAU.at(&self.start, &self.nodes, (t - self.t) / self.h)
    }

    /// Accepts the step, which ends at `to`.
    pub fn advance(&mut self, to: f64) {
        self.chunks.iter_mut().for_each(Chunk::advance);
        self.settle();
        self.t = to;
    }
}
