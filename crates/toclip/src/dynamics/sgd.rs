//! C-SGD on streaming data, every coordinate simulated.

use super::covariates::Sampler;
use super::flat::Flat;
use super::sgd_batch::{bounded, change};
use super::sgd_part::SgdPart;
use super::simulated_path::{SimulatedPath, steps_until, within};
use super::simulator::{check_simulated, check_whole, divergence_limit};
use super::{Covariates, Simulator, Stop, Trajectory};
use crate::error::{Error, Result};
use crate::factors::step::Step;
use crate::optimizer::momentum::Momentum;
use crate::policy::{Control, Controller, Policy};
use crate::rule::Rule;
use crate::sim::normal::{Block16, Streams};
use crate::sim::step::{CovariateSource, SgdState};
use crate::sim::{InstructionSet, Isa, Purpose, scalar_rng};
use crate::spectrum::Modes;
use std::ops::Range;
use std::sync::Arc;

/// The most coordinates that are simulated one by one: 4 GB of state a run.
pub(crate) const LARGEST: u64 = 100_000_000;

/// $\theta_{k+1} = \theta_k - \frac{\eta}{d}\thinspace \mathrm{clip}_{c\sqrt d}\left( (\langle x,
/// \theta_k - \theta^\ast\rangle - \epsilon)\thinspace x\right)$: C-SGD in the eigenbasis of $K$.
///
/// $x_i = \sqrt{\lambda_i}\thinspace z_i$ with $z$ standard normal, which is rotation invariant: no
/// dense $K$ is ever formed, and a step costs a nanosecond or two a coordinate. Step $k$ is made
/// with $\eta$ and $c$ of time $t = k/d$; a time $t$ is saved after step $\mathrm{round}(t d)$. $c
/// = \infty$ is plain SGD.
///
/// Within an eigenspace only the length of $\theta_0 - \theta^\ast$ matters for the distribution of
/// $R$ and $D$, so it is spread evenly over the coordinates there. (For
/// [covariates](Sgd::with_covariates) other than Gaussian the direction matters; this is the one that
/// is simulated.)
///
/// With a [batch](crate::Batch) of $B$ every step draws and averages $B$ samples; the gradient of
/// the batch is clipped at $c\sqrt{d/B}$, or that of each sample at $c\sqrt d$.
///
/// [By value](crate::Rule::ByValue), every coordinate of the gradient $\rho\thinspace x_i$ is clipped
/// at $c$; [per group](crate::Rule::PerGroup), that of each group at $c_g\sqrt{d_g}$.
/// [Private SGD](crate::Step::with_privacy) adds normal noise of standard deviation $\sigma c\sqrt d$
/// to the sum of the clipped gradients.
///
/// A run is a function of seed and index. **Its bits depend neither on the number of threads, nor
/// on the times saved, nor on the [instruction set](InstructionSet)** that the loops are compiled
/// for.
///
/// ```
/// use std::sync::Arc;
/// use toclip::dynamics::{Sgd, Simulator, Stop};
/// use toclip::noise::Gaussian;
/// use toclip::policy::{OpenLoop, Schedule};
/// use toclip::spectrum::{Modes, Spectrum, Start};
///
/// let modes = Modes::new(&Spectrum::power_law(500, 0.2)?, &Start::Uniform { norm: 1.0 })?;
/// let policy = OpenLoop::new(Schedule::constant(0.7)?, Schedule::constant(0.9)?);
/// let sgd = Sgd::new(&modes, Arc::new(Gaussian::new(0.5)?), Arc::new(policy))?;
/// let path = sgd.run(1, 0, &[0.0, 1.0, 15.0]);
/// assert_eq!(path.stop, Stop::Finished);
/// assert!((path.risk[0] - 0.18).abs() < 1e-3 && path.risk[2] < 0.1);
/// assert_eq!(path, sgd.run(1, 0, &[0.0, 1.0, 15.0]));
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sgd {
    /// The coordinates that are clipped together, and their state at the start: all of them, or one
    /// part for every group.
    pub(super) parts: Vec<SgdPart>,
    /// $\lambda_i^{-1/2}$, which turns $w_i$ back into $\theta_i$.
    pub(super) weights: Vec<Block16>,
    /// The directions with $\lambda_i = 0$, which only the noise of private SGD moves.
    pub(super) flat: Flat,
    pub(super) dim: f64,
    pub(super) limit: f64,
    /// $\lambda_i$, where steps average several samples or are private.
    pub(super) lambda: Option<Vec<Block16>>,
    pub(super) step: Step<'static>,
    pub(super) policy: Arc<dyn Policy>,
    pub(super) momentum: Option<Momentum>,
    pub(super) covariates: Sampler,
    pub(super) isa: Isa,
}

impl Sgd {
    /// C-SGD from these modes with this step and policy.
    ///
    /// # Errors
    /// [`Error::Invalid`] for compressed modes, which are not eigendirections, and for more than
    /// $10^8$ coordinates.
    pub fn new(
        modes: &Modes,
        step: impl Into<Step<'static>>,
        policy: Arc<dyn Policy>,
    ) -> Result<Self> {
        let step = step.into();
        check_whole(modes.is_whole())?;
        if modes.ambient_dim() > LARGEST {
            return Err(Error::Invalid(format!(
                "full C-SGD in {} dimensions would need more than 40 GB: with repeated eigenvalues \
                 use the collapsed form, which has the same distribution; otherwise use at most {LARGEST}",
                modes.ambient_dim()
            )));
        }
        check_simulated(&step, policy.as_ref(), modes.risk())?;
        let parts = SgdPart::all(modes, &step)?;
        let lambda: Vec<Block16> = parts.iter().flat_map(|part| part.start.lambda()).collect();
        // Zero where λ = 0 fills up the last block of a group.
        let inverse = |lambda: f64| if lambda > 0.0 { lambda.sqrt().recip() } else { 0.0 };
        let mut weights = lambda.clone();
        change(&mut weights, &lambda, |_, lambda| inverse(lambda));
        let apart = step.batch().size() > 1 || step.privacy().is_some();
        Ok(Self {
            parts,
            weights,
            flat: Flat::new(modes)?,
            dim: modes.dim(),
            limit: divergence_limit(modes.risk(), &step, policy.as_ref()),
            lambda: apart.then_some(lambda),
            step,
            policy,
            momentum: None,
            covariates: Sampler::Gaussian,
            isa: Isa::best(),
        })
    }

    /// The same with data of another distribution and the same covariance.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use toclip::{noise::NoNoise, policy::{OpenLoop, Schedule}};
    /// # use toclip::spectrum::{Modes, Spectrum, Start};
    /// use toclip::dynamics::{Covariates, Sgd, Simulator};
    /// # let modes = Modes::new(&Spectrum::isotropic(100)?, &Start::Uniform { norm: 1.0 })?;
    /// # let policy = Arc::new(OpenLoop::unclipped(Schedule::constant(0.5)?));
    /// let sgd = Sgd::new(&modes, Arc::new(NoNoise), policy)?.with_covariates(Covariates::Rademacher)?;
    /// assert!(sgd.run(1, 0, &[2.0]).risk[0] < 0.5);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Parameter`] for a distribution without a variance.
    pub fn with_covariates(self, covariates: Covariates) -> Result<Self> {
        Ok(Self { covariates: covariates.sampler()?, ..self })
    }

    /// The same with momentum, in either convention: as [`Momentum`] writes it, step by step.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use toclip::{noise::NoNoise, policy::{OpenLoop, Schedule}};
    /// # use toclip::spectrum::{Modes, Spectrum, Start};
    /// use toclip::dynamics::{Sgd, Simulator};
    /// use toclip::{Memory, Momentum};
    /// # let modes = Modes::new(&Spectrum::isotropic(100)?, &Start::Uniform { norm: 1.0 })?;
    /// # let policy = Arc::new(OpenLoop::unclipped(Schedule::constant(0.5)?));
    /// let sgd = Sgd::new(&modes, Arc::new(NoNoise), policy)?;
    /// // Without memory it is plain SGD, to rounding.
    /// let none = Momentum::heavy_ball(Memory::Beta(0.0))?;
    /// let (with, without) = (sgd.clone().with_momentum(none)?.run(1, 0, &[2.0]), sgd.run(1, 0, &[2.0]));
    /// assert!((with.risk[0] / without.risk[0] - 1.0).abs() < 1e-12);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] if $\delta$ is above $d$, where $\beta$ would be negative.
    pub fn with_momentum(self, momentum: Momentum) -> Result<Self> {
        Ok(Self { momentum: Some(momentum), ..self })
    }

    /// The same with a given instruction set instead of the fastest one, for benchmarks; the
    /// results are the same.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use toclip::{noise::NoNoise, policy::{OpenLoop, Schedule}};
    /// # use toclip::spectrum::{Modes, Spectrum, Start};
    /// use toclip::dynamics::{InstructionSet, Sgd, Simulator};
    /// # let modes = Modes::new(&Spectrum::isotropic(100)?, &Start::Uniform { norm: 1.0 })?;
    /// # let policy = Arc::new(OpenLoop::unclipped(Schedule::constant(0.5)?));
    /// let sgd = Sgd::new(&modes, Arc::new(NoNoise), policy)?;
    /// let plain = sgd.clone().with_instruction_set(InstructionSet::Portable)?;
    /// assert_eq!(sgd.run(1, 0, &[1.0]), plain.run(1, 0, &[1.0]));
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] if this machine does not have it.
    pub fn with_instruction_set(self, set: InstructionSet) -> Result<Self> {
        Ok(Self { isa: Isa::new(set)?, ..self })
    }
}

impl Simulator for Sgd {
    fn run(&self, seed: u64, index: u64, times: &[f64]) -> Trajectory {
        if let Some(lambda) = &self.lambda {
            return self.run_batches(lambda, seed, index, times);
        }
        let by_value = *self.step.rule() == Rule::ByValue;
        let mut gains = self.buffer_gains();
        let running = |part| RunningPart::new(part, gains.is_some());
        let mut parts: Vec<RunningPart<'_>> = self.parts.iter().map(running).collect();
        let mut data = Draws::new(self, seed, index);
        let mut noise = scalar_rng(seed, index, Purpose::Noise);
        let mut controller = Controller::new(&*self.policy);
        let mut record = SimulatedPath::new(times.len());
        for &time in times {
            let target = steps_until(time, self.dim);
            while record.steps < target {
                let t = record.steps as f64 / self.dim;
                let (mut inner, mut twice_risk) = (0.0, 0.0);
                data.prepare(self);
                for RunningPart { part, state, norm, .. } in &mut parts {
                    let sums = state.pass(self.isa, data.of(&part.blocks));
                    inner += sums.inner;
                    twice_risk += sums.twice_risk;
                    *norm = sums.norm_sq.sqrt();
                }
                let risk = 0.5 * twice_risk;
                if !within(risk, self.limit) {
                    return record.diverged(t);
                }
                let residual = inner - self.step.noise().sample(&mut noise);
                let Control { eta, c } = controller.step(t, risk, residual);
                for RunningPart { part, state, unit, norm } in &mut parts {
                    if by_value {
                        state.step(eta / self.dim * bounded(residual));
                        state.bound(eta / self.dim * c);
                        continue;
                    }
                    let weight = part.reshape(&self.step, residual, *norm, c, *unit, risk);
                    if let Some(gains) = &mut gains {
                        let skipped = residual.abs() * *norm > c * *unit;
                        state.remember(gains.update(weight, skipped, eta / self.dim));
                    } else {
                        state.step(eta / self.dim * weight);
                    }
                }
                record.steps += 1;
            }
            let (mut twice_risk, mut distance) = (0.0, self.flat.square);
            for RunningPart { part, state, .. } in &mut parts {
                let (own, moved) = state.measure(self.isa, &self.weights[part.blocks.clone()]);
                twice_risk += own;
                distance += moved;
            }
            let risk = 0.5 * twice_risk;
            if !within(risk, self.limit) || !distance.is_finite() {
                let t = record.steps as f64 / self.dim;
                return record.diverged(t);
            }
            record.save(time, risk, distance);
        }
        record.finish(Stop::Finished)
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

/// The covariates of a run: drawn by the pass that uses them, or drawn in advance.
pub(super) enum Draws {
    Normal(Streams),
    Other(rand::rngs::Xoshiro256PlusPlus, Vec<Block16>),
}

impl Draws {
    pub(super) fn new(sgd: &Sgd, seed: u64, index: u64) -> Self {
        match sgd.covariates {
            Sampler::Gaussian => Self::Normal(Streams::new(seed, index, Purpose::Covariates)),
            _ => {
                let rng = scalar_rng(seed, index, Purpose::Covariates);
                Self::Other(rng, vec![Block16::ZERO; sgd.weights.len()])
            }
        }
    }

    /// The next $z$, drawn into blocks.
    pub(super) fn fill(&mut self, sgd: &Sgd, z: &mut [Block16]) {
        match self {
            Self::Normal(streams) => crate::sim::normal::fill(sgd.isa, streams, z),
            Self::Other(rng, _) => sgd.covariates.fill(rng, z),
        }
    }

    /// Draws covariates that the pass over the coordinates does not draw itself.
    pub(super) fn prepare(&mut self, sgd: &Sgd) {
        if let Self::Other(rng, blocks) = self {
            sgd.covariates.fill(rng, blocks);
        }
    }

    /// $z$ of these blocks, after [`prepare`](Self::prepare).
    #[inline]
    pub(super) fn of(&mut self, blocks: &Range<usize>) -> CovariateSource<'_> {
        match self {
            Self::Normal(streams) => CovariateSource::Normal(streams),
            Self::Other(_, z) => CovariateSource::Given(&z[blocks.clone()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Gaussian, NoNoise, Noise, StudentT};
    use crate::policy::{Control, OpenLoop, Schedule, Shape};
    use crate::spectrum::{Spectrum, Start};

    fn modes(spectrum: &Spectrum) -> Modes {
        Modes::new(spectrum, &Start::Uniform { norm: 1.0 }).unwrap()
    }

    fn constant(eta: f64, c: f64) -> Arc<dyn Policy> {
        let clip = if c.is_finite() { Schedule::constant(c).unwrap() } else { Schedule::never() };
        Arc::new(OpenLoop::new(Schedule::constant(eta).unwrap(), clip))
    }

    fn gaussian(sigma: f64) -> Arc<dyn Noise> {
        Arc::new(Gaussian::new(sigma).unwrap())
    }

    /// How many standard errors the mean of R and D over `runs` runs is from what it should be.
    fn errors(sgd: &Sgd, runs: u64, t: f64, risk: f64, distance: f64) -> [f64; 2] {
        let paths: Vec<_> = (0..runs).map(|index| sgd.run(11, index, &[t])).collect();
        let error = |values: Vec<f64>, expected: f64| {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
            (mean - expected) / (variance / n).sqrt()
        };
        [
            error(paths.iter().map(|p| p.risk[0]).collect(), risk),
            error(paths.iter().map(|p| p.distance[0]).collect(), distance),
        ]
    }

    // Means below are over 4000 runs or more and within five standard errors: false alarm of a
    // comparison 6e-7.

    #[test]
    fn unclipped_means_follow_their_exact_recursion() {
        // For Gaussian data v_i = E θ_i² obeys, with a = η/d,
        // v_i ← v_i (1 - 2aλ_i + 2a²λ_i²) + a²λ_i (Σ λ_j v_j + σ²).
        let spectrum = Spectrum::power_law(21, 0.7).unwrap();
        let modes = modes(&spectrum);
        let (eta, sigma, steps) = (0.8, 0.5, 12);
        let a = eta / modes.dim();
        let lambda: Vec<f64> = modes.modes().iter().map(|m| m.lambda).collect();
        let mut v: Vec<f64> = modes.modes().iter().map(|m| 2.0 * m.energy).collect();
        let twice_risk = |v: &[f64]| v.iter().zip(&lambda).map(|(v, l)| v * l).sum::<f64>();
        for _ in 0..steps {
            let second_moment = twice_risk(&v) + sigma * sigma;
            for (v, l) in v.iter_mut().zip(&lambda) {
                *v = *v * (1.0 - 2.0 * a * l + 2.0 * (a * l).powi(2)) + a * a * l * second_moment;
            }
        }
        let sgd = Sgd::new(&modes, gaussian(sigma), constant(eta, f64::INFINITY)).unwrap();
        let t = f64::from(steps) / modes.dim();
        let found = errors(&sgd, 8000, t, 0.5 * twice_risk(&v), v.iter().sum());
        assert!(found.iter().all(|e| e.abs() < 5.0), "{found:?}");
    }

    #[test]
    fn fully_clipped_step_has_its_exact_mean() {
        // For tiny c every step has length ηc/√d: E D = D - 2ηc/√d E|<u, θ>| + η²c²/d with u
        // uniform on the sphere, E|<u, θ>| = ‖θ‖ Γ(n/2)/(√π Γ((n+1)/2)).
        let n = 9.0;
        let modes = modes(&Spectrum::isotropic(9).unwrap());
        let (eta, c) = (1e6, 1e-7);
        let length = eta * c / f64::sqrt(n);
        let inner =
            libm::tgamma(n / 2.0) / libm::tgamma((n + 1.0) / 2.0) / std::f64::consts::PI.sqrt();
        let distance = 1.0 - 2.0 * length * inner + length * length;
        let sgd = Sgd::new(&modes, Arc::new(NoNoise), constant(eta, c)).unwrap();
        let found = errors(&sgd, 20_000, 1.0 / n, 0.5 * distance, distance);
        assert!(found.iter().all(|e| e.abs() < 5.0), "{found:?}");
    }

    #[test]
    fn rademacher_means_follow_their_own_recursion() {
        // ‖x‖² = n exactly, so for K = I: E D ← D (1 - 2η/n + η²/n) + η²σ²/n, without the 2/n² of
        // Gaussian data.
        let (n, eta, sigma) = (5.0, 0.9, 0.7);
        let mut distance = 1.0;
        for _ in 0..4 {
            distance *= 1.0 - (2.0 * eta - eta * eta) / n;
            distance += eta * eta * sigma * sigma / n;
        }
        let modes = modes(&Spectrum::isotropic(5).unwrap());
        let sgd = Sgd::new(&modes, gaussian(sigma), constant(eta, f64::INFINITY)).unwrap();
        let sgd = sgd.with_covariates(Covariates::Rademacher).unwrap();
        let found = errors(&sgd, 20_000, 4.0 / n, 0.5 * distance, distance);
        assert!(found.iter().all(|e| e.abs() < 5.0), "{found:?}");
    }

    #[test]
    fn runs_are_functions_of_seed_and_index() {
        let modes = modes(&Spectrum::power_law(50, 0.3).unwrap());
        let noise = Arc::new(StudentT::new(1.0, 0.5).unwrap());
        let sgd = Sgd::new(&modes, noise, constant(0.6, 0.4)).unwrap();
        let path = sgd.run(7, 3, &[0.0, 0.5, 2.0]);
        assert_eq!((path.risk[0], path.distance[0]), sgd_start(&sgd));
        assert!((path.risk[0] / modes.risk() - 1.0).abs() < 1e-14);
        assert!((path.distance[0] / modes.distance() - 1.0).abs() < 1e-14);
        assert_eq!(path, sgd.run(7, 3, &[0.0, 0.5, 2.0]));
        assert_eq!(path.risk[2], sgd.run(7, 3, &[2.0]).risk[0], "saving changes nothing");
        assert_ne!(path.risk[2], sgd.run(7, 4, &[2.0]).risk[0]);
        assert_ne!(path.risk[2], sgd.run(8, 3, &[2.0]).risk[0]);
        for set in InstructionSet::available() {
            let other = sgd.clone().with_instruction_set(set).unwrap();
            assert_eq!(path, other.run(7, 3, &[0.0, 0.5, 2.0]), "{set:?}");
        }
    }

    fn sgd_start(sgd: &Sgd) -> (f64, f64) {
        let path = sgd.run(0, 0, &[0.0]);
        (path.risk[0], path.distance[0])
    }

    #[test]
    fn policies_act_at_their_times() {
        let modes = modes(&Spectrum::isotropic(40).unwrap());
        let stop_at_one = Shape::Step { value: 0.5, factor: 0.0, at: vec![1.0], warmup: 0.0 };
        let policy = OpenLoop::unclipped(Schedule::new(stop_at_one).unwrap());
        let sgd = Sgd::new(&modes, gaussian(0.5), Arc::new(policy)).unwrap();
        let path = sgd.run(1, 0, &[0.9, 1.0, 1.5, 3.0]);
        assert_ne!(path.risk[0], path.risk[1]);
        assert_eq!(path.risk[1], path.risk[2]);
        assert_eq!(path.risk[1], path.risk[3]);
        assert_eq!(path.counts.steps, 120);
    }

    /// Stands still below a risk: sees what the iteration says its risk is.
    #[derive(Debug)]
    struct StopBelow(f64);

    impl Policy for StopBelow {
        fn at(&self, _t: f64, r: f64) -> Control {
            Control { eta: if r > self.0 { 0.5 } else { 0.0 }, c: 1.0 }
        }
        fn uses_risk(&self) -> bool {
            true
        }
    }

    #[test]
    fn policies_see_the_risk_of_every_step() {
        let modes = modes(&Spectrum::power_law(40, 0.4).unwrap());
        let sgd = Sgd::new(&modes, Arc::new(NoNoise), Arc::new(StopBelow(0.05))).unwrap();
        let times: Vec<f64> = (0..800).map(|k| f64::from(k) / modes.dim()).collect();
        let risk = sgd.run(1, 0, &times).risk;
        let stopped = risk.iter().position(|r| *r <= 0.05).unwrap();
        assert!(stopped > 10 && risk[stopped - 1] > 0.05);
        assert!(risk[stopped..].iter().all(|r| *r == risk[stopped]));
    }

    #[test]
    fn divergence_ends_with_a_finite_table() {
        let modes = modes(&Spectrum::isotropic(60).unwrap());
        let times: Vec<f64> = (0..200).map(f64::from).collect();
        for covariates in [Covariates::Gaussian, Covariates::Uniform] {
            let sgd = Sgd::new(&modes, gaussian(1.0), constant(4.0, f64::INFINITY)).unwrap();
            let path = sgd.with_covariates(covariates).unwrap().run(1, 0, &times);
            let Stop::Diverged { t } = path.stop else { panic!("{:?}", path.stop) };
            assert!(path.times.len() < 200 && *path.times.last().unwrap() <= t);
            assert!(path.risk.iter().chain(&path.distance).all(|x| x.is_finite()));
        }
        // So large a step that one of them overflows.
        let sgd = Sgd::new(&modes, gaussian(1.0), constant(1e200, f64::INFINITY)).unwrap();
        let path = sgd.run(1, 0, &times);
        assert!(matches!(path.stop, Stop::Diverged { .. }));
        assert_eq!(path.times, [0.0]);
    }

    #[test]
    fn flat_directions_keep_their_distance() {
        let spectrum = Spectrum::from_eigenvalues(&[1.0, 0.5, 0.0, 0.0]).unwrap();
        let sgd = Sgd::new(&modes(&spectrum), Arc::new(NoNoise), constant(0.3, 1.0)).unwrap();
        let path = sgd.run(1, 0, &[0.0, 400.0]);
        assert!((path.distance[0] - 1.0).abs() < 1e-15);
        assert!(path.risk[1] < 1e-10 && (path.distance[1] - 0.5).abs() < 1e-9, "{path:?}");
    }

    #[test]
    fn compressed_modes_are_refused() {
        let spectrum = Spectrum::power_law(5000, 0.5).unwrap();
        let compressed = modes(&spectrum).compress(1e-6).unwrap();
        let result = Sgd::new(&compressed, gaussian(1.0), constant(0.5, 1.0));
        assert!(result.unwrap_err().to_string().contains("compressed"));
        let huge = modes(&Spectrum::isotropic(1 << 40).unwrap());
        let result = Sgd::new(&huge, gaussian(1.0), constant(0.5, 1.0));
        assert!(result.unwrap_err().to_string().contains("collapsed"));
    }
}
