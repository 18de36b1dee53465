//! Printing to the terminal or a pipe, which may be closed or full.

use std::fmt::Arguments;
use std::io::{ErrorKind, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Prints a line to standard error, like `eprintln!`, without its panic if standard error is closed.
#[macro_export]
macro_rules! tell {
    ($($part:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($part)*);
    }};
}
pub use tell;

/// Prints. If standard output fails, ends the program: quietly when a pipe was closed, as by `head`,
/// otherwise with a message and a failure.
pub fn print(text: Arguments<'_>) {
    print_bytes(text.to_string().as_bytes());
}

/// Prints bytes in the same way.
pub fn print_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = out.write_all(bytes).and_then(|()| out.flush()) {
        if error.kind() == ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        tell!("error: cannot write the output: {error}");
        std::process::exit(1);
    }
}

/// Prints a line, like `println!`, without its panic.
#[macro_export]
macro_rules! say {
    () => { $crate::output::terminal::print(format_args!("\n")) };
    ($($part:tt)*) => { $crate::output::terminal::print(format_args!("{}\n", format_args!($($part)*))) };
}
pub use say;

/// The width and the colours of the terminal.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// Characters in a line.
    pub width: usize,
    colour: bool,
}

impl Screen {
    /// That of standard output: without colour where it is no terminal or `NO_COLOR` is set.
    pub fn of_stdout() -> Self {
        let columns = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let choice = anstream::AutoStream::choice(&std::io::stdout());
        let colour = choice != anstream::ColorChoice::Never;
        Self { width: columns.unwrap_or(96).clamp(40, 100), colour }
    }

    /// The text in a style.
    pub fn paint(&self, style: anstyle::Style, text: &str) -> String {
        match self.colour {
            true => format!("{style}{text}{style:#}"),
            false => text.to_owned(),
        }
    }
}

/// A header and rows as lines with aligned columns, indented by two spaces. `align` has a letter for
/// each column: `l` for strings, `r` for numbers.
pub fn columns<const N: usize>(
    align: &str,
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let header =
        Some(header.map(String::from)).filter(|header| header.iter().any(|c| !c.is_empty()));
    let rows: Vec<[String; N]> = header.into_iter().chain(rows).collect();
    let width = |cell: &String| cell.chars().count();
    let widths: [usize; N] =
        std::array::from_fn(|i| rows.iter().map(|row| width(&row[i])).max().unwrap_or(0));
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).zip(align.chars());
        let line: String = cells
            .map(|((cell, width), align)| match align {
                'r' => format!("  {cell:>width$}"),
                _ => format!("  {cell:<width$}"),
            })
            .collect();
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// A progress bar over `len` pieces, such as "runs" or "bytes", on a terminal unless `quiet`; its
/// message, if it gets one, comes first.
pub fn progress_bar(len: u64, pieces: &str, quiet: bool) -> ProgressBar {
    let target = match quiet || !std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr(),
    };
    let count = match pieces {
        "bytes" => "{bytes}/{total_bytes}, {bytes_per_sec}".to_owned(),
        _ => format!("{{pos}}/{{len}} {pieces}"),
    };
    let bar = ProgressBar::with_draw_target(Some(len), target);
    match ProgressStyle::with_template(&format!("{{msg}}{{wide_bar}} {count}, {{eta}} left")) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = || [["μ", "0.25"], ["a long name", ""]].map(|row| row.map(String::from));
        let text = columns("lr", ["name", "value"], rows());
        assert_eq!(text, "  name         value\n  μ             0.25\n  a long name\n");
        assert_eq!(columns("lr", ["", ""], rows()).lines().count(), 2, "no header");
    }
}
