//! Everything a command needs to show or keep its results. Commands hold none of this themselves.
//!
//! | to | use |
//! |---|---|
//! | write a file whole or not at all | [`files::write`], [`files::NewFile`] for a stream |
//! | write a folder of files that a later run may replace | [`ReportFolder`] |
//! | save a plot as SVG or PNG | [`plots::save`] |
//! | write columns as CSV or Parquet | [`Table`] |
//! | write a number into CSV or JSON | [`numbers::exact`], [`json::number`] |
//! | show a number, interval, percentage or duration to a person | [`numbers`] |
//! | print to the terminal | [`say!`], [`tell!`], [`terminal::columns`] |
//! | keep finished work on disk and resume | [`ProgressLog`] |
//! | stop on Ctrl-C | [`interrupt`] |

pub mod files;
pub mod interrupt;
pub mod json;
pub mod numbers;
pub mod plots;
pub mod terminal;

mod parquet;
mod progress_log;
mod report_folder;
mod table;

pub(crate) use progress_log::fnv1a;
pub use progress_log::{Identity, ProgressLog};
pub use report_folder::ReportFolder;
pub use table::Table;
pub(crate) use terminal::{say, tell};
