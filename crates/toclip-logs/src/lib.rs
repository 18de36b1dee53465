//! Training logs for `toclip`: reads gradient norms from them and gives advice about clipping.
//!
//! The code is in the order in which data passes through it:
//!
//! 1. `files/` finds the files of a log, and settings in files next to them ([`find_logs`]);
//! 2. `read/` reads a log of any supported format in one pass and bounded memory ([`read()`]);
//! 3. `series/` keeps the steps in order, at most half a million of them ([`load`]);
//! 4. `findings/` detects problems of the training and of the log ([`Finding`]), and estimates the
//!    effect of thresholds ([`Analysis`]);
//! 5. `recommendation/` decides what to do ([`Recommendation`], [`advise()`]);
//! 6. `wording/` turns findings and recommendations into sentences, and nothing else does.

mod advice;
mod error;
mod files;
mod findings;
mod names;
mod options;
mod read;
mod recommendation;
mod run_context;
mod series;
mod wording;

pub use advice::{Advice, Hint, advise};
pub use error::{Error, Result};
pub use files::{LogFiles, find_logs, join_event_files, load_files, read_files};
pub use findings::{
    Analysis, CurrentThreshold, Finding, LayerSummary, NormDistribution, NormScaleCause,
    RuleOutcome, Spike, ThresholdEffect, median, running_scales,
};
pub use options::{AdviceOptions, OptimizerKind};
pub use read::{Format, LogColumn, LogRow, ReadOptions, ReadSummary, Role, SettingSources, read};
pub use recommendation::{Action, Because, Confidence, RateExperiment, Recommendation};
pub(crate) use run_context::RunContext;
pub use run_context::ThresholdOrigin;
pub use series::{LayerNorms, Log, LogPoint, load};
pub use wording::{AdviceSection, CodeBlock, Framework, Tone, Verdict};
