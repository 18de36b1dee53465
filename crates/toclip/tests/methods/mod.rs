//! The methods on a problem that is given by its parts.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

use toclip::dynamics::{Collapsed, Hsgd, Ode, Sgd, Volterra};
use toclip::policy::Policy;
use toclip::spectrum::Modes;
use toclip::{Momentum, Problem, Step};

/// Least squares, trained by SGD. Noise and step, policy and shared policy are as good.
pub fn problem<S, P>(modes: &Modes, step: &S, policy: &P) -> Problem
where
    S: Clone + Into<Step<'static>>,
    P: Policy + Clone + 'static,
{
    refusable(modes, step, policy).unwrap()
}

/// The same where the parts may not go together.
pub fn refusable<S, P>(modes: &Modes, step: &S, policy: &P) -> toclip::Result<Problem>
where
    S: Clone + Into<Step<'static>>,
    P: Policy + Clone + 'static,
{
    Problem::new(modes.clone(), step.clone(), policy.clone())
}

/// The same with momentum.
pub fn with_momentum<S, P>(modes: &Modes, step: &S, policy: &P, momentum: Momentum) -> Problem
where
    S: Clone + Into<Step<'static>>,
    P: Policy + Clone + 'static,
{
    problem(modes, step, policy).with_optimizer(momentum).unwrap()
}

macro_rules! methods {
    ($($name:ident $method:ident),*) => {
        $(pub fn $name<S, P>(modes: &Modes, step: &S, policy: &P) -> $method
        where
            S: Clone + Into<Step<'static>>,
            P: Policy + Clone + 'static,
        {
            $method::new(&problem(modes, step, policy)).unwrap()
        })*
    };
}

methods!(ode Ode, volterra Volterra, sgd Sgd, hsgd Hsgd, collapsed Collapsed);

/// The ODE with momentum.
pub fn momentum_ode<S, P>(modes: &Modes, step: &S, policy: &P, momentum: Momentum) -> Ode
where
    S: Clone + Into<Step<'static>>,
    P: Policy + Clone + 'static,
{
    Ode::new(&with_momentum(modes, step, policy, momentum)).unwrap()
}
