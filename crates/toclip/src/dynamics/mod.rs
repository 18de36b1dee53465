//! The dynamics of the risk $R$ and the distance $D$ during training.

pub(crate) mod block;
mod collapsed;
mod collapsed_batch;
mod covariates;
pub(crate) mod diffusion;
mod flat;
mod hsgd;
mod mode_factors;
pub(crate) mod ode;
mod sgd;
mod simulated_path;
pub(crate) mod simulator;
pub(crate) mod solver;
pub(crate) mod step_control;
mod stream;
pub(crate) mod times;
mod trajectory;
mod volterra;

pub use crate::sim::InstructionSet;
pub use collapsed::Collapsed;
pub use covariates::Covariates;
pub use hsgd::{Hsgd, Scheme};
pub use mode_factors::effective_moments;
pub use ode::Ode;
pub use sgd::Sgd;
pub use simulator::Simulator;
pub use stream::{DataError, Stream, StreamData};
pub use times::{TimesError, linear_times, log_times};
pub use trajectory::{Counts, PathPoint, Stop, Trajectory};
pub use volterra::{Volterra, VolterraSolution};
