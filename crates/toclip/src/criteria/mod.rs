//! When clipping helps, where to clip, and how large a learning rate may be.
//!
//! Everything here follows from $\mu$ and $m^{(2)}$:
//!
//! * [CSC](crate::Factors::csc) $= \mu/\nu$ and [CCC](crate::Factors::ccc) $= \mu^2/\nu$ at one
//!   threshold;
//! * [`best_threshold`]: the threshold with the largest CCC;
//! * [`stability_limits`]: the learning rates above which risk or distance grow;
//! * [`momentum_limits`]: the same with momentum;
//! * [`kappa_bounds`]: how far $\mu$ and $\nu$ are from their simple bounds;
//! * [`fisher_limit`]: the limit on any reshaping of the residual.
//!
//! # CCC in statistics
//!
//! Clipped SGD at equal descent has its noise multiplied by $\nu/\mu^2 = 1/\text{CCC}$. That ratio
//! is the asymptotic variance of Huber's M-estimator with threshold $c$ relative to the mean, so
//! CCC is its relative efficiency: 0.95 at 1.345 standard deviations under Gaussian noise, $2/\pi$
//! as $c \to 0$ (the median), and in general $4 f(0)^2 (2R+\sigma^2)$ there.

mod along_risk;
mod best;
mod fisher;
mod kappa;
mod momentum;
mod stability;

pub(crate) use along_risk::BestAlongRisk;
pub(crate) use best::Optimum;
pub use best::{BestThreshold, best_threshold};
pub use fisher::{FisherLimit, fisher_limit};
pub use kappa::{KappaBounds, kappa_bounds};
pub use momentum::{MomentumLimits, momentum_limits};
pub use stability::{StabilityLimits, stability_limits};
