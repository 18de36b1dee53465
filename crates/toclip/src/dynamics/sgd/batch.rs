//! C-SGD on least squares whose steps average several samples, or are private.

use super::coordinates::{bounded, change, each};
use super::draws::Draws;
use super::least_squares::LeastSquares;
use crate::dynamics::Trajectory;
use crate::dynamics::flat::Flat;
use crate::dynamics::simulated_path::{Iteration, iterate, within};
use crate::optimizer::momentum::BufferGains;
use crate::policy::Control;
use crate::rule::Rule;
use crate::sim::normal::{Block16, Streams, fill};
use crate::sim::step::BufferUpdate;
use crate::sim::{Isa, Purpose, scalar_rng};
use rand::rngs::Xoshiro256PlusPlus;

/// A run, with the state $w_i = \sqrt{\lambda_i}\thinspace\theta_i$ and the sum of a batch.
struct Run<'a> {
    start: &'a LeastSquares,
    lambda: &'a [Block16],
    w: Vec<Block16>,
    /// $\sum_j \omega_j z_j$, with $\omega_j$ the residuals, or what clipping leaves of each.
    sum: Vec<Block16>,
    z: Vec<Block16>,
    /// The momentum, and its buffer.
    buffer: Option<(BufferGains, Vec<Block16>)>,
    draws: Draws<'a>,
    noise: Xoshiro256PlusPlus,
    private: Option<PrivateNoise>,
    path: Trajectory,
}

impl LeastSquares {
    /// [`run`](Self::run) with several samples a step. No sample is kept: its residual only depends
    /// on the state before the step, so it is added to the gradient as it is drawn.
    pub(super) fn run_batches(
        &self,
        lambda: &[Block16],
        draws: Draws<'_>,
        isa: Isa,
        seed: u64,
        index: u64,
        times: &[f64],
    ) -> Trajectory {
        let zero = || vec![Block16::ZERO; lambda.len()];
        let gains = self.problem.optimizer().buffer(self.problem.step(), self.dim);
        let mut run = Run {
            start: self,
            lambda,
            w: self.parts.iter().flat_map(|part| part.start.w()).collect(),
            sum: zero(),
            z: zero(),
            buffer: gains.map(|gains| (gains, zero())),
            draws,
            noise: scalar_rng(seed, index, Purpose::Noise),
            private: PrivateNoise::new(self, isa, seed, index),
            path: Trajectory::with_capacity(times.len()),
        };
        let end = iterate(&mut run, self.dim, u64::MAX, times);
        run.path.ended(end)
    }
}

impl Iteration for Run<'_> {
    fn step(&mut self, _k: u64, t: f64) -> bool {
        let LeastSquares { problem, parts, dim, limit, .. } = self.start;
        let (dim, averaged) = (*dim, problem.step().batch());
        let size = averaged.size() as f64;
        let risk = 0.5 * each(&self.w, &self.w, |a, b| a * b);
        if !within(risk, *limit) {
            return false;
        }
        let Control { eta, c } = problem.policy().at(t, risk);
        self.sum.fill(Block16::ZERO);
        for _ in 0..averaged.size() {
            self.draws.fill(&mut self.z);
            let inner = each(&self.z, &self.w, |a, b| a * b);
            let residual = bounded(inner - problem.step().noise().sample(&mut self.noise));
            self.add_sample(residual, c, risk);
        }
        let step = eta / dim / size;
        if let Some(private) = &mut self.private {
            private.add(self.start, &mut self.sum, c, step);
        }
        for part in parts {
            let own = part.blocks.clone();
            let (w, sum, lambda) =
                (&mut self.w[own.clone()], &mut self.sum[own.clone()], &self.lambda[own]);
            // The gradient of the batch is this sum over B: clipped at c√(d/B), the sum is clipped at
            // c√(dB).
            let share = if averaged.is_per_sample() || averaged.size() == 1 {
                1.0
            } else {
                let norm = each(sum, lambda, |g, l| l * g * g).sqrt();
                part.reshape(problem.step(), 1.0, norm, c, part.unit(size), risk)
            };
            change(sum, lambda, |g, l| l * g);
            if let Some((gains, buffer)) = &mut self.buffer {
                // With momentum there is one part.
                let BufferUpdate { decay, gain, rate } =
                    gains.update(share / size, share == 0.0, eta / dim);
                change(buffer, sum, |b, g| decay * b + gain * g);
                change(w, buffer, |w, b| w - rate * b);
            } else {
                let step = step * share;
                change(w, sum, |w, g| w - step * g);
            }
        }
        true
    }

    fn save(&mut self, time: f64) -> bool {
        let LeastSquares { weights, flat, limit, .. } = self.start;
        let risk = 0.5 * each(&self.w, &self.w, |a, b| a * b);
        let still = self.private.as_ref().map_or(flat.square, |private| private.flat.square);
        let distance = still + each(&self.w, weights, |w, r| (w * r) * (w * r));
        if !within(risk, *limit) || !distance.is_finite() {
            return false;
        }
        self.path.save(time, risk, distance);
        true
    }
}

impl Run<'_> {
    /// Adds the reshaped gradient of a sample to the sum; where the mean is clipped, the whole
    /// gradient.
    fn add_sample(&mut self, residual: f64, c: f64, risk: f64) {
        let LeastSquares { problem, parts, weights, .. } = self.start;
        let (step, averaged) = (problem.step(), problem.step().batch());
        let Run { lambda, sum, z, .. } = self;
        if *step.rule() == Rule::ByValue {
            // √λ z ρ clipped at c is √λ times z ρ clipped at c/√λ. Infinity times the zeros that
            // fill up the last block would be NaN.
            let c = c.min(f64::MAX);
            change(z, weights, |z, r| (residual * z).min(c * r).max(-c * r));
            change(sum, z, |sum, z| sum + z);
            return;
        }
        for part in parts {
            let own = part.blocks.clone();
            let (sum, z, lambda) = (&mut sum[own.clone()], &z[own.clone()], &lambda[own]);
            let weight = if averaged.is_per_sample() || averaged.size() == 1 {
                let norm = each(z, lambda, |z, l| l * z * z).sqrt();
                part.reshape(step, residual, norm, c, part.unit(1.0), risk)
            } else {
                residual
            };
            change(sum, z, |sum, z| sum + weight * z);
        }
    }
}

/// The noise of private SGD.
struct PrivateNoise {
    multiplier: f64,
    isa: Isa,
    streams: Streams,
    normals: Vec<Block16>,
    /// The directions with $\lambda = 0$.
    flat: Flat,
    across: Xoshiro256PlusPlus,
}

impl PrivateNoise {
    fn new(start: &LeastSquares, isa: Isa, seed: u64, index: u64) -> Option<Self> {
        Some(PrivateNoise {
            multiplier: start.problem.step().privacy()?.noise_multiplier(),
            isa,
            streams: Streams::new(seed, index, Purpose::Privacy),
            normals: vec![Block16::ZERO; start.weights.len()],
            flat: start.flat.clone(),
            across: scalar_rng(seed, index, Purpose::Privacy),
        })
    }

    /// Adds $\sigma c\sqrt d\thinspace\xi_i$ to every coordinate of the sum of the gradients,
    /// which is stored times $\lambda_i^{-1/2}$. Flat directions make their `step` at once.
    fn add(&mut self, start: &LeastSquares, sum: &mut [Block16], c: f64, step: f64) {
        if self.multiplier == 0.0 {
            return;
        }
        let std = self.multiplier * c * start.dim.sqrt();
        fill(self.isa, &mut self.streams, &mut self.normals);
        change(&mut self.normals, &start.weights, |xi, r| std * xi * r);
        change(sum, &self.normals, |g, xi| g + xi);
        self.flat.diffuse(step * std, &mut self.across);
    }
}
