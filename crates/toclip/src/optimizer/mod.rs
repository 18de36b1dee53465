//! What is done with the reshaped gradient.

pub(crate) mod momentum;

use crate::dynamics::solver::Tolerance;
use crate::dynamics::{Hsgd, Trajectory};
use crate::error::Result;
use crate::factors::step::Step;
use crate::problem::{Combination, Method, Problem};
use momentum::{BufferGains, Momentum, MomentumOde, MomentumPath};

/// What is done with the gradient after the [rule](crate::Rule) has reshaped it.
///
/// ```
/// use toclip::{Memory, Momentum, Optimizer};
/// let torch = Optimizer::from(Momentum::heavy_ball(Memory::Beta(0.9))?);
/// assert_eq!(torch.name(), "momentum");
/// assert_eq!(Optimizer::default(), Optimizer::Sgd);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Optimizer {
    /// $\theta_{k+1} = \theta_k - \frac\eta d\thinspace\hat g_k$.
    #[default]
    Sgd,
    /// A buffer of past gradients: heavy ball or average.
    Momentum(Momentum),
}

impl Optimizer {
    /// Its name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Optimizer::Sgd => "SGD",
            Optimizer::Momentum(_) => "momentum",
        }
    }

    /// The momentum, if that is what it is.
    pub fn momentum(&self) -> Option<&Momentum> {
        match self {
            Optimizer::Momentum(momentum) => Some(momentum),
            Optimizer::Sgd => None,
        }
    }

    /// What to use instead of a method that does not support this optimizer; `None` where it does.
    pub(crate) fn instead_of(&self, method: Method) -> Option<&'static str> {
        match (self, method) {
            (Optimizer::Momentum(_), Method::Volterra) => Some("the ODE"),
            (Optimizer::Momentum(_), Method::Collapsed) => Some("full C-SGD"),
            _ => None,
        }
    }

    /// Why it cannot be simulated in this dimension.
    pub(crate) fn beyond_dimension(&self, dim: f64) -> Option<Combination> {
        match self {
            Optimizer::Sgd => None,
            Optimizer::Momentum(momentum) => momentum
                .delta_above(dim)
                .map(|delta| Combination::DeltaAboveDimension { delta, dim }),
        }
    }

    /// The path of the ODE of a problem; `None` for plain SGD, whose system is that of
    /// [`Ode`](crate::dynamics::Ode).
    pub(crate) fn solve(
        &self,
        problem: &Problem,
        tolerance: Tolerance,
        target: Option<f64>,
        keep_path: bool,
        times: &[f64],
    ) -> Option<Result<Trajectory>> {
        match self {
            Optimizer::Sgd => None,
            Optimizer::Momentum(momentum) => {
                let ode = MomentumOde { problem, momentum, tolerance, target, keep_path };
                Some(ode.solve(times))
            }
        }
    }

    /// A path of C-HSGD.
    pub(crate) fn diffuse(&self, hsgd: &Hsgd, seed: u64, index: u64, times: &[f64]) -> Trajectory {
        match self {
            Optimizer::Sgd => hsgd.follow(hsgd.path(seed, index), times),
            Optimizer::Momentum(momentum) => {
                hsgd.follow(MomentumPath::new(hsgd, momentum, seed, index), times)
            }
        }
    }

    /// What enters the buffer of a run of C-SGD; `None` for plain SGD, which has none.
    pub(crate) fn buffer(&self, step: &Step<'_>, dim: f64) -> Option<BufferGains> {
        match self {
            Optimizer::Sgd => None,
            Optimizer::Momentum(momentum) => Some(BufferGains::new(momentum, step, dim)),
        }
    }
}

impl From<Momentum> for Optimizer {
    fn from(momentum: Momentum) -> Self {
        Optimizer::Momentum(momentum)
    }
}
