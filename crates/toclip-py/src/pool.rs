//! A thread pool that still works after a fork.
//!
//! A fork, by which Python's `multiprocessing` starts its workers on Linux, copies the memory of
//! rayon's pool but none of its threads, so that work given to that pool would never finish.

use std::process;
use std::sync::OnceLock;

use pyo3::prelude::*;

use crate::convert::refuse;

/// The process that loaded the module and owns the pool.
static HOME: OnceLock<u32> = OnceLock::new();

/// Records this process; called when the module is loaded.
pub fn remember() {
    HOME.get_or_init(process::id);
}

/// Does the work in rayon's pool, or after a fork in a new pool.
pub fn pooled<T: Send>(work: impl FnOnce() -> T + Send) -> PyResult<T> {
    if *HOME.get_or_init(process::id) == process::id() {
        return Ok(work());
    }
    let pool = rayon::ThreadPoolBuilder::new().build();
    let pool = pool.map_err(|error| refuse(format!("cannot start threads: {error}")))?;
    Ok(pool.install(work))
}
