//! The dynamics: what the risk $R$ and the distance $D$ do along training.

mod simulator;
mod trajectory;

pub use crate::sim::InstructionSet;
pub use simulator::Simulator;
pub use trajectory::{Counts, PathPoint, Stop, Trajectory};
