//! Collapsed C-SGD whose steps average several samples.

use super::block::Blocks;
use super::sgd::coordinates::bounded;
use super::{Collapsed, Counts, Stop};
use crate::policy::Control;
use crate::sim::normal::Normals;
use crate::sim::{Purpose, scalar_rng};
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, StandardNormal};

/// The sum $\sum_j \omega_j x_j$ of a batch, as its components in each block.
struct Sum {
    /// $\sum_j \omega_j z_{jb}$, along $\theta_b$.
    along: Vec<f64>,
    /// The length of $\sum_j \omega_j \xi_{jb}$ across it, for the blocks of several directions.
    across: Vec<f64>,
}

impl Collapsed {
    /// [`observe`](Collapsed::observe) with several samples a step.
    ///
    /// A residual only depends on the sample along the $\theta_b$. So, given the residuals, the
    /// rest $\sum_j \rho_j \xi_{jb}$ of the gradient is normal, and its squared length is
    /// $\chi^2(n_b-1)\sum_j \rho_j^2$. Where every sample is clipped, its own length matters as
    /// well, and the sum across is built sample by sample: each needs only its component along the
    /// sum so far and the length of the rest.
    pub(super) fn observe_batches(
        &self,
        seed: u64,
        index: u64,
        last: u64,
        observe: &mut impl FnMut(u64, f64, f64),
    ) -> (Stop, Counts) {
        let Blocks { dim, root, lengths, rest, .. } = &self.blocks;
        let batch = self.problem.step().batch();
        let size = batch.size() as f64;
        let mut normals = Normals::new(seed, index, Purpose::Covariates);
        let mut across = scalar_rng(seed, index, Purpose::Lengths);
        let mut noise = scalar_rng(seed, index, Purpose::Noise);
        let mut u = lengths.clone();
        let mut z = vec![0.0; u.len()];
        let mut sum = Sum { along: vec![0.0; u.len()], across: vec![0.0; rest.len()] };
        let mut risk = self.start.0;
        let mut private = scalar_rng(seed, index, Purpose::Privacy);
        let mut flat = self.flat.clone();
        let one_by_one = batch.is_per_sample() || batch.size() == 1;
        observe(0, self.start.0, self.start.1);
        for k in 0..last {
            let Control { eta, c } = self.problem.policy().at(k as f64 / dim, risk);
            sum.along.fill(0.0);
            sum.across.fill(0.0);
            let mut squares = 0.0;
            for _ in 0..batch.size() {
                normals.fill(&mut z);
                let parts = z.iter().zip(&u).zip(root);
                let product: f64 = parts.map(|((z, u), root)| root * z * u).sum();
                let residual = bounded(product - self.problem.step().noise().sample(&mut noise));
                if one_by_one {
                    self.add_reshaped(&mut sum, &z, residual, c, risk, &mut across);
                } else {
                    squares += residual * residual;
                    sum.along.iter_mut().zip(&z).for_each(|(sum, z)| *sum += residual * z);
                }
            }
            let share = if one_by_one {
                1.0
            } else {
                for (length, rest) in sum.across.iter_mut().zip(rest) {
                    *length = (squares * rest.sample(&mut across)).sqrt();
                }
                // The gradient of the batch is this sum over B: clipped at c√(d/B), the sum is
                // clipped at c√(dB).
                self.problem.step().reshape(1.0, self.norm(&sum), c, (dim * size).sqrt(), risk)
            };
            let step = eta / dim / size * share;
            let std = self.private_std(c);
            if std > 0.0 {
                self.add_private(&mut sum, std, &mut private);
                flat.diffuse(step * std, &mut private);
            }
            let gained = |g: f64, lambda: f64| step * step * lambda * g * g;
            let distance;
            (risk, distance) = self.blocks.advance(&mut u, step, &sum.along, &sum.across, gained);
            if let Some(end) = self.diverged(k + 1, risk) {
                return end;
            }
            // Without privacy flat directions do not move, and this adds nothing.
            observe(k + 1, risk, distance + (flat.square - self.flat.square));
        }
        (Stop::Finished, Counts { steps: last, ..Counts::default() })
    }

    /// $\sigma c\sqrt d$ of private SGD; zero without it.
    fn private_std(&self, c: f64) -> f64 {
        let variance = self.problem.step().private_variance(c);
        if variance == 0.0 {
            0.0
        } else {
            (variance * self.blocks.dim).sqrt() * self.problem.step().batch().size() as f64
        }
    }

    /// Adds normal noise of this standard deviation to every coordinate of the sum.
    fn add_private(&self, sum: &mut Sum, std: f64, rng: &mut Xoshiro256PlusPlus) {
        let Blocks { root, rest_but_one, .. } = &self.blocks;
        for (along, root) in sum.along.iter_mut().zip(root) {
            let z: f64 = StandardNormal.sample(rng);
            *along += std / root * z;
        }
        for ((length, rest), root) in sum.across.iter_mut().zip(rest_but_one).zip(root) {
            let z: f64 = StandardNormal.sample(rng);
            let left = rest.as_ref().map_or(0.0, |rest| rest.sample(rng));
            let std = std / root;
            *length = ((*length + std * z).powi(2) + std * std * left).sqrt();
        }
    }

    /// $\Vert \sum_j \omega_j x_j\Vert $.
    fn norm(&self, sum: &Sum) -> f64 {
        let lambda = &self.blocks.lambda;
        let along = lambda.iter().zip(&sum.along).map(|(l, g)| l * g * g);
        let across = lambda.iter().zip(&sum.across).map(|(l, g)| l * g * g);
        (along.sum::<f64>() + across.sum::<f64>()).sqrt()
    }

    /// Adds $\omega x$, with $\omega$ the residual as the rule reshapes it.
    fn add_reshaped(
        &self,
        sum: &mut Sum,
        z: &[f64],
        residual: f64,
        c: f64,
        risk: f64,
        across: &mut Xoshiro256PlusPlus,
    ) {
        let Blocks { lambda, rest_but_one, .. } = &self.blocks;
        let mut square: f64 = z.iter().zip(lambda).map(|(z, l)| l * z * z).sum();
        let rests: Vec<(f64, f64)> = rest_but_one
            .iter()
            .zip(lambda)
            .map(|(rest, l)| {
                let towards: f64 = StandardNormal.sample(across);
                let left = rest.as_ref().map_or(0.0, |rest| rest.sample(across));
                square += l * (towards * towards + left);
                (towards, left)
            })
            .collect();
        let unit = self.blocks.dim.sqrt();
        let weight = self.problem.step().reshape(residual, square.sqrt(), c, unit, risk);
        sum.along.iter_mut().zip(z).for_each(|(sum, z)| *sum += weight * z);
        for (length, (towards, left)) in sum.across.iter_mut().zip(rests) {
            *length = ((*length + weight * towards).powi(2) + weight * weight * left).sqrt();
        }
    }
}
