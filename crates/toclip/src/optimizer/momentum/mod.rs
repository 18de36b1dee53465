//! Momentum: a step remembers the gradients before it.
//!
//! - `convention`: heavy ball and average;
//! - `solve`, `radau_step`, `chunk`, `radau`: the ODE;
//! - `gains`: the iteration itself;
//! - `diffusion`, `transition`: the stochastic differential equation.
//!
//! A mode of eigenvalue $\lambda$ and multiplicity $n$ has three numbers, sums over its $n$
//! directions of
//! $$ a = E(\theta - \theta^\ast)^2, \qquad b = E(\theta - \theta^\ast)M, \qquad y = E M^2, $$
//! with $M$ the average of gradients, and $\eta$ the rate of plain SGD that moves as far, in either
//! convention. In the limit of large $d$ at fixed $\delta = (1-\beta)d$
//! $$ \dot a = -2\eta p\thinspace b, \qquad \dot b = -\eta p\thinspace y + \delta(\mu\lambda\thinspace a - p\thinspace b), \qquad
//! \dot y = 2\delta(\mu\lambda\thinspace b - p\thinspace y) + \delta^2\lambda n\thinspace \tfrac{m^{(2)}}{d}, $$
//! and $R = \frac12\sum\lambda a$. Here $p = 1$, except where steps whose gradient is skipped are
//! [not made](crate::OnSkip::NotMade): there $p = P(|X| \le c)$ is the share of steps that are made.
//! The moments of the gradient over the steps that are made, $E\[\hat g; \text{made}\] =
//! \mu\lambda\theta$ and $E\[\hat g^2; \text{made}\] = \lambda m^{(2)}$, are those of the rule; buffer
//! and weights decay and move with probability $p$ only.

mod chunk;
mod convention;
mod diffusion;
mod forces;
mod gains;
mod radau;
mod radau_step;
mod solve;
mod transition;

pub use convention::{Memory, Momentum, OnSkip};
pub(crate) use diffusion::MomentumPath;
pub(crate) use gains::BufferGains;
pub(crate) use solve::MomentumOde;
