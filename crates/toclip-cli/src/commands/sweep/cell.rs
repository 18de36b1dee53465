//! One cell of a sweep as an experiment of its own.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use toclip_sweep::Sweep;

use super::log::{self, SavedCells};
use crate::output::files::Destination;

/// Write a cell as an experiment file, for `toclip run` and `toclip explore`
#[derive(clap::Args)]
pub struct Args {
    /// The sweep file, or the log of the sweep
    sweep: PathBuf,
    /// The number of the cell, as in the column `cell` of the table
    cell: u64,
    /// The experiment file; standard output by default
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let sweep = match args.sweep.extension().is_some_and(|e| e == log::EXTENSION) {
        true => SavedCells::open(&args.sweep)?.sweep,
        false => Sweep::read(&args.sweep)?,
    };
    if args.cell >= sweep.cells() {
        let last = sweep.cells() - 1;
        bail!("cell {} is not there; expected a number from 0 to {last}", args.cell);
    }
    let text = format!("# {}\n{}", sweep.describe(args.cell), sweep.values(args.cell));
    let mut out = Destination::new(args.out.as_deref())?;
    out.write_all(text.as_bytes()).context("cannot write the experiment")?;
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}
