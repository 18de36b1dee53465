//! C-SGD on a generalised linear model, every coordinate simulated.

use super::ode::{check_policy, divergence_limit};
use super::{GlmPath, Model, Overlaps, TeacherModes};
use crate::dynamics::sgd::LARGEST;
use crate::dynamics::sgd_batch::{change, each};
use crate::dynamics::simulated_path::steps_until;
use crate::dynamics::simulator::check_whole;
use crate::dynamics::{InstructionSet, Stop};
use crate::error::{Error, Result};
use crate::factors::batch::Batch;
use crate::policy::{Control, Policy};
use crate::sim::normal::{Block16, Streams, fill};
use crate::sim::teacher_step::{Measured, TeacherState};
use crate::sim::{Isa, Purpose, scalar_rng};
use std::sync::Arc;

/// $\theta_{k+1} = \theta_k - \frac\eta d\operatorname{clip}_{c\sqrt d}\bigl(r(u, y)\thinspace x\bigr)$: C-SGD on a
/// generalised linear model, in the eigenbasis of $K$.
///
/// $x_i = \sqrt{\lambda_i}\thinspace z_i$ with $z$ standard normal, $u = \langle x, \theta_k\rangle$, and $y$
/// drawn given $v = \langle x, \theta^\ast\rangle$. Times and steps are those of
/// [`dynamics::Sgd`](crate::dynamics::Sgd). Within an eigenspace only the lengths of $\theta_0$ and
/// $\theta^\ast$ and their product matter, so the teacher is spread evenly over its coordinates.
///
/// With a [batch](Self::with_batch) of $B$ the mean gradient is clipped at $c\sqrt{d/B}$, or that of
/// each sample at $c\sqrt d$.
///
/// A run is a function of seed and index: its bits do not depend on the number of threads, the times
/// saved or the instruction set.
///
/// ```
/// use std::sync::Arc;
/// use toclip::model::{GlmSgd, Logistic, TeacherModes};
/// use toclip::policy::{OpenLoop, Schedule};
/// use toclip::spectrum::{Spectrum, Start};
///
/// let modes = TeacherModes::new(&Spectrum::isotropic(400)?, &Start::Uniform { norm: 3.0 })?;
/// let policy = OpenLoop::new(Schedule::constant(1.0)?, Schedule::constant(0.4)?);
/// let sgd = GlmSgd::new(&modes, Arc::new(Logistic::new(0.1)?), Arc::new(policy))?;
/// let path = sgd.run(1, 0, &[0.0, 5.0]);
/// assert!(path.overlaps[0].q == 0.0 && path.overlaps[1].correlation() > 0.5);
/// assert_eq!(path, sgd.run(1, 0, &[0.0, 5.0]));
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct GlmSgd {
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
    limit: f64,
    model: Arc<dyn Model>,
    policy: Arc<dyn Policy>,
    batch: Batch,
    isa: Isa,
}

impl GlmSgd {
    /// C-SGD from these modes with this model and policy.
    ///
    /// # Errors
    /// [`Error::Invalid`] for compressed modes, which are not eigendirections, for more than $10^8$
    /// coordinates, and for a policy that depends on the risk.
    pub fn new(
        modes: &TeacherModes,
        model: Arc<dyn Model>,
        policy: Arc<dyn Policy>,
    ) -> Result<Self> {
        check_policy(policy.as_ref())?;
        check_whole(modes.is_whole())?;
        if modes.ambient_dim() > LARGEST {
            return Err(Error::Invalid(format!(
                "C-SGD in {} dimensions would need more than 50 GB: use at most {LARGEST}",
                modes.ambient_dim()
            )));
        }
        let (mut lambda, mut w, mut teacher) = (Vec::new(), Vec::new(), Vec::new());
        let mut flat = (0.0, 0.0);
        for mode in modes.modes() {
            if mode.lambda == 0.0 {
                flat = (flat.0 + mode.q, flat.1 + mode.p);
                continue;
            }
            let n = mode.count as usize;
            let truth = (mode.teacher / mode.count).sqrt();
            // Along the teacher's coordinates, or evenly where there is no teacher; the rest across, in
            // the first two directions.
            let along = if mode.teacher > 0.0 { mode.p / mode.teacher * truth } else { 0.0 };
            let across = (mode.q - along * along * mode.count).max(0.0);
            let first = w.len();
            let root = mode.lambda.sqrt();
            lambda.extend(std::iter::repeat_n(mode.lambda, n));
            teacher.extend(std::iter::repeat_n(root * truth, n));
            w.extend(std::iter::repeat_n(root * along, n));
            if n > 1 {
                w[first] += root * (0.5 * across).sqrt();
                w[first + 1] -= root * (0.5 * across).sqrt();
            } else if mode.teacher == 0.0 {
                w[first] = root * across.sqrt();
            }
        }
        let weights = Block16::from_values(lambda.iter().map(|l: &f64| l.sqrt().recip()));
        Ok(GlmSgd {
            lambda: Block16::from_values(lambda),
            w: Block16::from_values(w),
            teacher: Block16::from_values(teacher),
            weights,
            v: modes.overlaps().v,
            teacher_sq: modes.modes().iter().map(|m| m.teacher).sum(),
            flat,
            dim: modes.dim(),
            limit: divergence_limit(modes, policy.as_ref()),
            model,
            policy,
            batch: Batch::single(),
            isa: Isa::best(),
        })
    }

    /// The same with steps that average several samples.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use toclip::model::{GlmSgd, Logistic, TeacherModes};
    /// # use toclip::policy::{OpenLoop, Schedule};
    /// # use toclip::spectrum::{Spectrum, Start};
    /// use toclip::Batch;
    /// # let modes = TeacherModes::new(&Spectrum::isotropic(100)?, &Start::Uniform { norm: 3.0 })?;
    /// # let policy = Arc::new(OpenLoop::unclipped(Schedule::constant(1.0)?));
    /// let sgd = GlmSgd::new(&modes, Arc::new(Logistic::new(0.0)?), policy)?;
    /// let path = sgd.with_batch(Batch::mean(8)?)?.run(1, 0, &[2.0]);
    /// assert!(path.overlaps[0].correlation() > 0.5);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] for batches with several outputs.
    pub fn with_batch(self, batch: Batch) -> Result<Self> {
        if batch.output_count() > 1 {
            return Err(Error::Invalid(
                "generalised linear models have one output: use a batch without outputs".into(),
            ));
        }
        Ok(GlmSgd { batch, ..self })
    }

    /// The same with a given instruction set instead of the fastest one, for benchmarks; the results
    /// are the same.
    ///
    /// # Errors
    /// [`Error::Invalid`] if this machine does not have it.
    pub fn with_instruction_set(self, set: InstructionSet) -> Result<Self> {
        Ok(GlmSgd { isa: Isa::new(set)?, ..self })
    }

    /// The model.
    pub fn model(&self) -> &dyn Model {
        &*self.model
    }

    /// Run number `index` of the ensemble with this `seed`, saved at the given increasing times.
    pub fn run(&self, seed: u64, index: u64, times: &[f64]) -> GlmPath {
        if self.batch.size() > 1 {
            return self.run_batches(seed, index, times);
        }
        let mut state = TeacherState::new(&self.lambda, &self.w, &self.teacher);
        let mut streams = Streams::new(seed, index, Purpose::Covariates);
        let mut labels = scalar_rng(seed, index, Purpose::Noise);
        let mut path = GlmPath::new(times.len());
        for &time in times {
            let target = steps_until(time, self.dim);
            while path.counts.steps < target {
                let t = path.counts.steps as f64 / self.dim;
                let sums = state.pass(self.isa, &mut streams);
                let y = self.model.sample(sums.teacher, &mut labels);
                let residual = self.model.residual(sums.model, y);
                // A logit has no more than a few standard deviations.
                if !(sums.model * sums.model <= 100.0 * self.limit && residual.is_finite()) {
                    return diverged(path, t);
                }
                let Control { eta, c } = self.policy.at(t, 0.0);
                let kept = share(residual.abs() * sums.norm_sq.sqrt(), c * self.dim.sqrt());
                state.step(eta / self.dim * kept * residual);
                path.counts.steps += 1;
            }
            if !self.save(&mut path, time, state.measure(self.isa, &self.weights)) {
                let t = path.counts.steps as f64 / self.dim;
                return diverged(path, t);
            }
        }
        path
    }

    fn run_batches(&self, seed: u64, index: u64, times: &[f64]) -> GlmPath {
        let (size, per_sample) = (self.batch.size(), self.batch.is_per_sample());
        let mut w = self.w.clone();
        let zero = || vec![Block16::ZERO; self.lambda.len()];
        let (mut z, mut sum) = (zero(), zero());
        let mut streams = Streams::new(seed, index, Purpose::Covariates);
        let mut labels = scalar_rng(seed, index, Purpose::Noise);
        let mut path = GlmPath::new(times.len());
        let samples = size as f64;
        for &time in times {
            let target = steps_until(time, self.dim);
            while path.counts.steps < target {
                let t = path.counts.steps as f64 / self.dim;
                let Control { eta, c } = self.policy.at(t, 0.0);
                sum.fill(Block16::ZERO);
                for _ in 0..size {
                    fill(self.isa, &mut streams, &mut z);
                    let u = each(&z, &w, |z, w| z * w);
                    let v = each(&z, &self.teacher, |z, w| z * w);
                    let y = self.model.sample(v, &mut labels);
                    let mut residual = self.model.residual(u, y);
                    if !(u * u <= 100.0 * self.limit && residual.is_finite()) {
                        return diverged(path, t);
                    }
                    if per_sample {
                        let norm = each(&z, &self.lambda, |z, l| l * z * z).sqrt();
                        residual *= share(residual.abs() * norm, c * self.dim.sqrt());
                    }
                    change(&mut sum, &z, |sum, z| sum + residual * z);
                }
                // The mean is this sum over B, and clipped at c√(d/B): the sum at c√(dB).
                let kept = if per_sample {
                    1.0
                } else {
                    let norm = each(&sum, &self.lambda, |g, l| l * g * g).sqrt();
                    share(norm, c * (self.dim * samples).sqrt())
                };
                let step = eta / self.dim / samples * kept;
                change(&mut sum, &self.lambda, |g, l| l * g);
                change(&mut w, &sum, |w, g| w - step * g);
                path.counts.steps += 1;
            }
            let theta = |w: f64, r: f64| w * r;
            let mut scaled = w.clone();
            change(&mut scaled, &self.weights, theta);
            let mut truth = self.teacher.clone();
            change(&mut truth, &self.weights, theta);
            let measured = Measured {
                q: each(&w, &w, |a, b| a * b),
                p: each(&w, &self.teacher, |a, b| a * b),
                square: each(&scaled, &scaled, |a, b| a * b),
                overlap: each(&scaled, &truth, |a, b| a * b),
            };
            if !self.save(&mut path, time, measured) {
                let t = path.counts.steps as f64 / self.dim;
                return diverged(path, t);
            }
        }
        path
    }

    /// Saves a time unless the path has diverged.
    fn save(&self, path: &mut GlmPath, time: f64, m: Measured) -> bool {
        let (square, overlap) = (m.square + self.flat.0, m.overlap + self.flat.1);
        let distance = square - 2.0 * overlap + self.teacher_sq;
        if !(m.q <= self.limit && distance.is_finite()) {
            return false;
        }
        path.save(time, Overlaps::rounded(m.q, m.p, self.v), distance);
        true
    }
}

fn diverged(mut path: GlmPath, t: f64) -> GlmPath {
    path.stop = Stop::Diverged { t };
    path
}

/// What clipping at a threshold leaves of a norm, as a share of it.
fn share(norm: f64, threshold: f64) -> f64 {
    if norm <= threshold { 1.0 } else { threshold / norm }
}
