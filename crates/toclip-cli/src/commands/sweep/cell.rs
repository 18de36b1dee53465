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
#[command(after_help = include_str!("../../help/sweep-cell.txt"))]
pub struct Args {
    /// The sweep file, or the log of the sweep
    sweep: PathBuf,
    /// The number of the cell, as in the column `cell` of the table
    #[arg(value_parser = cell_number)]
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
        bail!("no cell {}; expected a number from 0 to {last}", args.cell);
    }
    let mut values = sweep.values(args.cell);
    let folder = sweep.folder();
    values.iter_mut().try_for_each(|(key, value)| absolute_files(key, value, folder))?;
    let text = format!("# {}\n{values}", sweep.describe(args.cell));
    let mut out = Destination::new(args.out.as_deref())?;
    out.write_all(text.as_bytes()).context("cannot write the experiment")?;
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn cell_number(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| "expected an integer: the number of a cell, from 0".into())
}

/// Files that the cell names, from the root: the experiment may be written elsewhere.
fn absolute_files(key: &str, value: &mut toml::Value, folder: &Path) -> Result<()> {
    match value {
        toml::Value::Table(table) => {
            table.iter_mut().try_for_each(|(key, value)| absolute_files(key, value, folder))
        }
        toml::Value::Array(list) => {
            list.iter_mut().try_for_each(|value| absolute_files(key, value, folder))
        }
        toml::Value::String(name) if key == "file" || key == "path" => {
            let path = std::fs::canonicalize(folder.join(&*name)).with_context(|| {
                let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                format!("cannot find {name}, which the cell reads, in {}", folder.display())
            })?;
            *name = path.to_string_lossy().into_owned();
            Ok(())
        }
        _ => Ok(()),
    }
}
