//! Long computations with progress and Ctrl-C.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::convert::{refuse, shown};
use crate::pool::pooled;

/// How often Ctrl-C is checked and progress is reported.
const BEAT: Duration = Duration::from_millis(50);

/// Shared between the computation and the thread that reports its progress.
#[derive(Default)]
pub struct Watch {
    /// Set to stop: runs under way are finished, no other is started.
    pub cancel: AtomicBool,
    /// Finished runs.
    pub done: AtomicU64,
}

/// Does the work on another thread while this one reports progress and checks for Ctrl-C.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Bound<'_, PyAny>>,
    runs: u64,
    work: impl FnOnce(&Watch) -> T + Send,
) -> PyResult<T> {
    if let Some(progress) = progress.as_ref().filter(|progress| !progress.is_callable()) {
        return Err(refuse(format!(
            "progress must be True, False or a function of (finished runs, all runs), not {}",
            shown(progress)
        )));
    }
    let progress = progress.map(Bound::unbind);
    let watch = Watch::default();
    let mut reported = 0;
    let mut report = || -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            let now = watch.done.load(Ordering::Relaxed);
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
            let worker = scope.spawn(|| pooled(|| work(&watch)));
            while !worker.is_finished() {
                thread::park_timeout(BEAT);
                if let Err(error) = report() {
                    watch.cancel.store(true, Ordering::Relaxed);
                    let _ = worker.join();
                    return Err(error);
                }
            }
            let result = worker.join().map_err(|_| refuse("a worker thread failed"))??;
            report().map(|()| result)
        })
    })
}
