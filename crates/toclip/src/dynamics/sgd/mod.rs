//! C-SGD on streaming data, every coordinate simulated.

mod batch;
pub(super) mod coordinates;
mod draws;
mod least_squares;
mod part;
mod teacher;

use super::covariates::Sampler;
use super::{Covariates, Simulator, Trajectory};
use crate::error::{Error, Result};
use crate::model::Objective;
use crate::problem::{Combination, Method, Problem};
use crate::sim::{InstructionSet, Isa};
use least_squares::LeastSquares;
use teacher::TeacherStudent;

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
/// Of a [generalised linear model](crate::model) the residual is $r(\langle x, \theta_k\rangle, y)$,
/// with $y$ drawn given $\langle x, \theta^\ast\rangle$. Within an eigenspace only the lengths of
/// $\theta_0$ and $\theta^\ast$ and their product matter, so the teacher is spread evenly over its
/// coordinates. The path has the [overlaps](Trajectory::overlaps) and the
/// [measures](Trajectory::measures) of the model.
///
/// With a [batch](crate::Batch) of $B$ every step draws and averages $B$ samples; the gradient of
/// the batch is clipped at $c\sqrt{d/B}$, or that of each sample at $c\sqrt d$.
///
/// [By value](crate::Rule::ByValue), every coordinate of the gradient $\rho\thinspace x_i$ is clipped
/// at $c$; [per group](crate::Rule::PerGroup), that of each group at $c_g\sqrt{d_g}$.
/// [Private SGD](crate::Step::with_privacy) adds normal noise of standard deviation $\sigma c\sqrt d$
/// to the sum of the clipped gradients.
///
/// With [momentum](crate::Momentum) the gradient enters a buffer, step by step as written there.
///
/// A run is a function of seed and index. **Its bits depend neither on the number of threads, nor
/// on the times saved, nor on the [instruction set](InstructionSet)** that the loops are compiled
/// for.
///
/// ```
/// use toclip::Problem;
/// use toclip::dynamics::{Sgd, Simulator, Stop};
/// use toclip::noise::Gaussian;
/// use toclip::policy::OpenLoop;
/// use toclip::spectrum::{Modes, Spectrum, Start};
///
/// let modes = Modes::new(&Spectrum::power_law(500, 0.2)?, &Start::Uniform { norm: 1.0 })?;
/// let problem = Problem::new(modes, Gaussian::new(0.5)?, OpenLoop::constant(0.7, 0.9)?)?;
/// let sgd = Sgd::new(&problem)?;
/// let path = sgd.run(1, 0, &[0.0, 1.0, 15.0]);
/// assert_eq!(path.stop, Stop::Finished);
/// assert!((path.risk[0] - 0.18).abs() < 1e-3 && path.risk[2] < 0.1);
/// assert_eq!(path, sgd.run(1, 0, &[0.0, 1.0, 15.0]));
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// Classification, with batches of eight:
///
/// ```
/// use toclip::dynamics::{Sgd, Simulator};
/// use toclip::model::Logistic;
/// use toclip::policy::OpenLoop;
/// use toclip::spectrum::{Modes, Spectrum, Start};
/// use toclip::{Batch, Problem};
///
/// let (teacher, start) = (Start::Uniform { norm: 3.0 }, Start::Uniform { norm: 0.0 });
/// let modes = Modes::with_teacher(&Spectrum::isotropic(400)?, &teacher, &start)?;
/// let problem = Problem::of_model(modes, Logistic::new(0.1)?, OpenLoop::constant(1.0, 0.4)?)?;
/// let path = Sgd::new(&problem.with_batch(Batch::mean(8)?)?)?.run(1, 0, &[0.0, 5.0]);
/// let (overlaps, measures) = (path.overlaps.unwrap(), path.measures.unwrap());
/// assert!(overlaps[0].q == 0.0 && overlaps[1].correlation() > 0.5);
/// assert!(measures[1].loss < measures[0].loss);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sgd {
    start: StartOfRuns,
    covariates: Sampler,
    isa: Isa,
}

/// All coordinates at the start of a run, and what is done to them.
#[derive(Debug, Clone)]
enum StartOfRuns {
    LeastSquares(LeastSquares),
    Model(TeacherStudent),
}

impl Sgd {
    /// C-SGD on a problem.
    ///
    /// # Errors
    /// [`Error::Combination`] for a problem that C-SGD does not simulate, among them compressed modes,
    /// which are not eigendirections, and more than $10^8$ coordinates.
    pub fn new(problem: &Problem) -> Result<Self> {
        problem.check_method(Method::Sgd)?;
        let start = match problem.objective() {
            Objective::LeastSquares => StartOfRuns::LeastSquares(LeastSquares::new(problem)?),
            Objective::Model(model) => {
                StartOfRuns::Model(TeacherStudent::new(problem, model.clone())?)
            }
        };
        Ok(Sgd { start, covariates: Sampler::Gaussian, isa: Isa::best() })
    }

    /// The same with data of another distribution and the same covariance; only for least squares.
    ///
    /// ```
    /// use toclip::Problem;
    /// use toclip::dynamics::{Covariates, Sgd, Simulator};
    /// # use toclip::{noise::NoNoise, policy::OpenLoop};
    /// # use toclip::spectrum::{Modes, Spectrum, Start};
    /// # let modes = Modes::new(&Spectrum::isotropic(100)?, &Start::Uniform { norm: 1.0 })?;
    /// let problem = Problem::new(modes, NoNoise, OpenLoop::constant(0.5, f64::INFINITY)?)?;
    /// let sgd = Sgd::new(&problem)?.with_covariates(Covariates::Rademacher)?;
    /// assert!(sgd.run(1, 0, &[2.0]).risk[0] < 0.5);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Parameter`] for a distribution without a variance; [`Error::Combination`] for a
    /// generalised linear model, whose features are Gaussian.
    pub fn with_covariates(self, covariates: Covariates) -> Result<Self> {
        if matches!(self.start, StartOfRuns::Model(_)) && covariates != Covariates::Gaussian {
            return Err(Error::Combination(Combination::ModelCovariates));
        }
        Ok(Self { covariates: covariates.sampler()?, ..self })
    }

    /// The same with a given instruction set instead of the fastest one, for benchmarks; the
    /// results are the same.
    ///
    /// ```
    /// use toclip::Problem;
    /// use toclip::dynamics::{InstructionSet, Sgd, Simulator};
    /// # use toclip::{noise::NoNoise, policy::OpenLoop};
    /// # use toclip::spectrum::{Modes, Spectrum, Start};
    /// # let modes = Modes::new(&Spectrum::isotropic(100)?, &Start::Uniform { norm: 1.0 })?;
    /// let problem = Problem::new(modes, NoNoise, OpenLoop::constant(0.5, f64::INFINITY)?)?;
    /// let sgd = Sgd::new(&problem)?;
    /// let plain = sgd.clone().with_instruction_set(InstructionSet::Portable)?;
    /// assert_eq!(sgd.run(1, 0, &[1.0]), plain.run(1, 0, &[1.0]));
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::MissingInstructions`] if this machine does not have it.
    pub fn with_instruction_set(self, set: InstructionSet) -> Result<Self> {
        Ok(Self { isa: Isa::new(set)?, ..self })
    }
}

impl Simulator for Sgd {
    fn run(&self, seed: u64, index: u64, times: &[f64]) -> Trajectory {
        match &self.start {
            StartOfRuns::LeastSquares(start) => {
                start.run(&self.covariates, self.isa, seed, index, times)
            }
            StartOfRuns::Model(start) => start.run(self.isa, seed, index, times),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamics::Stop;
    use crate::noise::{Gaussian, NoNoise, Noise, StudentT};
    use crate::policy::{Control, OpenLoop, Policy, Schedule, Shape};
    use crate::spectrum::{Modes, Spectrum, Start};

    fn modes(spectrum: &Spectrum) -> Modes {
        Modes::new(spectrum, &Start::Uniform { norm: 1.0 }).unwrap()
    }

    fn problem(modes: &Modes, noise: impl Noise + 'static, eta: f64, c: f64) -> Problem {
        Problem::new(modes.clone(), noise, OpenLoop::constant(eta, c).unwrap()).unwrap()
    }

    fn sgd(modes: &Modes, noise: impl Noise + 'static, eta: f64, c: f64) -> Sgd {
        Sgd::new(&problem(modes, noise, eta, c)).unwrap()
    }

    fn gaussian(sigma: f64) -> Gaussian {
        Gaussian::new(sigma).unwrap()
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
        let sgd = sgd(&modes, gaussian(sigma), eta, f64::INFINITY);
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
        let sgd = sgd(&modes, NoNoise, eta, c);
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
        let sgd = sgd(&modes, gaussian(sigma), eta, f64::INFINITY);
        let sgd = sgd.with_covariates(Covariates::Rademacher).unwrap();
        let found = errors(&sgd, 20_000, 4.0 / n, 0.5 * distance, distance);
        assert!(found.iter().all(|e| e.abs() < 5.0), "{found:?}");
    }

    #[test]
    fn runs_are_functions_of_seed_and_index() {
        let modes = modes(&Spectrum::power_law(50, 0.3).unwrap());
        let sgd = sgd(&modes, StudentT::new(1.0, 0.5).unwrap(), 0.6, 0.4);
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
        let problem = Problem::new(modes, gaussian(0.5), policy).unwrap();
        let path = Sgd::new(&problem).unwrap().run(1, 0, &[0.9, 1.0, 1.5, 3.0]);
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
        let problem = Problem::new(modes.clone(), NoNoise, StopBelow(0.05)).unwrap();
        let times: Vec<f64> = (0..800).map(|k| f64::from(k) / modes.dim()).collect();
        let risk = Sgd::new(&problem).unwrap().run(1, 0, &times).risk;
        let stopped = risk.iter().position(|r| *r <= 0.05).unwrap();
        assert!(stopped > 10 && risk[stopped - 1] > 0.05);
        assert!(risk[stopped..].iter().all(|r| *r == risk[stopped]));
    }

    #[test]
    fn divergence_ends_with_a_finite_table() {
        let modes = modes(&Spectrum::isotropic(60).unwrap());
        let times: Vec<f64> = (0..200).map(f64::from).collect();
        for covariates in [Covariates::Gaussian, Covariates::Uniform] {
            let sgd = sgd(&modes, gaussian(1.0), 4.0, f64::INFINITY);
            let path = sgd.with_covariates(covariates).unwrap().run(1, 0, &times);
            let Stop::Diverged { t } = path.stop else { panic!("{:?}", path.stop) };
            assert!(path.times.len() < 200 && *path.times.last().unwrap() <= t);
            assert!(path.risk.iter().chain(&path.distance).all(|x| x.is_finite()));
        }
        // So large a step that one of them overflows.
        let sgd = sgd(&modes, gaussian(1.0), 1e200, f64::INFINITY);
        let path = sgd.run(1, 0, &times);
        assert!(matches!(path.stop, Stop::Diverged { .. }));
        assert_eq!(path.times, [0.0]);
    }

    #[test]
    fn flat_directions_keep_their_distance() {
        let spectrum = Spectrum::from_eigenvalues(&[1.0, 0.5, 0.0, 0.0]).unwrap();
        let sgd = sgd(&modes(&spectrum), NoNoise, 0.3, 1.0);
        let path = sgd.run(1, 0, &[0.0, 400.0]);
        assert!((path.distance[0] - 1.0).abs() < 1e-15);
        assert!(path.risk[1] < 1e-10 && (path.distance[1] - 0.5).abs() < 1e-9, "{path:?}");
    }

    #[test]
    fn compressed_modes_are_refused() {
        let spectrum = Spectrum::power_law(5000, 0.5).unwrap();
        let compressed = modes(&spectrum).compress(1e-6).unwrap();
        let result = Sgd::new(&problem(&compressed, gaussian(1.0), 0.5, 1.0));
        assert!(result.unwrap_err().to_string().contains("compressed"));
        let huge = modes(&Spectrum::isotropic(1 << 40).unwrap());
        let result = Sgd::new(&problem(&huge, gaussian(1.0), 0.5, 1.0));
        assert!(result.unwrap_err().to_string().contains("collapsed"));
    }
}
