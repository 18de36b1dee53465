//! The table of a sweep at any time, from its log.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

use super::{log::SavedCells, results};
use crate::output::{TableFile, result};

/// Write the finished cells of a sweep as a table, even while it runs
#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/sweep-export.txt"))]
pub struct Args {
    /// The log of the sweep, such as results/NAME.sweep
    log: PathBuf,
    /// The table, .parquet or .csv; beside the log by default
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print nothing
    #[arg(long, short)]
    quiet: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let beside = || args.log.with_extension(TableFile::EXTENSION);
    let table = args.out.clone().unwrap_or_else(beside);
    TableFile::check_name(&table)?;
    let mut saved = SavedCells::open(&args.log)?;
    let sweep = saved.sweep.clone();
    let written = results::write(&sweep, &mut |cell| saved.row(cell), &table)?;
    if !args.quiet {
        let (cells, wanted, remarks) = (written.cells, saved.wanted(), written.remarks(&sweep));
        let text = format!("{cells} of {wanted} cells written\n{remarks}");
        result::show(false, Value::Null, &text, &written.files)?;
    }
    Ok(ExitCode::SUCCESS)
}
