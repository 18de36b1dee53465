//! Running the cells of a sweep, or of a shard of it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Result, bail};
use rayon::prelude::*;
use serde_json::json;
use toclip::ensemble::on_threads;
use toclip_sweep::{Shard, Sweep};

use super::{log, results};
use crate::arguments;
use crate::output::interrupt::{self, EXIT_INTERRUPTED, INTERRUPTED};
use crate::output::numbers::duration;
use crate::output::{ProgressLog, files, json, say, tell, terminal};

#[derive(clap::Args)]
pub struct RunArgs {
    /// The sweep, a TOML file
    sweep: PathBuf,
    /// Folder for the results
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Continue an interrupted sweep; the table will be the same, bit for bit
    #[arg(long)]
    resume: bool,
    /// Run one of N parts, counted from 1; put them together with `toclip sweep merge`
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// Threads; all cores by default. Does not change the results
    #[arg(long, value_name = "N", value_parser = arguments::threads)]
    threads: Option<usize>,
    /// Only check the file and count the cells
    #[arg(long)]
    check: bool,
    /// Show no progress and no summary
    #[arg(long, short)]
    quiet: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &RunArgs) -> Result<ExitCode> {
    let begin = Instant::now();
    let sweep = Sweep::read(&args.sweep)?;
    let shard = args.shard.unwrap_or(Shard::WHOLE);
    let stem = args.sweep.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if shard.cells_of(sweep.cells()) == 0 {
        // An array may have more tasks than the sweep has cells.
        tell!("shard {shard} has no cells: the sweep has {}", sweep.cells());
        return Ok(ExitCode::SUCCESS);
    }
    let path = log::path(&args.out, &stem, shard);
    // To a finished sweep there is nothing to add, so it needs no check and no permission to continue.
    let complete = path.exists()
        && log::SavedCells::open(&path).is_ok_and(|saved| saved.finished() == saved.wanted());
    if args.check || !complete {
        check(&sweep, args)?;
    }
    if args.check {
        return print_check(&sweep, shard, args);
    }
    interrupt::listen(Some("cells"))?;
    let (log, finished) = log::open(&path, &sweep, shard, args.resume || complete)?;
    let saved = run_cells(&sweep, shard, log, &finished, args)?;
    let wanted = shard.cells_of(sweep.cells());
    if saved < wanted {
        tell!(
            "interrupted: {saved} of {wanted} cells are saved in {}; to continue:\n  toclip sweep {} --out {}{} --resume",
            path.display(),
            args.sweep.display(),
            args.out.display(),
            args.shard.map(|shard| format!(" --shard {shard}")).unwrap_or_default(),
        );
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    }
    if shard.is_whole() {
        let extension = if cfg!(feature = "parquet") { "parquet" } else { "csv" };
        let table = args.out.join(format!("{stem}.{extension}"));
        write_table(&sweep, &path, &table, args, begin)?;
    } else if args.json {
        json::print(&json!({ "cells": wanted, "shard": shard.to_string(), "log": path }))?;
    } else if !args.quiet {
        say!(
            "Shard {shard}: {} in {}, saved in {}",
            counted(wanted),
            duration(begin.elapsed()),
            path.display()
        );
        say!("When all shards have finished: toclip sweep merge {}", args.out.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds every cell before the first one runs.
fn check(sweep: &Sweep, args: &RunArgs) -> Result<()> {
    let bar =
        terminal::progress_bar(sweep.checked(), "cells", args.quiet).with_message("checking ");
    let checked = on_threads(args.threads, || sweep.check(&|| bar.inc(1)))?;
    bar.finish_and_clear();
    Ok(checked?)
}

fn print_check(sweep: &Sweep, shard: Shard, args: &RunArgs) -> Result<ExitCode> {
    let cells = shard.cells_of(sweep.cells());
    if args.json {
        json::print(&json!({ "cells": cells, "columns": sweep.columns() }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let axes: Vec<String> = sweep
        .axes()
        .iter()
        .map(|axis| {
            let keys: Vec<&str> = axis.keys.iter().map(|key| &*key.key).collect();
            format!("{} ({})", keys.join(" with "), axis.len())
        })
        .collect();
    say!("{}: {}", counted(cells), axes.join(" × "));
    say!("Columns: {}", sweep.columns().join(", "));
    Ok(ExitCode::SUCCESS)
}

/// Runs the cells that are not finished; the number that are afterwards.
fn run_cells(
    sweep: &Sweep,
    shard: Shard,
    log: ProgressLog,
    finished: &[u64],
    args: &RunArgs,
) -> Result<u64> {
    let mut done = vec![false; sweep.cells() as usize];
    for cell in finished {
        if let Some(done) = done.get_mut(*cell as usize) {
            *done = true;
        }
    }
    let before = done.iter().filter(|done| **done).count() as u64;
    let pending = shard.cells_of(sweep.cells()) - before;
    let bar = terminal::progress_bar(pending + before, "cells", args.quiet).with_position(before);
    bar.reset_eta();
    let log = Mutex::new(log);
    let failure = Mutex::new(None);
    let run = |cell: u64, threads: Option<usize>| {
        let row = (!INTERRUPTED.load(Ordering::Relaxed))
            .then(|| sweep.run_on(cell, threads, &INTERRUPTED))
            .flatten()?;
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = log.add(&row.encode()) {
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            return None;
        }
        bar.inc(1);
        Some(())
    };
    let wanted = |cell: &u64| shard.holds(*cell) && !done[*cell as usize];
    on_threads(args.threads, || {
        // Few cells with many runs each share the cores within a cell.
        let ensembles = sweep.methods.iter().any(|method| method.is_ensemble());
        if ensembles && pending < 2 * rayon::current_num_threads() as u64 {
            (0..sweep.cells()).filter(wanted).try_for_each(|cell| run(cell, args.threads))
        } else {
            (0..sweep.cells())
                .into_par_iter()
                .filter(wanted)
                .try_for_each(|cell| run(cell, Some(1)))
        }
    })?;
    let saved = bar.position();
    bar.finish_and_clear();
    if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    log.into_inner().unwrap_or_else(PoisonError::into_inner).sync()?;
    Ok(saved)
}

fn write_table(
    sweep: &Sweep,
    log: &Path,
    table: &Path,
    args: &RunArgs,
    begin: Instant,
) -> Result<()> {
    let mut saved = log::SavedCells::open(log)?;
    if saved.finished() != sweep.cells() {
        bail!(
            "{} has {} of {} cells; another program changed it",
            log.display(),
            saved.finished(),
            sweep.cells()
        );
    }
    let written = results::write(sweep, &mut |cell| saved.row(cell), table)?;
    if args.json {
        return json::print(&json!({
            "cells": written.cells, "failed": written.failed, "diverged": written.diverged,
            "table": table, "log": log, "seconds": begin.elapsed().as_secs_f64(),
        }));
    }
    if args.quiet {
        return Ok(());
    }
    say!("{} in {}", counted(written.cells), duration(begin.elapsed()));
    written.say(sweep);
    say!("{}", files::wrote(table));
    if sweep.keep.contains(&toclip_sweep::Keep::Curves) {
        say!("{}", files::wrote(results::curves_beside(table)));
    }
    say!("{} (log of the cells, for `toclip sweep export` and `plot`)", files::wrote(log));
    Ok(())
}

fn counted(cells: u64) -> String {
    format!("{cells} {}", if cells == 1 { "cell" } else { "cells" })
}

impl results::Written {
    /// Says what did not go as in the other cells.
    pub fn say(&self, sweep: &Sweep) {
        if self.diverged > 0 {
            say!("Diverged: {}", counted(self.diverged));
        }
        if let Some((cell, why)) = &self.first_failure {
            let first = if self.failed == 1 { ":" } else { "; the first is" };
            say!("Failed: {}{first} {}: {why}", counted(self.failed), sweep.describe(*cell));
        }
    }
}
