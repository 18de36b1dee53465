//! Threads that belong to this process.
//!
//! A fork, with which Python's `multiprocessing` starts its workers on Linux, copies the memory of
//! rayon's pool but none of its threads: work that is handed to it there is never done.

use std::process;
use std::sync::OnceLock;

use pyo3::prelude::*;

use crate::convert::refuse;

/// The process that loaded the module, whose pool it is.
static HOME: OnceLock<u32> = OnceLock::new();

/// Remembers this process; called when the module is loaded.
pub fn remember() {
    HOME.get_or_init(process::id);
}

/// Does the work in rayon's pool; after a fork in a new one.
pub fn pooled<T: Send>(work: impl FnOnce() -> T + Send) -> PyResult<T> {
    if *HOME.get_or_init(process::id) == process::id() {
        return Ok(work());
    }
    let pool = rayon::ThreadPoolBuilder::new().build();
    let pool = pool.map_err(|error| refuse(format!("no threads can be started: {error}")))?;
    Ok(pool.install(work))
}
