//! `toclip convergence`: the rate of Theorem 1, measured.

use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
