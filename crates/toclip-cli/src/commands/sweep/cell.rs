//! One cell of a sweep as an experiment of its own.

use std::io::Write;
use std::path::{Path, PathBuf};
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
    let mut values = sweep.values(args.cell);
    values.iter_mut().for_each(|(_, value)| absolute_files(value, sweep.folder()));
    let text = format!("# {}\n{values}", sweep.describe(args.cell));
    let mut out = Destination::new(args.out.as_deref())?;
    out.write_all(text.as_bytes()).context("cannot write the experiment")?;
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Files that the cell names, from the folder of the sweep: the experiment may be written elsewhere.
fn absolute_files(value: &mut toml::Value, folder: &Path) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table.iter_mut() {
                if let (toml::Value::String(name), "file" | "path") = (&*value, key.as_str())
                    && let Ok(path) = std::fs::canonicalize(folder.join(name))
                    && let Some(path) = path.to_str()
                {
                    *value = path.into();
                } else {
                    absolute_files(value, folder);
                }
            }
        }
        toml::Value::Array(list) => list.iter_mut().for_each(|value| absolute_files(value, folder)),
        _ => {}
    }
}
