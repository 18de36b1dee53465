//! Experiments, as the commands keep and show them.
//!
//! The grammar of an experiment, the problem it describes and the running of it are the crate
//! `toclip-experiment`; here are the progress on disk, and tables, plots and summaries of results.

mod criteria;
mod model_report;
mod run_log;
mod trajectory_table;

pub mod figure;
pub mod identity;
pub mod report;

pub use criteria::{
    CriteriaReport, Extremum, criteria_chart, criteria_figure, criteria_table, extremes, settings,
};
pub use model_report::{ModelReport, model_figure, model_table};
pub use report::{ExperimentReport, band_edges, share_between};
pub use run_log::open_run_log;
pub use toclip_experiment::*;
pub use trajectory_table::trajectory_table;
