//! The finished cells of a sweep, on disk as they come.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use toclip_sweep::{Row, Shard, Sweep};

use crate::output::{Identity, ProgressLog, SavedLog, files, fnv1a};

const COMMAND: &str = "toclip sweep";
/// The extension of a log.
pub const EXTENSION: &str = "sweep";

/// The log of a sweep or a shard of it: `STEM.sweep`, `STEM.3-of-64.sweep`.
pub fn path(stem: &Path, shard: Shard) -> PathBuf {
    let shard = match shard.is_whole() {
        true => String::new(),
        false => format!("{}-of-{}.", shard.index(), shard.of()),
    };
    files::with_ending(stem, &format!("{shard}{EXTENSION}"))
}

/// Opens a log to append to, with the cells that it has.
pub fn open(
    path: &Path,
    sweep: &Sweep,
    shard: Shard,
    resume: bool,
) -> Result<(ProgressLog, Vec<u64>)> {
    let identity = Identity { command: COMMAND, pieces: "cells", inputs: inputs(sweep, shard)? };
    ProgressLog::open_from(path, &identity, Some(&whole(sweep.folder())), resume, Row::cell_of)
}

/// A new log of the whole sweep for the cells that `has` accepts. An earlier one is replaced if that loses no
/// cell, as when the shards are merged again.
pub fn replace(
    path: &Path,
    inputs: &Value,
    folder: &Path,
    has: impl Fn(u64) -> bool,
) -> Result<ProgressLog> {
    let mut inputs = inputs.clone();
    inputs["shard"] = Shard::WHOLE.to_string().into();
    let identity = Identity { command: COMMAND, pieces: "cells", inputs };
    // Opening it takes the lock: no other process may be writing to what is replaced.
    let (mut log, cells) =
        ProgressLog::open_from(path, &identity, Some(&whole(folder)), true, Row::cell_of)?;
    if !cells.into_iter().all(has) {
        bail!("{} contains cells that are in no shard; choose another --out", path.display());
    }
    log.clear()?;
    Ok(log)
}

/// The folder from the root, for commands that run elsewhere.
fn whole(folder: &Path) -> PathBuf {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.into())
}

/// Everything that the cells depend on.
fn inputs(sweep: &Sweep, shard: Shard) -> Result<Value> {
    let text = sweep.to_toml();
    let values: toml::Table = toml::from_str(&text).context("cannot write the sweep as TOML")?;
    // Their content may change.
    let hashes: BTreeMap<String, String> = sweep
        .named_files()
        .into_iter()
        .map(|name| {
            let path = sweep.folder().join(&name);
            let bytes =
                std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok((name, format!("{:016x}", fnv1a(&bytes))))
        })
        .collect::<Result<_>>()?;
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "sweep": values,
        // Infinite numbers are missing in JSON.
        "toml": text,
        "files": hashes,
        "shard": shard.to_string(),
    }))
}

/// A log that is read, while or after it is written.
#[derive(Debug)]
pub struct SavedCells {
    /// The file.
    pub path: PathBuf,
    /// The sweep this log belongs to.
    pub sweep: Sweep,
    /// Which part of it.
    pub shard: Shard,
    /// Everything that the cells depend on.
    pub inputs: Value,
    /// The finished cells in order, each with the place of its record.
    cells: Vec<(u64, u64)>,
    /// `None` while it is closed.
    log: Option<SavedLog>,
}

impl SavedCells {
    /// Opens a log.
    pub fn open(path: &Path) -> Result<Self> {
        let mut log = SavedLog::open(path, COMMAND)?;
        let inputs = log.inputs();
        let damaged = || format!("the header of {} is damaged", path.display());
        let text = inputs.get("toml").and_then(Value::as_str).with_context(damaged)?;
        let values: toml::Table = toml::from_str(text).ok().with_context(damaged)?;
        let shard = inputs.get("shard").and_then(Value::as_str).and_then(|text| text.parse().ok());
        let shard = shard.with_context(damaged)?;
        // Where the sweep file was; beside the log if that folder is gone.
        let beside = || path.parent().unwrap_or(Path::new("")).to_owned();
        let folder = log.folder().filter(|folder| folder.is_dir()).unwrap_or_else(beside);
        let sweep = Sweep::of_values(values, &folder)?;
        let mut cells = Vec::new();
        let mut start = log.end;
        while let Some(cell) = log.read_next()?.and_then(Row::cell_of) {
            cells.push((cell, start));
            start = log.end;
        }
        cells.sort_unstable();
        cells.dedup_by_key(|(cell, _)| *cell);
        Ok(SavedCells { path: path.into(), sweep, shard, inputs, cells, log: Some(log) })
    }

    /// Whether a cell is finished.
    pub fn has(&self, cell: u64) -> bool {
        self.cells.binary_search_by_key(&cell, |(cell, _)| *cell).is_ok()
    }

    /// How many cells are finished.
    pub fn finished(&self) -> u64 {
        self.cells.len() as u64
    }

    /// How many cells it will have.
    pub fn wanted(&self) -> u64 {
        self.shard.cells_of(self.sweep.cells())
    }

    /// Closes the file until the next row is read: a system allows a process some thousand open ones.
    pub fn close(&mut self) {
        self.log = None;
    }

    /// The row of a cell, if it is finished.
    pub fn row(&mut self, cell: u64) -> Result<Option<Row>> {
        let Ok(at) = self.cells.binary_search_by_key(&cell, |(cell, _)| *cell) else {
            return Ok(None);
        };
        let log = match &mut self.log {
            Some(log) => log,
            closed => closed.insert(SavedLog::open(&self.path, COMMAND)?),
        };
        let row = log.read_at(self.cells[at].1)?.and_then(Row::decode);
        row.map(Some).with_context(|| format!("cell {cell} in {} is damaged", self.path.display()))
    }
}
