//! Ctrl-C: commands keep what they have finished, or leave nothing behind.

use crate::output::tell;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

/// Set by Ctrl-C.
pub static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The exit status of a process that Ctrl-C ended, by the convention of shells.
pub const EXIT_INTERRUPTED: u8 = 130;

/// From now on the first Ctrl-C asks to stop after the `parts` in progress, if the work has parts, and
/// the second stops at once. Finished work is kept either way.
pub fn listen(parts: Option<&'static str>) -> Result<()> {
    let handler = move || {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(EXIT_INTERRUPTED));
        }
        if let Some(parts) = parts {
            tell!("\nfinishing the {parts} in progress; press Ctrl-C again to stop at once");
        }
    };
    ctrlc::set_handler(handler).context("cannot handle Ctrl-C")
}

static WRITING: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C ends the command and leaves nothing behind, until [`start_writing`].
pub fn exit_unless_writing() -> Result<()> {
    let handler = || {
        if !WRITING.load(Ordering::Relaxed) {
            tell!("\ninterrupted: nothing was written");
            std::process::exit(i32::from(EXIT_INTERRUPTED));
        }
    };
    ctrlc::set_handler(handler).context("cannot handle Ctrl-C")
}

/// The result is being written, which takes a moment: Ctrl-C no longer ends the command.
pub fn start_writing() {
    WRITING.store(true, Ordering::Relaxed);
}
