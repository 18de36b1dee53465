//! Long computations: threads, progress and Ctrl-C.

use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::convert::{refuse, shown};

/// How often Ctrl-C is checked and progress is reported.
const BEAT: Duration = Duration::from_millis(50);

/// Shared between the computation and the thread that reports its progress.
#[derive(Default)]
pub struct Shared {
    /// Set to stop: runs under way are finished, no other is started.
    pub cancel: AtomicBool,
    /// Finished runs.
    pub done: AtomicU64,
}

impl Shared {
    /// Counts one more finished run.
    pub fn tick(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Does the work on another thread while this one reports progress and checks for Ctrl-C.
pub fn in_background<T: Send>(
    py: Python<'_>,
    progress: Option<Bound<'_, PyAny>>,
    runs: u64,
    work: impl FnOnce(&Shared) -> T + Send,
) -> PyResult<T> {
    if let Some(progress) = progress.as_ref().filter(|progress| !progress.is_callable()) {
        return Err(refuse(format!(
            "progress must be True, False or a function of (finished runs, all runs), not {}",
            shown(progress)
        )));
    }
    let progress = progress.map(Bound::unbind);
    let shared = &Shared::default();
    let mut reported = 0;
    let mut report = || -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            let now = shared.done.load(Ordering::Relaxed);
            match &progress {
                Some(progress) if now != reported => {
                    reported = now;
                    progress.call1(py, (now, runs)).map(drop)
                }
                _ => Ok(()),
            }
        })
    };
    py.detach(|| {
        thread::scope(|scope| {
            let (send, receive) = mpsc::channel();
            let worker = scope.spawn(move || send.send(in_pool(|| work(shared))));
            let result = loop {
                match receive.recv_timeout(BEAT) {
                    Ok(result) => break result.and_then(|found| report().map(|()| found)),
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(error) = report() {
                            shared.cancel.store(true, Ordering::Relaxed);
                            break Err(error);
                        }
                    }
                    // The worker has panicked.
                    Err(RecvTimeoutError::Disconnected) => {
                        break Err(refuse("a worker thread failed"));
                    }
                }
            };
            // Waits for runs that are under way.
            let _ = worker.join();
            result
        })
    })
}

/// The process that loaded the module and owns the pool.
static HOME: OnceLock<u32> = OnceLock::new();

/// Records this process; called when the module is loaded.
pub fn remember() {
    HOME.get_or_init(process::id);
}

/// Does the work in rayon's pool, or after a fork in a new pool.
///
/// A fork, by which Python's `multiprocessing` starts its workers on Linux, copies the memory of
/// rayon's pool but none of its threads, so that work given to that pool would never finish.
pub fn in_pool<T: Send>(work: impl FnOnce() -> T + Send) -> PyResult<T> {
    if *HOME.get_or_init(process::id) == process::id() {
        return Ok(work());
    }
    let pool = rayon::ThreadPoolBuilder::new().build();
    let pool = pool.map_err(|error| refuse(format!("cannot start threads: {error}")))?;
    Ok(pool.install(work))
}
