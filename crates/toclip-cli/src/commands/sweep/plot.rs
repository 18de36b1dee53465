//! Pictures of a sweep: a heat map over two keys, or lines over one.

mod picture;
mod select;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use serde_json::Value;

use super::log::SavedCells;
use crate::output::{plots, result};
use select::Selection;

/// Draw the results of a sweep as a heat map or as lines
///
/// Two varying keys give a heat map, one gives lines. Fix every other key with
/// --where, or minimise over it with --minimize.
#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/sweep-plot.txt"))]
pub struct Args {
    /// The log of the sweep, such as results/NAME.sweep
    log: PathBuf,
    /// The key on the horizontal axis; the first that varies by default
    #[arg(long, value_name = "KEY")]
    x: Option<String>,
    /// The key on the vertical axis of a heat map; the second that varies by default
    #[arg(long, value_name = "KEY", conflicts_with = "lines")]
    y: Option<String>,
    /// Draw lines instead, one for each value of this key
    #[arg(long, value_name = "KEY")]
    lines: Option<String>,
    /// The column to draw; the first by default
    #[arg(long, value_name = "COLUMN")]
    value: Option<String>,
    /// Take the smallest value over these keys
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    minimize: Vec<String>,
    /// Divide by the smallest value among the cells with this setting, such as clip=none
    #[arg(long, value_name = "KEY=VALUE")]
    relative_to: Option<String>,
    /// Only cells with this setting, such as batch=4
    #[arg(long = "where", value_name = "KEY=VALUE")]
    only: Vec<String>,
    /// The picture, .svg or .png; both beside the log by default
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut saved = SavedCells::open(&args.log)?;
    if saved.finished() == 0 {
        bail!("{} has no finished cells yet", args.log.display());
    }
    let selection = Selection::new(args, &saved.sweep)?;
    let drawn = selection.values(&mut saved)?;
    let figure = picture::figure(&saved.sweep, &selection, &drawn)?;
    let written = match &args.out {
        Some(path) => {
            plots::save(&figure, path)?;
            vec![path.clone()]
        }
        None => plots::write(&figure, &args.log.with_extension(""))?,
    };
    result::show(false, Value::Null, "", &written)?;
    Ok(ExitCode::SUCCESS)
}
