//! Experiments, as the command keeps and shows them.
//!
//! What an experiment says, the problem it makes and the running of it are the crate
//! `toclip-experiment`; here are the progress on disk and what the curves show.

mod report;
mod trajectory_table;

pub mod figure;
pub mod identity;
pub mod store;

pub use report::Report;
pub use store::Store;
pub use toclip_experiment::*;
pub use trajectory_table::trajectory_table;
