//! What an ensemble refuses.

/// Runs without statistics, and threads that do not start.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EnsembleError {
    /// No runs.
    #[error("statistics of an ensemble need at least one run")]
    NoRuns,
    /// A run of another experiment.
    #[error(
        "run {index} has {saved} saved times and the ensemble {expected}: they belong to different \
         experiments"
    )]
    OtherTimes {
        /// The index of the run.
        index: u64,
        /// The times that it has.
        saved: usize,
        /// The times of the ensemble.
        expected: usize,
    },
    /// Sketches that count in different bins.
    #[error("sketches of accuracies {one} and {other} cannot be merged")]
    Accuracies {
        /// The accuracy of the one.
        one: f64,
        /// That of the other.
        other: f64,
    },
    /// The operating system did not start the threads.
    #[error("{threads} threads could not be started: {reason}")]
    Threads {
        /// Their number.
        threads: usize,
        /// Its message.
        reason: String,
    },
}
