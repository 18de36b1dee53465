//! The dynamics: what the risk $R$ and the distance $D$ do along training.

mod block;
mod collapsed;
mod course;
mod hsgd;
mod ode;
mod simulator;
mod times;
mod trajectory;
mod volterra;

pub use crate::sim::InstructionSet;
pub use collapsed::Collapsed;
pub use hsgd::{Hsgd, Scheme};
pub use ode::Ode;
pub use simulator::Simulator;
pub use times::{linear_times, log_times};
pub use trajectory::{Counts, PathPoint, Stop, Trajectory};
pub use volterra::{Volterra, VolterraSolution};
