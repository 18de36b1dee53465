//! `toclip reproduce`: the paper made executable.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use crate::arguments;
use crate::output::result;
use crate::report::{self, Verdict};
use crate::study::reproduce::{Request, RunSizes, reproduce};

/// Reproduce the paper: its figures, a check of each claim, and a report
///
/// Draws the figures of the paper, those on real data if the data is available, and compares each
/// claim of the paper with a number. Writes a folder with the report (report.html, one file that
/// needs no network), the plots (SVG and PNG), the data (CSV) and the experiment files. A folder that
/// contains an earlier report is replaced once the new one is complete; any other folder is refused.
///
/// The exit code is 1 if a claim fails. A claim that differs from the printed paper for a known
/// reason, which the report gives, is not a failure.
#[derive(clap::Args)]
#[command(after_help = include_str!("../help/reproduce.txt"))]
pub struct Args {
    /// Figures or theorems of the paper [default: all]
    #[arg(value_name = "FIGURE")]
    figures: Vec<String>,
    /// Folder for the report
    #[arg(long, value_name = "DIR", default_value = "toclip-out")]
    out: PathBuf,
    /// Fewer runs and smaller dimensions
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// More runs and larger dimensions; takes minutes
    #[arg(long)]
    full: bool,
    /// Seed of all random numbers
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = arguments::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Print the report as JSON instead of the table
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    let report = reproduce(&Request {
        figures: &args.figures,
        sizes: match (args.quick, args.full) {
            (true, _) => RunSizes::quick(args.seed),
            (_, true) => RunSizes::full(args.seed),
            _ => RunSizes::default(args.seed),
        },
        out: &args.out,
    })?;
    let text = format!("{}\n\n", report::terminal(&report).trim_end());
    result::show(args.json, report::json(&report), &text, &[args.out.join("report.html")])?;
    let failed = report.count(Verdict::Fails) > 0;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
