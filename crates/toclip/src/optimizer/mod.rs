//! What is done with the reshaped gradient.

pub(crate) mod momentum;

use crate::problem::{Combination, Method};
use momentum::Momentum;

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
            (Optimizer::Momentum(_), Method::Stream) => Some("plain SGD there"),
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
}

impl From<Momentum> for Optimizer {
    fn from(momentum: Momentum) -> Self {
        Optimizer::Momentum(momentum)
    }
}
