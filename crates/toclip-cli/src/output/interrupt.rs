//! Ctrl-C in commands that keep what they have finished.

use crate::output::tell;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

/// Set by Ctrl-C.
pub static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// What a shell reports for a process that Ctrl-C ended.
pub const EXIT_INTERRUPTED: u8 = 130;

/// From now on the first Ctrl-C asks to stop, after the `parts` under way where work has such, and
/// the second stops at once; what is finished is kept either way.
pub fn listen(parts: Option<&'static str>) -> Result<()> {
    let handler = move || {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(EXIT_INTERRUPTED));
        }
        if let Some(parts) = parts {
            tell!("\nfinishing the {parts} under way; Ctrl-C again stops at once");
        }
    };
    ctrlc::set_handler(handler).context("cannot listen to Ctrl-C")
}
