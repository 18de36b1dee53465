//! C-SGD whose steps average several samples.

use super::flat::Flat;
use super::momentum::BufferGains;
use super::sgd::Draws;
use super::simulated_path::{SimulatedPath, steps_until, within};
use super::{Sgd, Stop, Trajectory};
use crate::policy::Control;
use crate::rule::Rule;
use crate::sim::normal::{Block16, Streams, fill};
use crate::sim::step::BufferUpdate;
use crate::sim::{Purpose, scalar_rng};
use rand::rngs::Xoshiro256PlusPlus;

/// The state $w_i = \sqrt{\lambda_i}\thinspace\theta_i$ and the sum of a batch, sixteen coordinates
/// at a time.
struct Batch<'a> {
    lambda: &'a [Block16],
    w: Vec<Block16>,
    /// $\sum_j \omega_j z_j$, with $\omega_j$ the residuals, or what clipping leaves of each.
    sum: Vec<Block16>,
    z: Vec<Block16>,
    /// The momentum, and its buffer.
    buffer: Option<(BufferGains, Vec<Block16>)>,
}

impl Sgd {
    /// [`run`](super::Simulator::run) with several samples a step. No sample is kept: its residual
    /// only depends on the state before the step, so it is added to the gradient as it is drawn.
    pub(super) fn run_batches(
        &self,
        lambda: &[Block16],
        seed: u64,
        index: u64,
        times: &[f64],
    ) -> Trajectory {
        let (averaged, label_noise) = (self.step.batch(), self.step.noise());
        let size = averaged.size() as f64;
        let mut batch = Batch {
            lambda,
            w: self.parts.iter().flat_map(|part| part.start.w()).collect(),
            sum: vec![Block16::ZERO; lambda.len()],
            z: vec![Block16::ZERO; lambda.len()],
            buffer: self.buffer_gains().map(|gains| (gains, vec![Block16::ZERO; lambda.len()])),
        };
        let mut data = Draws::new(self, seed, index);
        let mut noise = scalar_rng(seed, index, Purpose::Noise);
        let mut private = PrivateNoise::new(self, seed, index);
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
                batch.sum.fill(Block16::ZERO);
                for _ in 0..averaged.size() {
                    data.fill(self, &mut batch.z);
                    let inner = each(&batch.z, &batch.w, |a, b| a * b);
                    let residual = bounded(inner - label_noise.sample(&mut noise));
                    self.add_sample(&mut batch, residual, c, risk);
                }
                let step = eta / self.dim / size;
                if let Some(private) = &mut private {
                    private.add(self, &mut batch.sum, c, step);
                }
                let Batch { lambda, w, sum, buffer, .. } = &mut batch;
                for part in &self.parts {
                    let own = part.blocks.clone();
                    let (w, sum, lambda) =
                        (&mut w[own.clone()], &mut sum[own.clone()], &lambda[own]);
                    // The gradient of the batch is this sum over B: clipped at c√(d/B), the sum
                    // is clipped at c√(dB).
                    let share = if averaged.is_per_sample() || averaged.size() == 1 {
                        1.0
                    } else {
                        let norm = each(sum, lambda, |g, l| l * g * g).sqrt();
                        part.reshape(&self.step, 1.0, norm, c, part.unit(size), risk)
                    };
                    change(sum, lambda, |g, l| l * g);
                    if let Some((gains, buffer)) = buffer {
                        // With momentum there is one part.
                        let BufferUpdate { decay, gain, rate } =
                            gains.update(share / size, share == 0.0, eta / self.dim);
                        change(buffer, sum, |b, g| decay * b + gain * g);
                        change(w, buffer, |w, b| w - rate * b);
                    } else {
                        let step = step * share;
                        change(w, sum, |w, g| w - step * g);
                    }
                }
                record.steps += 1;
            }
            let risk = 0.5 * each(&batch.w, &batch.w, |a, b| a * b);
            let still = private.as_ref().map_or(self.flat.square, |private| private.flat.square);
            let distance = still + each(&batch.w, &self.weights, |w, r| (w * r) * (w * r));
            if !within(risk, self.limit) || !distance.is_finite() {
                let t = record.steps as f64 / self.dim;
                return record.diverged(t);
            }
            record.save(time, risk, distance);
        }
        record.finish(Stop::Finished)
    }

    /// Adds the reshaped gradient of a sample to the sum; where the mean is clipped, the whole
    /// gradient.
    fn add_sample(&self, batch: &mut Batch<'_>, residual: f64, c: f64, risk: f64) {
        let averaged = self.step.batch();
        let Batch { lambda, sum, z, .. } = batch;
        if *self.step.rule() == Rule::ByValue {
            // √λ z ρ clipped at c is √λ times z ρ clipped at c/√λ. Infinity times the zeros that
            // fill up the last block would be NaN.
            let c = c.min(f64::MAX);
            change(z, &self.weights, |z, r| (residual * z).min(c * r).max(-c * r));
            change(sum, z, |sum, z| sum + z);
            return;
        }
        for part in &self.parts {
            let own = part.blocks.clone();
            let (sum, z, lambda) = (&mut sum[own.clone()], &z[own.clone()], &lambda[own]);
            let weight = if averaged.is_per_sample() || averaged.size() == 1 {
                let norm = each(z, lambda, |z, l| l * z * z).sqrt();
                part.reshape(&self.step, residual, norm, c, part.unit(1.0), risk)
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
    streams: Streams,
    normals: Vec<Block16>,
    /// The directions with $\lambda = 0$.
    flat: Flat,
    across: Xoshiro256PlusPlus,
}

impl PrivateNoise {
    fn new(sgd: &Sgd, seed: u64, index: u64) -> Option<Self> {
        Some(PrivateNoise {
            multiplier: sgd.step.privacy()?.noise_multiplier(),
            streams: Streams::new(seed, index, Purpose::Privacy),
            normals: vec![Block16::ZERO; sgd.weights.len()],
            flat: sgd.flat.clone(),
            across: scalar_rng(seed, index, Purpose::Privacy),
        })
    }

    /// Adds $\sigma c\sqrt d\thinspace\xi_i$ to every coordinate of the sum of the gradients,
    /// which is stored times $\lambda_i^{-1/2}$. Flat directions make their `step` at once.
    fn add(&mut self, sgd: &Sgd, sum: &mut [Block16], c: f64, step: f64) {
        if self.multiplier == 0.0 {
            return;
        }
        let std = self.multiplier * c * sgd.dim.sqrt();
        fill(sgd.isa, &mut self.streams, &mut self.normals);
        change(&mut self.normals, &sgd.weights, |xi, r| std * xi * r);
        change(sum, &self.normals, |g, xi| g + xi);
        self.flat.diffuse(step * std, &mut self.across);
    }
}

/// A residual small enough for its square not to overflow. Larger ones are clipped to nearly the
/// same gradient anyway.
pub(super) fn bounded(residual: f64) -> f64 {
    residual.clamp(-1e140, 1e140)
}

/// $\sum f(a_i, b_i)$ over all coordinates.
pub(crate) fn each(a: &[Block16], b: &[Block16], f: impl Fn(f64, f64) -> f64) -> f64 {
    let mut sums = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for i in 0..8 {
            sums[i] += f(a.first[i], b.first[i]) + f(a.second[i], b.second[i]);
        }
    }
    sums.iter().sum()
}

/// $a_i \leftarrow f(a_i, b_i)$ for all coordinates.
pub(crate) fn change(a: &mut [Block16], b: &[Block16], f: impl Fn(f64, f64) -> f64) {
    for (a, b) in a.iter_mut().zip(b) {
        for i in 0..8 {
            a.first[i] = f(a.first[i], b.first[i]);
            a.second[i] = f(a.second[i], b.second[i]);
        }
    }
}
