//! Whether to clip gradients, where to clip, and what the loss will do.
//!
//! This crate is the theory of clipped SGD in high dimensions, after *To Clip or not to Clip: the
//! Dynamics of SGD with Gradient Clipping in High-Dimensions*, with its misprints corrected, its
//! formulas computed to rounding error, and the iteration simulated exactly. Files, terminal output
//! and plots are in the command `toclip` (crate `toclip-cli`).
//!
//! # The question
//!
//! A linear model sees a stream of samples $(a, b)$ with Gaussian features $a \sim N(0, K)$ and
//! targets $b = \langle a, \theta^\ast \rangle + \epsilon$. Clipped SGD takes one step a sample,
//! $$ \theta_{k+1} = \theta_k - \frac{\eta}{d}\thinspace \operatorname{clip}_{c\sqrt d}\bigl( (\langle
//! a, \theta_k\rangle - b)\thinspace a \bigr), \qquad d = \operatorname{Tr} K, \quad \Vert K\Vert = 1, $$
//! where $\operatorname{clip}_c(g) = g \min(1, c/\Vert g\Vert )$. What does the risk $R = \tfrac12
//! E\langle a, \theta - \theta^\ast \rangle^2$ do, as a function of the time $t = k/d$, and which
//! $c$ makes it fall fastest?
//!
//! # Two numbers
//!
//! In high dimensions $\Vert a\Vert ^2 \approx d$, so clipping the gradient at $c\sqrt d$ is
//! clipping the scalar residual $X = \sqrt{2R}\thinspace z - \epsilon$ at $c$, and its effect is
//! given by two moments ([`Moments`]):
//! $$ \mu_c(R) = P(|X| \le c), \qquad m^{(2)}_c(R) = E\[\min(X^2, c^2)\]. $$
//! $\mu$ is the share of the descent that is kept (Stein's lemma turns the expectation of the
//! clipped gradient into the probability of not being clipped), $m^{(2)}$ the strength of the noise
//! that is left. [`noise`] computes both for each distribution of $\epsilon$; [`Factors`] adds the
//! variance reduction $\nu = m^{(2)}/(2R+\sigma^2)$.
//!
//! ```
//! use toclip::{Factors, noise::Laplace};
//! let noise = Laplace::new(1.0)?;
//! let at = Factors::new(&noise, 0.5, 0.9)?;
//! assert!((at.mu - 0.5010494).abs() < 1e-7);
//! assert!((at.ccc()? - 0.9465702).abs() < 1e-7);
//! # Ok::<(), toclip::Error>(())
//! ```
//!
//! # Should I clip?
//!
//! Two ratios decide ([`criteria`]). Clipping raises the largest stable learning rate by the factor
//! CSC $= \mu/\nu$. And since it multiplies descent by $\mu$ and variance by $\nu$, at equal
//! descent it divides the variance by CCC $= \mu^2/\nu$: **with the rate raised from $\eta$ to
//! $\eta/\mu$, clipping beats unclipped SGD at $\eta$ exactly where CCC > 1**. Under Gaussian noise no
//! threshold has that. Under noise with outliers many do; [`criteria::best_threshold`] finds the best,
//! and [`verdict`] says whether it is worth it.
//!
//! ```
//! use toclip::{criteria::best_threshold, noise::{Gaussian, StudentT}};
//! assert_eq!(best_threshold(&Gaussian::new(1.0)?, 0.1)?.c, f64::INFINITY); // do not clip
//! let best = best_threshold(&StudentT::from_sigma(2.5, 1.0)?, 0.1)?;
//! assert!(best.c < 1.0 && best.ccc > 1.9); // clip: nearly twice the efficiency
//! # Ok::<(), toclip::Error>(())
//! ```
//!
//! # What will the loss do?
//!
//! With $v_i = \langle \theta - \theta^\ast, w_i \rangle^2/2$ along the eigenvector $w_i$ of $K$
//! and its eigenvalue $\lambda_i$,
//! $$ \dot v_i = -2\eta\lambda_i\mu\thinspace v_i + \frac{\eta^2}{d}\thinspace \lambda_i\thinspace \frac{m^{(2)}}{2},
//! \qquad R = \sum_i \lambda_i v_i, \qquad \Vert \theta - \theta^\ast\Vert ^2 = 2\sum_i v_i. $$
//! [`dynamics::Ode`] solves it, [`dynamics::Volterra`] the equivalent integral equation, which
//! splits the risk into gradient flow and the contribution of finite steps. [`dynamics::Sgd`] is
//! the iteration itself, [`dynamics::Hsgd`] its diffusion limit; by Theorem 1 all agree up to
//! $d^{-1/2}$, which [`convergence`] measures. Eigenvalues and start come from [`spectrum`], the
//! learning rate and the threshold from [`policy`], bands over many runs from [`ensemble`].
//!
//! ```
//! use toclip::Problem;
//! use toclip::dynamics::{Ode, linear_times};
//! use toclip::noise::StudentT;
//! use toclip::policy::OpenLoop;
//! use toclip::spectrum::{Modes, Spectrum, Start};
//!
//! // Figure 1b of the paper: Cauchy noise, under which unclipped SGD does not converge.
//! let modes = Modes::new(&Spectrum::power_law(500, 0.2)?, &Start::Uniform { norm: 1.0 })?;
//! let problem = Problem::new(modes, StudentT::new(1.0, 0.5)?, OpenLoop::constant(0.6, 0.4)?)?;
//! let path = Ode::new(&problem)?.solve(&linear_times(15.0, 61)?)?;
//! assert!((path.risk[60] - 0.0703).abs() < 1e-3);
//! # Ok::<(), toclip::Error>(())
//! ```
//!
//! # Batches
//!
//! Where a step averages $B$ samples and clips their mean, $\mu$ is no longer the fraction that is
//! not clipped: [`Batch`] has the formulas, and a [`Step`] carries a noise and its batch to every
//! function of this crate.
//!
//! ```
//! use toclip::{Batch, Factors, Step, noise::StudentT};
//! let noise = StudentT::new(2.2, 0.5)?;
//! let step = Step::new(&noise).with_batch(Batch::mean(32)?)?;
//! let at = Factors::new(step, 0.1, 0.6)?;
//! assert!(at.mu > 0.5); // though nearly every batch is clipped
//! # Ok::<(), toclip::Error>(())
//! ```
//!
//! # Classification
//!
//! For losses other than the squared error the same argument gives two numbers per mode, and three
//! coefficients in place of $\mu$ and $m^{(2)}$: [`model`] has logistic and Huber
//! regression, their ODE, their simulation, and the bias that clipping causes.
//!
//! ```
//! use toclip::model::{Logistic, fixed_point};
//! // A tenth of the labels flipped: SGD ends at half of the teacher's norm, clipped at 0.3 near all of it.
//! let model = Logistic::new(0.1)?;
//! assert!((fixed_point(&model, 9.0, f64::INFINITY)?.kappa - 0.5).abs() < 0.05);
//! assert!((fixed_point(&model, 9.0, 0.3)?.kappa - 1.0).abs() < 0.2);
//! # Ok::<(), toclip::Error>(())
//! ```
//!
//! # Limits
//!
//! The formulas are for Gaussian features and batches small against $d$, exact as $d \to \infty$.
//! For other features they are a good approximation when many of them matter at once
//! ([`dynamics::Covariates`] measures how good). Finite $d$ adds fluctuations of size $d^{-1/2}$,
//! which an ensemble shows.

pub mod convergence;
pub mod criteria;
pub mod dynamics;
pub mod ensemble;
pub mod model;
pub mod monitor;
pub mod noise;
pub mod policy;
pub mod privacy;
pub mod problem;
pub mod spectrum;
pub mod threshold_rules;
pub mod tuning;
pub mod verdict;

mod error;
mod factors;
mod numbers;
mod numerics;
mod optimizer;
mod parallel;
mod rule;
mod sim;

pub use error::{Error, Result};
pub use factors::Factors;
pub use factors::batch::{Batch, SquaredResidual};
pub use factors::combination::StepError;
pub use factors::kernel::{Moments, clipped_normal};
pub use factors::step::Step;
pub use numerics::student::student_critical;
pub use numerics::tridiagonal::tridiagonal_eigenvalues;
pub use optimizer::Optimizer;
pub use optimizer::momentum::{Memory, Momentum, OnSkip};
pub use problem::Problem;
pub use rule::groups::{Group, GroupError, Groups};
pub use rule::{Rule, Smooth};

/// The Rust example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
