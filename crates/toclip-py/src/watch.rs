//! Long work that can be watched and interrupted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::convert::{refuse, shown};
use crate::pool::pooled;

/// How often Ctrl-C is looked for and progress is told.
const BEAT: Duration = Duration::from_millis(50);

/// What the work tells and is told.
#[derive(Default)]
pub struct Watch {
    /// Set to stop: runs under way are finished, no other is begun.
    pub cancel: AtomicBool,
    /// Runs finished.
    pub done: AtomicU64,
}

/// Does the work on a thread of its own, while this one listens to Python.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Bound<'_, PyAny>>,
    runs: u64,
    work: impl FnOnce(&Watch) -> T + Send,
) -> PyResult<T> {
    if let Some(progress) = progress.as_ref().filter(|progress| !progress.is_callable()) {
        return Err(refuse(format!(
            "progress must be True, False or a function of the runs done and all runs, not {}",
            shown(progress)
        )));
    }
    let progress = progress.map(Bound::unbind);
    let watch = Watch::default();
    let mut told = 0;
    let mut tell = || -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            let now = watch.done.load(Ordering::Relaxed);
            match &progress {
                Some(progress) if now != told => {
                    told = now;
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
                if let Err(error) = tell() {
                    watch.cancel.store(true, Ordering::Relaxed);
                    let _ = worker.join();
                    return Err(error);
                }
            }
            let result = worker.join().map_err(|_| refuse("a thread of the work failed"))??;
            tell().map(|()| result)
        })
    })
}
