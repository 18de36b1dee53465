//! `toclip completions`: completion scripts for shells.

use std::process::ExitCode;

use anyhow::Result;
use clap_complete::Shell;

use crate::output::terminal;

/// Print the completion script of a shell
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toclip completions bash > ~/.local/share/bash-completion/completions/toclip
  toclip completions zsh > ~/.zfunc/_toclip
  toclip completions fish > ~/.config/fish/completions/toclip.fish
  toclip completions powershell >> $PROFILE")]
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
