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
use crate::output::{ProgressLog, TableFile, files, json, result, say, tell, terminal};
use toclip_words::{counted, duration};

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
    if shard.cells_of(sweep.cells()) == 0 {
        // A job array may have more tasks than the sweep has cells.
        tell!("shard {shard} has no cells: the sweep has {}", sweep.cells());
        return Ok(ExitCode::SUCCESS);
    }
    let path = log::path(&files::result_stem(&args.out, &args.sweep), shard);
    // A finished sweep needs no check and no --resume.
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
        write_table(&sweep, &path, args, begin)?;
    } else if args.json || !args.quiet {
        let value = json!({ "cells": wanted, "shard": shard.to_string(), "log": path.display().to_string() });
        let (cells, took) = (counted(wanted, "cell"), duration(begin.elapsed()));
        let text = format!(
            "Shard {shard}: {cells} in {took}\nWhen all shards have finished: toclip sweep merge {}\n",
            args.out.display()
        );
        result::show(args.json, value, &text, &[path])?;
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
    say!("{}: {}", counted(cells, "cell"), axes.join(" × "));
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

fn write_table(sweep: &Sweep, log: &Path, args: &RunArgs, begin: Instant) -> Result<()> {
    let mut saved = log::SavedCells::open(log)?;
    let (finished, all) = (saved.finished(), sweep.cells());
    if finished != all {
        bail!("{} has {finished} of {all} cells; another program changed it", log.display());
    }
    let table = log.with_extension(TableFile::EXTENSION);
    let written = results::write(sweep, &mut |cell| saved.row(cell), &table)?;
    if args.quiet && !args.json {
        return Ok(());
    }
    let took = begin.elapsed();
    let value = json!({
        "cells": written.cells, "failed": written.failed, "diverged": written.diverged,
        "table": table.display().to_string(), "log": log.display().to_string(),
        "seconds": took.as_secs_f64(),
    });
    let text = format!(
        "{} in {}\n{}The log keeps the cells for `toclip sweep export` and `toclip sweep plot`.\n",
        counted(written.cells, "cell"),
        duration(took),
        written.remarks(sweep)
    );
    result::show(args.json, value, &text, &[written.files, vec![log.into()]].concat())
}
