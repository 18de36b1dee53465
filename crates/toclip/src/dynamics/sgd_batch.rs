//! C-SGD whose steps average several samples.

use super::momentum::Memory;
use super::sgd::Draws;
use super::simulated_path::{SimulatedPath, steps_until, within};
use super::{Sgd, Stop, Trajectory};
use crate::schedule::Control;
use crate::sim::momentum_step::Update;
use crate::sim::normal::Block;
use crate::sim::{Purpose, scalar_rng};

/// The state $w_i = \sqrt{\lambda_i}\thinspace\theta_i$ and the sum of a batch, sixteen coordinates
/// at a time.
struct Batch<'a> {
    lambda: &'a [Block],
    w: Vec<Block>,
    /// $\sum_j \omega_j z_j$, with $\omega_j$ the residuals, or what clipping leaves of each.
    sum: Vec<Block>,
    z: Vec<Block>,
    /// The memory of gradients, and where they are kept.
    buffer: Option<(Memory, Vec<Block>)>,
}

impl Sgd {
    /// [`run`](super::Simulator::run) with several samples a step. No sample is kept: its residual
    /// only depends on the state before the step, so it is added to the gradient as it is drawn.
    pub(super) fn run_batches(
        &self,
        lambda: &[Block],
        seed: u64,
        index: u64,
        times: &[f64],
    ) -> Trajectory {
        let (averaged, label_noise) = (self.step.batch(), self.step.noise());
        let size = averaged.size() as f64;
        let mut batch = Batch {
            lambda,
            w: self.start.w(),
            sum: vec![Block::ZERO; lambda.len()],
            z: vec![Block::ZERO; lambda.len()],
            buffer: self.memory().map(|memory| (memory, vec![Block::ZERO; lambda.len()])),
        };
        let mut data = Draws::new(self, seed, index);
        let mut noise = scalar_rng(seed, index, Purpose::Noise);
        let mut record = SimulatedPath::new(times.len());
        for &time in times {
            let target = steps_until(time, self.dim);
            while record.steps < target {
                let t = record.steps as f64 / self.dim;
                let risk = 0.5 * each(&batch.w, &batch.w, |a, b| a * b);
                if !within(risk, self.limit) {
                    return record.diverged(t);
                }
                let Control { eta, c } = self.policy.at(t, risk);
                batch.sum.fill(Block::ZERO);
                for _ in 0..averaged.size() {
                    data.fill(self, &mut batch.z);
                    let inner = each(&batch.z, &batch.w, |a, b| a * b);
                    let residual = bounded(inner - label_noise.sample(&mut noise));
                    let weight = if averaged.is_per_sample() {
                        let norm = each(&batch.z, lambda, |z, l| l * z * z).sqrt();
                        self.step.reshape(residual, norm, c, self.dim.sqrt(), risk)
                    } else {
                        residual
                    };
                    change(&mut batch.sum, &batch.z, |sum, z| sum + weight * z);
                }
                // The gradient of the batch is this sum over B: clipped at c√(d/B), the sum is
                // clipped at c√(dB).
                let share = if averaged.is_per_sample() {
                    1.0
                } else {
                    let norm = each(&batch.sum, lambda, |g, l| l * g * g).sqrt();
                    self.step.reshape(1.0, norm, c, (self.dim * size).sqrt(), risk)
                };
                let Batch { lambda, w, sum, buffer, .. } = &mut batch;
                change(sum, lambda, |g, l| l * g);
                if let Some((memory, buffer)) = buffer {
                    let skipped = share == 0.0;
                    let Update { decay, gain, rate } =
                        memory.update(share / size, skipped, eta / self.dim);
                    change(buffer, sum, |b, g| decay * b + gain * g);
                    change(w, buffer, |w, b| w - rate * b);
                } else {
                    let step = eta / self.dim / size * share;
                    change(w, sum, |w, g| w - step * g);
                }
                record.steps += 1;
            }
            let risk = 0.5 * each(&batch.w, &batch.w, |a, b| a * b);
            let distance = self.still + each(&batch.w, &self.weights, |w, r| (w * r) * (w * r));
            if !within(risk, self.limit) || !distance.is_finite() {
                let t = record.steps as f64 / self.dim;
                return record.diverged(t);
            }
            record.save(time, risk, distance);
        }
        record.finish(Stop::Finished)
    }
}

/// Residuals whose squares still add up: beyond, a batch is as much clipped as it can be.
pub(super) fn bounded(residual: f64) -> f64 {
    residual.clamp(-1e140, 1e140)
}

/// $\sum f(a_i, b_i)$ over all coordinates.
fn each(a: &[Block], b: &[Block], f: impl Fn(f64, f64) -> f64) -> f64 {
    let mut sums = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for i in 0..8 {
            sums[i] += f(a.first[i], b.first[i]) + f(a.second[i], b.second[i]);
        }
    }
    sums.iter().sum()
}

/// $a_i \leftarrow f(a_i, b_i)$ for all coordinates.
fn change(a: &mut [Block], b: &[Block], f: impl Fn(f64, f64) -> f64) {
    for (a, b) in a.iter_mut().zip(b) {
        for i in 0..8 {
            a.first[i] = f(a.first[i], b.first[i]);
            a.second[i] = f(a.second[i], b.second[i]);
        }
    }
}
