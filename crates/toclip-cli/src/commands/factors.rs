//! `toclip factors`: the reduction factors at a point, along a curve, or for a whole table.

use std::process::ExitCode;

/// The reduction factors μ and ν, and the criteria CSC and CCC
#[derive(clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
