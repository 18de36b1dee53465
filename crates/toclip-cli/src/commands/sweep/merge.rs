//! Shards put together: the same table as the sweep in one process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use toclip_sweep::Shard;

use super::log::{self, SavedCells};
use super::results;
use crate::output::{TableFile, result};

/// Logs that are kept open while they are read.
const MOST_OPEN: usize = 200;

/// Put the shards of a sweep together
///
/// The table and the log have the same bytes as those of one process that ran the cells in order.
#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/sweep-merge.txt"))]
pub struct Args {
    /// Folders with the logs of shards, or the logs themselves
    #[arg(required = true, value_name = "DIR")]
    from: Vec<PathBuf>,
    /// Folder for the table and the merged log
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Merge even if shards or cells are missing
    #[arg(long)]
    partial: bool,
    /// Print nothing
    #[arg(long, short)]
    quiet: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let paths = logs(&args.from)?;
    let many = paths.len() > MOST_OPEN;
    let mut parts = Vec::new();
    for path in paths {
        let mut part = SavedCells::open(&path)?;
        if many {
            part.close();
        }
        parts.push(part);
    }
    // The log of a whole sweep, such as the result of an earlier merge, is not a shard.
    parts.retain(|part| !part.shard.is_whole());
    let stem = same_sweep(&parts)?;
    no_duplicates(&parts)?;
    if let Some((missing, them)) = missing(&parts)
        && !args.partial
    {
        bail!("{missing}; run {them}, or merge what is there with --partial");
    }
    let Some(first) = parts.first() else { bail!("no shards to merge") };
    let (sweep, inputs) = (first.sweep.clone(), first.inputs.clone());
    let of = first.shard.of();
    let mut by_index: BTreeMap<u64, SavedCells> =
        parts.into_iter().map(|part| (part.shard.index() - 1, part)).collect();
    let path = log::path(&args.out.join(&stem), Shard::WHOLE);
    let has = |cell: u64| by_index.get(&(cell % of)).is_some_and(|part| part.has(cell));
    let mut merged = log::replace(&path, &inputs, sweep.folder(), has)?;
    let table = path.with_extension(TableFile::EXTENSION);
    let mut row = |cell: u64| {
        let Some(part) = by_index.get_mut(&(cell % of)) else { return Ok(None) };
        let row = part.row(cell)?;
        if many {
            part.close();
        }
        if let Some(row) = &row {
            merged.add(&row.encode())?;
        }
        Ok(row)
    };
    let written = results::write(&sweep, &mut row, &table);
    if written.is_err() {
        // Half a log would be taken for an interrupted sweep.
        let _ = std::fs::remove_file(&path);
    }
    let written = written?;
    if !args.quiet {
        let (cells, all, remarks) = (written.cells, sweep.cells(), written.remarks(&sweep));
        let files = [written.files, vec![path]].concat();
        result::show(
            false,
            Value::Null,
            &format!("{cells} of {all} cells merged\n{remarks}"),
            &files,
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The logs among the arguments, and those in the folders among them.
fn logs(from: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let is_log = |path: &Path| path.extension().is_some_and(|e| e == log::EXTENSION);
    let mut found = Vec::new();
    for path in from {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path)
            .with_context(|| format!("cannot read the folder {}", path.display()))?;
        for entry in entries {
            let entry =
                entry.with_context(|| format!("cannot read the folder {}", path.display()))?;
            if is_log(&entry.path()) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found.dedup();
    if found.is_empty() {
        let from: Vec<String> = from.iter().map(|path| path.display().to_string()).collect();
        bail!(
            "no logs of a sweep in {}; expected files such as NAME.3-of-64.sweep",
            from.join(", ")
        );
    }
    Ok(found)
}

/// Refuses shards of different sweeps or of different numbers; the name of the merged files.
fn same_sweep(parts: &[SavedCells]) -> Result<String> {
    let Some(first) = parts.first() else {
        bail!("found whole sweeps only; expected shards such as NAME.3-of-64.sweep");
    };
    let comparable = |part: &SavedCells| {
        let mut inputs = part.inputs.clone();
        inputs["shard"] = Value::Null;
        inputs
    };
    for other in &parts[1..] {
        let (a, b) = (first.path.display(), other.path.display());
        if comparable(other) != comparable(first) {
            bail!("{a} and {b} are shards of different sweeps; merge each sweep separately");
        }
        if other.shard.of() != first.shard.of() {
            bail!(
                "{a} is shard {} and {b} is shard {}; expected parts of the same N",
                first.shard,
                other.shard
            );
        }
    }
    let name = first.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let ending = format!(".{}-of-{}.{}", first.shard.index(), first.shard.of(), log::EXTENSION);
    Ok(name.strip_suffix(&ending).map_or_else(|| "merged".into(), String::from))
}

fn no_duplicates(parts: &[SavedCells]) -> Result<()> {
    for (i, part) in parts.iter().enumerate() {
        if let Some(before) = parts[..i].iter().find(|other| other.shard == part.shard) {
            bail!(
                "found shard {} twice: {} and {}; keep one of them",
                part.shard,
                before.path.display(),
                part.path.display()
            );
        }
    }
    Ok(())
}

/// The shards that are missing or not finished, in words, and the pronoun for them.
fn missing(parts: &[SavedCells]) -> Option<(String, &'static str)> {
    let first = parts.first()?;
    let cells = first.sweep.cells();
    let absent: Vec<String> = first
        .shard
        .all()
        .filter(|shard| shard.cells_of(cells) > 0 && !parts.iter().any(|part| part.shard == *shard))
        .map(|shard| shard.index().to_string())
        .collect();
    let unfinished: Vec<String> = parts
        .iter()
        .filter(|part| part.finished() < part.wanted())
        .map(|part| format!("{} has {} of {} cells", part.shard, part.finished(), part.wanted()))
        .collect();
    let mut said = Vec::new();
    if !absent.is_empty() {
        let (noun, verb) = if absent.len() == 1 { ("shard", "is") } else { ("shards", "are") };
        said.push(format!("{noun} {} of {} {verb} missing", list(&absent), first.shard.of()));
    }
    if !unfinished.is_empty() {
        said.push(format!("shard {}", list(&unfinished)));
    }
    let them = if absent.len() + unfinished.len() == 1 { "it" } else { "them" };
    (!said.is_empty()).then(|| (said.join("; "), them))
}

/// The first twenty, and how many more.
fn list(items: &[String]) -> String {
    match items.len() {
        0..=20 => items.join(", "),
        more => format!("{} and {} more", items[..20].join(", "), more - 20),
    }
}
