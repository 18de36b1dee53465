//! Printing to the terminal or a pipe, which may be closed or full.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Prints a line to standard error, like `eprintln!`, without its panic: what nobody reads is lost.
macro_rules! tell {
    ($($part:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($part)*);
    }};
}
pub(crate) use tell;

/// Prints, and ends the program if nobody can read on: quietly when a pipe was closed, as `head`
/// does, with a message and a failure when the text could not be written.
pub fn print(text: Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = out.write_fmt(text).and_then(|()| out.flush()) {
        if error.kind() == ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        tell!("error: cannot write the output: {error}");
        std::process::exit(1);
    }
}

/// Prints a line, like `println!`, without its panic.
macro_rules! say {
    () => { $crate::output::terminal::print(format_args!("\n")) };
    ($($part:tt)*) => { $crate::output::terminal::print(format_args!("{}\n", format_args!($($part)*))) };
}
pub(crate) use say;
