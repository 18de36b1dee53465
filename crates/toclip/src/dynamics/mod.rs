//! The dynamics: what the risk $R$ and the distance $D$ do along training.

mod covariates;
mod record;
mod sgd;
mod simulator;
mod stream;
mod trajectory;

pub use crate::sim::InstructionSet;
pub use covariates::Covariates;
pub use sgd::Sgd;
pub use simulator::Simulator;
pub use stream::{Data, Stream};
pub use trajectory::{Counts, PathPoint, Stop, Trajectory};
