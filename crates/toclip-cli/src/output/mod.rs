//! Everything a command needs to show or keep its results. Commands hold none of this themselves.
//!
//! | to | use |
//! |---|---|
//! | write a file whole or not at all | [`files::write`], [`files::NewFile`] for a stream |
//! | print a result, as text or JSON, and the files that were written | [`result::show`] |
//! | write to a file if one is given, else to standard output | [`files::Destination`] |
//! | write a folder of files that a later run may replace | [`ReportFolder`] |
//! | save a plot as SVG or PNG | [`plots::save`], [`plots::write`] for both |
//! | write columns as CSV or Parquet | [`Table`], [`TableFile`] block by block |
//! | write a number into CSV or JSON | [`toclip_words::exact`], [`json::number`] |
//! | show a number, interval, percentage or duration to a person | [`toclip_words`] |
//! | print to the terminal | [`say!`], [`tell!`], [`json::print`], [`terminal::columns`] |
//! | show progress | [`progress_bar`] |
//! | keep finished work on disk and resume | [`ProgressLog`] |
//! | stop on Ctrl-C | [`interrupt`] |

pub mod files;
pub mod interrupt;
pub mod json;
pub mod plots;
pub mod result;
pub mod terminal;

#[cfg(feature = "parquet")]
mod parquet;
mod progress_log;
mod report_folder;
mod table;
mod table_file;

pub use progress_log::{Identity, ProgressLog, SavedLog, fnv1a};
pub use report_folder::ReportFolder;
pub use table::Table;
pub use table_file::TableFile;
pub use terminal::{progress_bar, say, tell};
