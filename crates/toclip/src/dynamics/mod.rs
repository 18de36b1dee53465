//! The dynamics: what the risk $R$ and the distance $D$ do along training.

mod block;
mod collapsed;
mod hsgd;
mod simulator;
mod trajectory;

pub use crate::sim::InstructionSet;
pub use collapsed::Collapsed;
pub use hsgd::{Hsgd, Scheme};
pub use simulator::Simulator;
pub use trajectory::{Counts, PathPoint, Stop, Trajectory};
