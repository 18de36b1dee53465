//! C-SGD with repeated eigenvalues collapsed: exact in distribution, at a cost that does not depend
//! on the ambient dimension.

use super::block::Blocks;
use super::flat::Flat;
use super::simulated_path::steps_until;
use super::simulator::Simulator;
use super::{Counts, Stop, Trajectory};
use crate::error::Result;
use crate::policy::Controller;
use crate::problem::{Method, Problem};
use crate::sim::normal::Normals;
use crate::sim::{Purpose, scalar_rng};

/// $\theta_{k+1} = \theta_k - \frac{\eta}{d}\operatorname{clip}_{c\sqrt d}(\nabla_k)$: clipped SGD,
/// with equal eigenvalues collapsed into one.
///
/// Gaussian data look the same from every direction of an eigenspace. So of the part $\theta_b$ of
/// $\theta - \theta^\ast$ in the eigenspace of $\lambda_b$, of dimension $n_b$, only the length
/// $u_b = \Vert \theta_b\Vert $ matters, and of a sample only its component along $\theta_b$,
/// $\sqrt{\lambda_b}\thinspace z_b$ with $z_b \sim N(0, 1)$, and the square of the rest, $\lambda_b
/// h_b$ with $h_b \sim \chi^2(n_b - 1)$:
/// $$ \rho = \sum_b \sqrt{\lambda_b}\thinspace z_b u_b - \epsilon, \qquad
/// \Vert x\Vert ^2 = \sum_b \lambda_b (z_b^2 + h_b), \qquad
/// s = \frac{\eta}{d}\thinspace \rho\thinspace \min\Bigl(1, \frac{c\sqrt d}{|\rho|\thinspace \Vert x\Vert }\Bigr), $$
/// $$ u_b^2 \leftarrow (u_b - s\sqrt{\lambda_b}\thinspace z_b)^2 + s^2\lambda_b h_b. $$
/// The distribution of $R$ and $D$ is exactly that of the full iteration; the cost of a step is
/// proportional to the number of distinct eigenvalues, times $B$ for a [batch](crate::Batch) of
/// $B$. Time is $t = k/d$; a time $t$ is saved at step $\operatorname{round}(t d)$. Without
/// clipping, $c = \infty$, it is the same code.
///
/// ```
/// use toclip::Problem;
/// use toclip::dynamics::{Collapsed, Ode, Simulator, Stop};
/// use toclip::noise::Gaussian;
/// use toclip::policy::OpenLoop;
/// use toclip::spectrum::{Modes, Spectrum, Start};
///
/// // A hundred thousand steps in a million dimensions.
/// let modes = Modes::new(&Spectrum::isotropic(1_000_000)?, &Start::Uniform { norm: 1.0 })?;
/// let problem = Problem::new(modes, Gaussian::new(0.5)?, OpenLoop::constant(0.7, 0.9)?)?;
/// let theory = Ode::new(&problem)?.solve(&[0.1])?;
/// let run = Collapsed::new(&problem)?.run(1, 0, &[0.0, 0.1]);
/// assert_eq!((run.risk[0], run.stop, run.counts.steps), (0.5, Stop::Finished, 100_000));
/// // Fluctuations are of order d^(-1/2): every run is near the solution of the ODE.
/// assert!((run.risk[1] - theory.risk[0]).abs() < 0.002);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Collapsed {
    pub(super) problem: Problem,
    pub(super) blocks: Blocks,
    pub(super) flat: Flat,
    /// $R$ and $D$ at the start.
    pub(super) start: (f64, f64),
    pub(super) limit: f64,
}

impl Collapsed {
    /// C-SGD on a problem.
    ///
    /// # Errors
    /// [`Error::Combination`](crate::Error::Combination) for a problem that has no collapsed form, among
    /// them compressed modes, whose multiplicities are not integers.
    pub fn new(problem: &Problem) -> Result<Self> {
        problem.check_method(Method::Collapsed)?;
        let modes = problem.modes();
        Ok(Self {
            problem: problem.clone(),
            blocks: Blocks::new(modes)?,
            flat: Flat::new(modes)?,
            start: (modes.risk(), modes.distance()),
            limit: problem.divergence_limit(),
        })
    }

    /// $d$, the number of steps in a unit of time.
    pub fn dim(&self) -> f64 {
        self.blocks.dim
    }

    /// Simulates run `index` for `last` steps and calls `observe` with the step $k$, $R$ and $D$ of
    /// each, the start included.
    ///
    /// Use this to look at every step of a long run without keeping it.
    pub fn observe(
        &self,
        seed: u64,
        index: u64,
        last: u64,
        mut observe: impl FnMut(u64, f64, f64),
    ) -> (Stop, Counts) {
        let problem = &self.problem;
        if problem.step().batch().size() > 1 || problem.step().privacy().is_some() {
            return self.observe_batches(seed, index, last, &mut observe);
        }
        let Blocks { dim, lambda, root, lengths, rest, .. } = &self.blocks;
        let mut normals = Normals::new(seed, index, Purpose::Covariates);
        let mut across = scalar_rng(seed, index, Purpose::Lengths);
        let mut noise = scalar_rng(seed, index, Purpose::Noise);
        let mut u = lengths.clone();
        let mut z = vec![0.0; u.len()];
        let mut h = vec![0.0; rest.len()];
        let root_dim = dim.sqrt();
        let mut risk = self.start.0;
        let mut controller = Controller::new(problem.policy());
        observe(0, self.start.0, self.start.1);
        for k in 0..last {
            normals.fill(&mut z);
            let (mut product, mut square) = (0.0, 0.0);
            for ((z, u), root) in z.iter().zip(&u).zip(root) {
                let x = root * z;
                product += x * u;
                square += x * x;
            }
            for ((h, rest), lambda) in h.iter_mut().zip(rest).zip(lambda) {
                *h = lambda * rest.sample(&mut across);
                square += *h;
            }
            let residual = product - problem.step().noise().sample(&mut noise);
            let control = controller.step(k as f64 / dim, risk, residual);
            let norm = square.sqrt();
            let weight = problem.step().reshape(residual, norm, control.c, root_dim, risk);
            let step = control.eta / dim * weight;
            let distance;
            (risk, distance) = self.blocks.advance(&mut u, step, &z, &h, |h, _| step * step * h);
            if let Some(end) = self.diverged(k + 1, risk) {
                return end;
            }
            observe(k + 1, risk, distance);
        }
        (Stop::Finished, Counts { steps: last, ..Counts::default() })
    }

    /// How a run ends if its risk after this many steps is beyond the limit.
    pub(super) fn diverged(&self, steps: u64, risk: f64) -> Option<(Stop, Counts)> {
        let t = steps as f64 / self.dim();
        (risk.is_nan() || risk > self.limit)
            .then(|| (Stop::Diverged { t }, Counts { steps, ..Counts::default() }))
    }
}

impl Simulator for Collapsed {
    fn run(&self, seed: u64, index: u64, times: &[f64]) -> Trajectory {
        let due: Vec<u64> = times.iter().map(|t| steps_until(*t, self.dim())).collect();
        let mut path = Trajectory::with_capacity(times.len());
        let last = due.last().copied().unwrap_or(0);
        let end = self.observe(seed, index, last, |k, r, d| {
            // Several times may fall on one step.
            while due.get(path.risk.len()).is_some_and(|&due| due <= k) {
                path.save(times[path.risk.len()], r, d);
            }
        });
        path.ended(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Gaussian, NoNoise, Noise, StudentT};
    use crate::policy::OpenLoop;
    use crate::spectrum::{Block, Modes, Spectrum, Start};

    fn collapsed(modes: &Modes, noise: impl Noise + 'static, eta: f64, c: f64) -> Collapsed {
        let policy = OpenLoop::constant(eta, c).unwrap();
        Collapsed::new(&Problem::new(modes.clone(), noise, policy).unwrap()).unwrap()
    }

    fn blocks(blocks: &[(f64, u64)], norm: f64) -> Modes {
        let block = |&(value, multiplicity): &(f64, u64)| Block { value, multiplicity };
        let spectrum = Spectrum::from_blocks(&blocks.iter().map(block).collect::<Vec<_>>());
        Modes::new(&spectrum.unwrap(), &Start::Uniform { norm }).unwrap()
    }

    #[test]
    fn the_mean_of_one_step_is_known() {
        // Without clipping, E u_b'² = u_b² − 2sλ_b u_b² + s²λ_b (n_b (2R + σ²) + 2λ_b u_b²) with
        // s = η/d. 200 000 draws of D after one step, 5 standard errors: false alarm 6e-7.
        let modes = blocks(&[(1.0, 4), (0.5, 3), (0.25, 2), (0.125, 1), (0.0, 2)], 1.5);
        let (eta, sigma) = (0.8, 0.4);
        let sgd = collapsed(&modes, Gaussian::new(sigma).unwrap(), eta, f64::INFINITY);
        let (s, second) = (eta / modes.dim(), 2.0 * modes.risk() + sigma * sigma);
        let (mut exact, mut exact_distance) = (0.0, 0.0);
        for mode in modes.modes() {
            let (l, u_sq) = (mode.lambda, 2.0 * mode.energy);
            let moved = s * s * l * (mode.count * second + 2.0 * l * u_sq);
            exact += 0.5 * l * (u_sq - 2.0 * s * l * u_sq + moved);
            exact_distance += u_sq - 2.0 * s * l * u_sq + moved;
        }
        let one_step = 1.0 / modes.dim();
        let runs: Vec<Trajectory> = (0..200_000).map(|i| sgd.run(5, i, &[one_step])).collect();
        let check = |values: Vec<f64>, exact: f64| {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
            assert!((mean - exact).abs() < 5.0 * (variance / n).sqrt(), "{mean} against {exact}");
        };
        check(runs.iter().map(|r| r.risk[0]).collect(), exact);
        check(runs.iter().map(|r| r.distance[0]).collect(), exact_distance);
    }

    #[test]
    fn a_clipped_step_is_never_longer_than_the_threshold() {
        // ‖θ' − θ‖ ≤ (η/d)·c√d, whatever the noise.
        let modes = blocks(&[(1.0, 3), (0.3, 1)], 1.0);
        let sgd = collapsed(&modes, StudentT::new(0.05, 1e10).unwrap(), 0.5, 0.2);
        let longest = 0.5 * 0.2 / modes.dim().sqrt();
        let mut before = 1.0_f64;
        let mut reached = false;
        let (stop, _) = sgd.observe(1, 0, 10_000, |_, _, distance| {
            let step = (distance.sqrt() - before).abs();
            assert!(step <= longest * (1.0 + 1e-9), "{step}");
            reached |= step > 0.9 * longest;
            before = distance.sqrt();
        });
        assert!(reached && stop == Stop::Finished);
    }

    #[test]
    fn runs_are_replayed_and_saved_at_the_step_of_their_time() {
        let modes = blocks(&[(1.0, 7), (0.5, 2)], 1.0);
        let sgd = collapsed(&modes, Gaussian::new(0.5).unwrap(), 0.7, 0.9);
        let mut all = Vec::new();
        sgd.observe(9, 4, 80, |_, r, d| all.push((r, d)));
        let times = [0.0, 0.4, 0.44, 3.0, 3.01, 10.0];
        let run = sgd.run(9, 4, &times);
        assert_eq!(run.times, times);
        for (i, k) in [0, 3, 4, 24, 24, 80].into_iter().enumerate() {
            assert_eq!((run.risk[i], run.distance[i]), all[k]);
        }
        assert_eq!(run, sgd.run(9, 4, &times));
        assert_ne!(run.risk, sgd.run(9, 5, &times).risk);
        assert_ne!(run.risk, sgd.run(8, 4, &times).risk);
        assert!(sgd.run(9, 4, &[]).risk.is_empty());
    }

    #[test]
    fn divergence_is_reported_and_leaves_no_nan() {
        let modes = blocks(&[(1.0, 50)], 1.0);
        let sgd = collapsed(&modes, NoNoise, 4.0, f64::INFINITY);
        let times: Vec<f64> = (0..1000).map(f64::from).collect();
        let run = sgd.run(1, 0, &times);
        let Stop::Diverged { t } = run.stop else { panic!("{}", run.stop) };
        assert!(t > 1.0 && t < 100.0 && run.counts.steps == (t * 50.0).round() as u64);
        assert_eq!(run.times.len(), t.ceil() as usize);
        assert!(run.risk.len() == run.times.len() && run.risk.iter().all(|r| r.is_finite()));
        // One draw of such noise is near the largest number.
        let run = collapsed(&modes, StudentT::new(0.001, 1.0).unwrap(), 0.1, f64::INFINITY);
        assert!(matches!(run.run(1, 0, &times).stop, Stop::Diverged { .. }));
    }

    #[test]
    fn without_error_or_noise_nothing_moves() {
        let modes = blocks(&[(1.0, 3), (0.5, 1)], 0.0);
        let sgd = collapsed(&modes, NoNoise, 1.0, 0.1);
        let run = sgd.run(1, 0, &[0.0, 5.0]);
        assert_eq!((run.risk, run.distance), (vec![0.0; 2], vec![0.0; 2]));
    }

    #[test]
    fn compressed_modes_are_refused_with_a_message() {
        let spectrum = Spectrum::power_law(5000, 0.5).unwrap();
        let modes = Modes::new(&spectrum, &Start::Uniform { norm: 1.0 }).unwrap();
        let modes = modes.compress(1e-9).unwrap();
        let problem = Problem::new(modes, NoNoise, OpenLoop::constant(1.0, 1.0).unwrap()).unwrap();
        let error = Collapsed::new(&problem).unwrap_err();
        assert!(error.to_string().contains("modes are compressed"), "{error}");
    }
}
