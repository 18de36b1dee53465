//! C-SGD on least squares.

use super::coordinates::{bounded, change};
use super::draws::Draws;
use super::part::SgdPart;
use crate::dynamics::Trajectory;
use crate::dynamics::covariates::Sampler;
use crate::dynamics::flat::Flat;
use crate::dynamics::simulated_path::{Iteration, iterate, within};
use crate::error::Result;
use crate::optimizer::momentum::BufferGains;
use crate::policy::{Control, Controller};
use crate::problem::Problem;
use crate::rule::Rule;
use crate::sim::normal::Block16;
use crate::sim::step::SgdState;
use crate::sim::{Isa, Purpose, scalar_rng};
use rand::rngs::Xoshiro256PlusPlus;

/// The coordinates at the start of a run.
#[derive(Debug, Clone)]
pub(super) struct LeastSquares {
    pub problem: Problem,
    /// The coordinates that are clipped together, and their state at the start: all of them, or one
    /// part for every group.
    pub parts: Vec<SgdPart>,
    /// $\lambda_i^{-1/2}$, which turns $w_i$ back into $\theta_i$.
    pub weights: Vec<Block16>,
    /// The directions with $\lambda_i = 0$, which only the noise of private SGD moves.
    pub flat: Flat,
    pub dim: f64,
    pub limit: f64,
    /// $\lambda_i$, where steps average several samples or are private.
    lambda: Option<Vec<Block16>>,
}

impl LeastSquares {
    pub fn new(problem: &Problem) -> Result<Self> {
        let parts = SgdPart::all(problem);
        let lambda: Vec<Block16> = parts.iter().flat_map(|part| part.start.lambda()).collect();
        // Zero where λ = 0 fills up the last block of a group.
        let inverse = |lambda: f64| if lambda > 0.0 { lambda.sqrt().recip() } else { 0.0 };
        let mut weights = lambda.clone();
        change(&mut weights, &lambda, |_, lambda| inverse(lambda));
        let step = problem.step();
        let apart = step.batch().size() > 1 || step.privacy().is_some();
        Ok(LeastSquares {
            problem: problem.clone(),
            parts,
            weights,
            flat: Flat::new(problem.modes())?,
            dim: problem.dim(),
            limit: problem.divergence_limit(),
            lambda: apart.then_some(lambda),
        })
    }

    pub fn run(
        &self,
        covariates: &Sampler,
        isa: Isa,
        seed: u64,
        index: u64,
        times: &[f64],
    ) -> Trajectory {
        let draws = Draws::new(covariates, isa, self.weights.len(), seed, index);
        if let Some(lambda) = &self.lambda {
            return self.run_batches(lambda, draws, isa, seed, index, times);
        }
        let gains = self.problem.optimizer().buffer(self.problem.step(), self.dim);
        let running = |part| RunningPart::new(part, gains.is_some());
        let mut run = Run {
            start: self,
            isa,
            by_value: *self.problem.step().rule() == Rule::ByValue,
            gains,
            parts: self.parts.iter().map(running).collect(),
            draws,
            noise: scalar_rng(seed, index, Purpose::Noise),
            controller: Controller::new(self.problem.policy()),
            path: Trajectory::with_capacity(times.len()),
        };
        let end = iterate(&mut run, self.dim, u64::MAX, times);
        run.path.ended(end)
    }
}

/// A run with one sample a step.
struct Run<'a> {
    start: &'a LeastSquares,
    isa: Isa,
    by_value: bool,
    gains: Option<BufferGains>,
    parts: Vec<RunningPart<'a>>,
    draws: Draws<'a>,
    noise: Xoshiro256PlusPlus,
    controller: Controller<'a>,
    path: Trajectory,
}

impl Iteration for Run<'_> {
    fn step(&mut self, _k: u64, t: f64) -> bool {
        let LeastSquares { problem, dim, limit, .. } = self.start;
        let (step, dim) = (problem.step(), *dim);
        let (mut inner, mut twice_risk) = (0.0, 0.0);
        self.draws.prepare();
        for RunningPart { part, state, norm, .. } in &mut self.parts {
            let sums = state.pass(self.isa, self.draws.of(&part.blocks));
            inner += sums.inner;
            twice_risk += sums.twice_risk;
            *norm = sums.norm_sq.sqrt();
        }
        let risk = 0.5 * twice_risk;
        if !within(risk, *limit) {
            return false;
        }
        let residual = inner - step.noise().sample(&mut self.noise);
        let Control { eta, c } = self.controller.step(t, risk, residual);
        for RunningPart { part, state, unit, norm } in &mut self.parts {
            if self.by_value {
                state.step(eta / dim * bounded(residual));
                state.bound(eta / dim * c);
                continue;
            }
            let weight = part.reshape(step, residual, *norm, c, *unit, risk);
            if let Some(gains) = &mut self.gains {
                let skipped = residual.abs() * *norm > c * *unit;
                state.remember(gains.update(weight, skipped, eta / dim));
            } else {
                state.step(eta / dim * weight);
            }
        }
        true
    }

    fn save(&mut self, time: f64) -> bool {
        let LeastSquares { weights, flat, limit, .. } = self.start;
        let (mut twice_risk, mut distance) = (0.0, flat.square);
        for RunningPart { part, state, .. } in &mut self.parts {
            let (own, moved) = state.measure(self.isa, &weights[part.blocks.clone()]);
            twice_risk += own;
            distance += moved;
        }
        let risk = 0.5 * twice_risk;
        if !within(risk, *limit) || !distance.is_finite() {
            return false;
        }
        self.path.save(time, risk, distance);
        true
    }
}

/// A part of the coordinates in one run.
struct RunningPart<'a> {
    part: &'a SgdPart,
    state: SgdState,
    /// The unit of its threshold.
    unit: f64,
    /// The norm of $x$ in the present step.
    norm: f64,
}

impl<'a> RunningPart<'a> {
    fn new(part: &'a SgdPart, buffered: bool) -> Self {
        let state = part.start.clone();
        let state = if buffered { state.buffered() } else { state };
        RunningPart { part, state, unit: part.unit(1.0), norm: 0.0 }
    }
}
