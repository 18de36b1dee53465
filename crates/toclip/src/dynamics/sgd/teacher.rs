//! C-SGD on a generalised linear model.

use super::coordinates::{change, each};
use crate::dynamics::Trajectory;
use crate::dynamics::simulated_path::{Iteration, iterate};
use crate::error::{Error, Result};
use crate::model::{Model, Overlaps};
use crate::policy::Control;
use crate::problem::{Combination, Problem};
use crate::sim::normal::{Block16, Streams, fill};
use crate::sim::teacher_step::{Measured, TeacherState};
use crate::sim::{Isa, Purpose, scalar_rng};
use rand::rngs::Xoshiro256PlusPlus;
use std::sync::Arc;

/// The coordinates of teacher and student at the start of a run.
#[derive(Debug, Clone)]
pub(super) struct TeacherStudent {
    problem: Problem,
    model: Arc<dyn Model>,
    lambda: Vec<Block16>,
    w: Vec<Block16>,
    teacher: Vec<Block16>,
    /// $\lambda_i^{-1/2}$.
    weights: Vec<Block16>,
    /// $V$, $\Vert\theta^\ast\Vert ^2$, and what directions with $\lambda = 0$ add to $\Vert\theta\Vert ^2$
    /// and $\langle\theta, \theta^\ast\rangle$.
    v: f64,
    teacher_sq: f64,
    flat: (f64, f64),
    dim: f64,
    /// The largest $Q$.
    limit: f64,
}

impl TeacherStudent {
    pub fn new(problem: &Problem, model: Arc<dyn Model>) -> Result<Self> {
        let modes = problem.modes();
        let (Some(alignments), Some(start)) = (modes.alignments(), Overlaps::at_start(modes))
        else {
            return Err(Error::Combination(Combination::ModelWithoutTeacher));
        };
        let (mut lambda, mut w, mut teacher) = (Vec::new(), Vec::new(), Vec::new());
        let mut flat = (0.0, 0.0);
        for (mode, own) in modes.modes().iter().zip(alignments) {
            if mode.lambda == 0.0 {
                flat = (flat.0 + own.q, flat.1 + own.p);
                continue;
            }
            let n = mode.count as usize;
            let truth = (own.teacher / mode.count).sqrt();
            // Along the teacher's coordinates, or evenly where there is no teacher; the rest across, in
            // the first two directions.
            let along = if own.teacher > 0.0 { own.p / own.teacher * truth } else { 0.0 };
            let across = (own.q - along * along * mode.count).max(0.0);
            let first = w.len();
            let root = mode.lambda.sqrt();
            lambda.extend(std::iter::repeat_n(mode.lambda, n));
            teacher.extend(std::iter::repeat_n(root * truth, n));
            w.extend(std::iter::repeat_n(root * along, n));
            if n > 1 {
                w[first] += root * (0.5 * across).sqrt();
                w[first + 1] -= root * (0.5 * across).sqrt();
            } else if own.teacher == 0.0 {
                w[first] = root * across.sqrt();
            }
        }
        let weights = Block16::from_values(lambda.iter().map(|l: &f64| l.sqrt().recip()));
        Ok(TeacherStudent {
            model,
            lambda: Block16::from_values(lambda),
            w: Block16::from_values(w),
            teacher: Block16::from_values(teacher),
            weights,
            v: start.v,
            teacher_sq: alignments.iter().map(|own| own.teacher).sum(),
            flat,
            dim: problem.dim(),
            limit: start.largest_q(problem.policy()),
            problem: problem.clone(),
        })
    }

    pub fn run(&self, isa: Isa, seed: u64, index: u64, times: &[f64]) -> Trajectory {
        let streams = Streams::new(seed, index, Purpose::Covariates);
        let labels = scalar_rng(seed, index, Purpose::Noise);
        let mut path = Trajectory::with_capacity(times.len());
        path.overlaps = Some(Vec::with_capacity(times.len()));
        let (path, end) = if self.problem.step().batch().size() > 1 {
            let zero = || vec![Block16::ZERO; self.lambda.len()];
            let (w, z, sum) = (self.w.clone(), zero(), zero());
            let mut run = Batches { start: self, isa, w, z, sum, streams, labels, path };
            let end = iterate(&mut run, self.dim, u64::MAX, times);
            (run.path, end)
        } else {
            let state = TeacherState::new(&self.lambda, &self.w, &self.teacher);
            let mut run = Single { start: self, isa, state, streams, labels, path };
            let end = iterate(&mut run, self.dim, u64::MAX, times);
            (run.path, end)
        };
        path.ended(end).measured(&*self.model)
    }

    /// Saves a time unless the path has diverged.
    fn save(&self, path: &mut Trajectory, time: f64, m: Measured) -> bool {
        let (square, overlap) = (m.square + self.flat.0, m.overlap + self.flat.1);
        let distance = square - 2.0 * overlap + self.teacher_sq;
        if !(m.q <= self.limit && distance.is_finite()) {
            return false;
        }
        path.save_overlaps(time, Overlaps::rounded(m.q, m.p, self.v), distance);
        true
    }

    /// The residual of a label drawn given the teacher's logit; `None` where the path has diverged,
    /// as a logit has no more than a few standard deviations.
    fn residual(&self, u: f64, v: f64, labels: &mut Xoshiro256PlusPlus) -> Option<f64> {
        let y = self.model.sample(v, labels);
        let residual = self.model.residual(u, y);
        (u * u <= 100.0 * self.limit && residual.is_finite()).then_some(residual)
    }
}

/// A run with one sample a step.
struct Single<'a> {
    start: &'a TeacherStudent,
    isa: Isa,
    state: TeacherState,
    streams: Streams,
    labels: Xoshiro256PlusPlus,
    path: Trajectory,
}

impl Iteration for Single<'_> {
    fn step(&mut self, _k: u64, t: f64) -> bool {
        let start = self.start;
        let sums = self.state.pass(self.isa, &mut self.streams);
        let Some(residual) = start.residual(sums.model, sums.teacher, &mut self.labels) else {
            return false;
        };
        let Control { eta, c } = start.problem.policy().at(t, 0.0);
        let kept = share(residual.abs() * sums.norm_sq.sqrt(), c * start.dim.sqrt());
        self.state.step(eta / start.dim * kept * residual);
        true
    }

    fn save(&mut self, time: f64) -> bool {
        let measured = self.state.measure(self.isa, &self.start.weights);
        self.start.save(&mut self.path, time, measured)
    }
}

/// A run whose steps average several samples.
struct Batches<'a> {
    start: &'a TeacherStudent,
    isa: Isa,
    w: Vec<Block16>,
    z: Vec<Block16>,
    sum: Vec<Block16>,
    streams: Streams,
    labels: Xoshiro256PlusPlus,
    path: Trajectory,
}

impl Iteration for Batches<'_> {
    fn step(&mut self, _k: u64, t: f64) -> bool {
        let TeacherStudent { problem, lambda, teacher, dim, .. } = self.start;
        let (dim, batch) = (*dim, problem.step().batch());
        let samples = batch.size() as f64;
        let Control { eta, c } = problem.policy().at(t, 0.0);
        let Batches { w, z, sum, .. } = self;
        sum.fill(Block16::ZERO);
        for _ in 0..batch.size() {
            fill(self.isa, &mut self.streams, z);
            let u = each(z, w, |z, w| z * w);
            let v = each(z, teacher, |z, w| z * w);
            let Some(mut residual) = self.start.residual(u, v, &mut self.labels) else {
                return false;
            };
            if batch.is_per_sample() {
                let norm = each(z, lambda, |z, l| l * z * z).sqrt();
                residual *= share(residual.abs() * norm, c * dim.sqrt());
            }
            change(sum, z, |sum, z| sum + residual * z);
        }
        // The mean is this sum over B, and clipped at c√(d/B): the sum at c√(dB).
        let kept = if batch.is_per_sample() {
            1.0
        } else {
            let norm = each(sum, lambda, |g, l| l * g * g).sqrt();
            share(norm, c * (dim * samples).sqrt())
        };
        let step = eta / dim / samples * kept;
        change(sum, lambda, |g, l| l * g);
        change(w, sum, |w, g| w - step * g);
        true
    }

    fn save(&mut self, time: f64) -> bool {
        let TeacherStudent { teacher, weights, .. } = self.start;
        let theta = |w: f64, r: f64| w * r;
        let mut scaled = self.w.clone();
        change(&mut scaled, weights, theta);
        let mut truth = teacher.clone();
        change(&mut truth, weights, theta);
        let product = |a: &[Block16], b: &[Block16]| each(a, b, |a, b| a * b);
        let measured = Measured {
            q: product(&self.w, &self.w),
            p: product(&self.w, teacher),
            square: product(&scaled, &scaled),
            overlap: product(&scaled, &truth),
        };
        self.start.save(&mut self.path, time, measured)
    }
}

/// What clipping at a threshold leaves of a norm, as a share of it.
fn share(norm: f64, threshold: f64) -> f64 {
    if norm <= threshold { 1.0 } else { threshold / norm }
}
