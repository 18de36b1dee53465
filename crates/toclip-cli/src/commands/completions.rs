//! `toclip completions`: completion scripts for shells.

use std::process::ExitCode;

use anyhow::Result;
use clap_complete::Shell;

use crate::output::terminal;

/// Print the completion script of a shell
#[derive(clap::Args)]
#[command(after_help = include_str!("../help/completions.txt"))]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Runs the command; `cli` is the whole command line.
pub fn run(args: Args, mut cli: clap::Command) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli, "toclip", &mut script);
    terminal::print_bytes(&script);
    Ok(ExitCode::SUCCESS)
}
