//! The dynamics: what the risk $R$ and the distance $D$ do along training.

mod trajectory;

pub use trajectory::{Counts, PathPoint, Stop, Trajectory};
