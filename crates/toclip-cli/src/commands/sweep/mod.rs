//! `toclip sweep`: an experiment for many values of its keys.

mod cell;
mod export;
mod log;
mod merge;
mod plot;
mod results;
mod run;

use std::process::ExitCode;

use anyhow::Result;

/// Run an experiment for many values of its keys
///
/// A sweep file is an experiment file with a table `vary`: keys with lists or ranges of values. Every
/// combination is a cell. Cells run on all cores and are saved as they finish; the table is written at the
/// end. It does not depend on the number of threads, on interruptions or on shards.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = include_str!("../../help/sweep.txt"))]
pub struct Args {
    #[command(subcommand)]
    command: Option<SweepCommand>,
    #[command(flatten)]
    run: Option<run::RunArgs>,
}

#[derive(clap::Subcommand)]
enum SweepCommand {
    Export(export::Args),
    Merge(merge::Args),
    Plot(plot::Args),
    Cell(cell::Args),
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    match (args.command, args.run) {
        (Some(SweepCommand::Export(args)), _) => export::run(&args),
        (Some(SweepCommand::Merge(args)), _) => merge::run(&args),
        (Some(SweepCommand::Plot(args)), _) => plot::run(&args),
        (Some(SweepCommand::Cell(args)), _) => cell::run(&args),
        (None, Some(args)) => run::run(&args),
        (None, None) => anyhow::bail!("no sweep given; for example: toclip sweep sweep.toml"),
    }
}
