//! A training problem: all that theory and simulation need to know, checked once.

mod combination;

pub(crate) use combination::check_stream;
pub use combination::{Combination, Method};

use crate::error::{Error, Result};
use crate::factors::batch::Batch;
use crate::factors::step::Step;
use crate::model::{Model, Objective};
use crate::noise::NoNoise;
use crate::optimizer::Optimizer;
use crate::policy::Policy;
use crate::spectrum::Modes;
use std::sync::Arc;

/// What is trained, and how: spectrum and start, model, noise, batch, rule, optimizer and policy.
///
/// | part | choices | default |
/// |---|---|---|
/// | [`modes`](Self::modes) | any spectrum and start | |
/// | [`objective`](Self::objective) | least squares, or a generalised linear [`Model`] | least squares |
/// | [`step`](Self::step) | [noise](crate::noise), [`Batch`], [`Rule`](crate::Rule), [privacy](crate::privacy) | one sample, clipped |
/// | [`optimizer`](Self::optimizer) | [`Optimizer`] | SGD |
/// | [`policy`](Self::policy) | any [`Policy`]: $\eta$ and $c$ | |
///
/// A problem is checked when it is built: a combination for which there is no theory is refused there,
/// with a [`Combination`] that says what is possible. Methods ([`Ode`](crate::dynamics::Ode),
/// [`Sgd`](crate::dynamics::Sgd), …) take a problem and refuse what they in particular do not support.
/// Parts are shared, so a clone costs next to nothing.
///
/// ```
/// use toclip::Problem;
/// use toclip::dynamics::{Ode, Sgd, Simulator};
/// use toclip::noise::StudentT;
/// use toclip::policy::OpenLoop;
/// use toclip::spectrum::{Modes, Spectrum, Start};
///
/// // Figure 1b of the paper: Cauchy noise, clipped at 0.4.
/// let modes = Modes::new(&Spectrum::power_law(500, 0.2)?, &Start::Uniform { norm: 1.0 })?;
/// let problem = Problem::new(modes, StudentT::new(1.0, 0.5)?, OpenLoop::constant(0.6, 0.4)?)?;
/// let predicted = Ode::new(&problem)?.solve(&[15.0])?;
/// let measured = Sgd::new(&problem)?.run(1, 0, &[15.0]);
/// assert!((measured.risk[0] / predicted.risk[0] - 1.0).abs() < 0.5);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Problem {
    modes: Arc<Modes>,
    objective: Objective,
    step: Step<'static>,
    optimizer: Optimizer,
    policy: Arc<dyn Policy>,
}

impl Problem {
    /// Streaming least squares, trained by SGD.
    ///
    /// A noise converts into the step of the paper: one sample, clipped. Give a [`Step`] for batches,
    /// other rules and privacy.
    ///
    /// # Errors
    /// [`Error::Combination`] for parts that do not go together.
    pub fn new(
        modes: impl Into<Arc<Modes>>,
        step: impl Into<Step<'static>>,
        policy: impl Policy + 'static,
    ) -> Result<Self> {
        Problem {
            modes: modes.into(),
            objective: Objective::LeastSquares,
            step: step.into(),
            optimizer: Optimizer::Sgd,
            policy: Arc::new(policy),
        }
        .checked()
    }

    /// Streaming classification or another generalised linear model, trained by SGD.
    ///
    /// ```
    /// use toclip::Problem;
    /// use toclip::dynamics::Ode;
    /// use toclip::model::Logistic;
    /// use toclip::policy::OpenLoop;
    /// use toclip::spectrum::{Modes, Spectrum, Start};
    ///
    /// let (teacher, start) = (Start::Uniform { norm: 3.0 }, Start::Uniform { norm: 0.0 });
    /// let modes = Modes::with_teacher(&Spectrum::isotropic(500)?, &teacher, &start)?;
    /// let problem = Problem::of_model(modes, Logistic::new(0.1)?, OpenLoop::constant(2.0, 0.4)?)?;
    /// let path = Ode::new(&problem)?.solve(&[0.0, 20.0])?;
    /// let loss = path.measures.unwrap();
    /// assert!(loss[1].loss < loss[0].loss);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Combination`] for parts that do not go together, among them
    /// modes without a teacher.
    pub fn of_model(
        modes: impl Into<Arc<Modes>>,
        model: impl Model + 'static,
        policy: impl Policy + 'static,
    ) -> Result<Self> {
        Problem {
            modes: modes.into(),
            objective: Objective::Model(Arc::new(model)),
            step: Step::new(Arc::new(NoNoise)),
            optimizer: Optimizer::Sgd,
            policy: Arc::new(policy),
        }
        .checked()
    }

    /// The same with another optimizer.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_optimizer(self, optimizer: impl Into<Optimizer>) -> Result<Self> {
        Problem { optimizer: optimizer.into(), ..self }.checked()
    }

    /// The same with another policy.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_policy(&self, policy: impl Policy + 'static) -> Result<Self> {
        Problem { policy: Arc::new(policy), ..self.clone() }.checked()
    }

    /// The same with another step.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_step(&self, step: impl Into<Step<'static>>) -> Result<Self> {
        Problem { step: step.into(), ..self.clone() }.checked()
    }

    /// The same with steps that average several samples.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_batch(self, batch: Batch) -> Result<Self> {
        let step = self.step.clone().with_batch(batch)?;
        Problem { step, ..self }.checked()
    }

    /// The same from another spectrum or start, for example [compressed](Modes::compress).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_modes(&self, modes: impl Into<Arc<Modes>>) -> Result<Self> {
        Problem { modes: modes.into(), ..self.clone() }.checked()
    }

    fn checked(self) -> Result<Self> {
        combination::check(&self).map_err(Error::Combination)?;
        Ok(self)
    }

    /// Spectrum and start, with $\Vert K\Vert = 1$.
    pub fn modes(&self) -> &Modes {
        &self.modes
    }

    /// Least squares, or another model.
    pub fn objective(&self) -> &Objective {
        &self.objective
    }

    /// The generalised linear model; `None` for least squares.
    pub fn model(&self) -> Option<&dyn Model> {
        self.objective.model()
    }

    /// Noise, batch, rule and privacy.
    pub fn step(&self) -> &Step<'static> {
        &self.step
    }

    /// What is done with the reshaped gradient.
    pub fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    /// $\eta$ and $c$.
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// The policy, to be kept.
    pub fn shared_policy(&self) -> Arc<dyn Policy> {
        Arc::clone(&self.policy)
    }

    /// $d$, the number of steps in a unit of time.
    pub fn dim(&self) -> f64 {
        self.modes.dim()
    }

    /// $R(0)$.
    pub fn risk(&self) -> f64 {
        self.modes.risk()
    }

    /// The risk above which a path counts as diverged: ten orders of magnitude above the start, so that
    /// no path that recovers is cut off.
    pub(crate) fn divergence_limit(&self) -> f64 {
        let (risk, step) = (self.risk(), &self.step);
        let c = self.policy.at(0.0, risk).c;
        let finite = |x: f64| if x.is_finite() { x } else { 0.0 };
        let noise = finite(step.largest_m2(risk, c)).max(finite(step.private_variance(c)));
        1e10 * risk.max(noise).max(f64::MIN_POSITIVE)
    }
}

impl<'a> From<&'a Problem> for Step<'a> {
    fn from(problem: &'a Problem) -> Self {
        Step::from(&problem.step)
    }
}
