//! Training logs for `toclip`: reads gradient norms from them and gives advice about clipping.
//!
//! The code is in the order in which data passes through it:
//!
//! 1. `files/` finds the files of a log, and settings beside them ([`find_logs`]);
//! 2. `read/` reads a log of any supported format in one pass and bounded memory ([`read()`]);
//! 3. `series/` keeps the steps in order, at most a million of them ([`load`]);
//! 4. `findings/` detects what a reader of the numbers must know ([`Finding`]);
//! 5. `advice/` estimates and decides ([`advise()`]);
//! 6. `wording/` turns findings and advice into sentences, and nothing else does.

mod advice;
mod error;
mod files;
mod findings;
mod names;
mod read;
mod series;
mod wording;

pub use advice::{
    Action, Advice, AdviceOptions, Basis, CurrentThreshold, Hint, NormDistribution, Optimizer,
    Recommendation, RuleOutcome, Spikes, ThresholdEffect, ThresholdOrigin, advise, running_scales,
};
pub use error::{Error, Result};
pub use files::{LogFiles, find_logs, join_event_files, load_files, read_files};
pub use findings::Finding;
pub use read::{Column, Format, ReadOptions, ReadSummary, Role, Row, SettingSources, read};
pub use series::{Log, Point, load};
pub use wording::{Answer, CodeLine, Wording};
