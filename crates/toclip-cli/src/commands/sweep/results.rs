//! The tables of a sweep: one row a cell, and the curves where they are kept.

use std::path::{Path, PathBuf};

use anyhow::Result;
use toclip_sweep::{CellCurve, Keep, KeyKind, KeyValues, Row, Sweep};

use crate::output::{Table, TableFile};
use toclip_words::counted;

/// Rows of a block, which a Parquet file has as a group.
const BLOCK: usize = 10_000;
const CURVE_ROWS: usize = 100_000;

/// The files of a sweep and the cells in them.
#[derive(Debug, Default, Clone)]
pub struct WrittenCells {
    /// The table, and that of the curves.
    pub files: Vec<PathBuf>,
    /// The cells in the table.
    pub cells: u64,
    /// The cells that failed.
    pub failed: u64,
    /// The first that failed, and why.
    pub first_failure: Option<(u64, String)>,
    /// The cells of which a curve diverged.
    pub diverged: u64,
}

/// Writes the rows of all cells that have one, in order. Equal rows give equal bytes.
pub fn write(
    sweep: &Sweep,
    row: &mut dyn FnMut(u64) -> Result<Option<Row>>,
    table: &Path,
) -> Result<WrittenCells> {
    let metadata = [
        ("toclip.sweep", sweep.to_toml()),
        ("toclip.version", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let mut file = TableFile::create(table, &cell_table(sweep, &[]), &metadata)?;
    let mut curve_file = match sweep.keep.contains(&Keep::Curves) {
        true => {
            let path = curves_beside(table);
            Some(TableFile::create(&path, &curve_table(sweep, &[]), &metadata)?)
        }
        false => None,
    };
    let columns = sweep.columns();
    let mut written = WrittenCells::default();
    let (mut rows, mut curves, mut points) = (Vec::new(), Vec::new(), 0);
    for cell in 0..sweep.cells() {
        let Some(mut row) = row(cell)? else { continue };
        written.cells += 1;
        written.diverged += u64::from(diverged(&columns, &row));
        if let Some(why) = &row.error {
            written.failed += 1;
            written.first_failure.get_or_insert_with(|| (cell, why.clone()));
        }
        let own = std::mem::take(&mut row.curves);
        rows.push(row);
        if let Some(file) = &mut curve_file {
            points += own.iter().map(|curve| curve.times.len()).sum::<usize>();
            curves.push((cell, own));
            if points >= CURVE_ROWS {
                file.block(&curve_table(sweep, &std::mem::take(&mut curves)))?;
                points = 0;
            }
        }
        if rows.len() == BLOCK {
            file.block(&cell_table(sweep, &std::mem::take(&mut rows)))?;
        }
    }
    if !rows.is_empty() {
        file.block(&cell_table(sweep, &rows))?;
    }
    if let Some(mut file) = curve_file {
        if points > 0 {
            file.block(&curve_table(sweep, &curves))?;
        }
        file.finish()?;
        written.files.push(curves_beside(table));
    }
    file.finish()?;
    written.files.insert(0, table.into());
    Ok(written)
}

/// Whether a curve of the cell diverged. A path that diverges at once does so at 0, an ensemble of which no
/// run does has the share 0.
pub fn diverged(columns: &[String], row: &Row) -> bool {
    columns.iter().zip(&row.values).any(|(name, value)| {
        (name.ends_with("_diverged_at") && *value >= 0.0)
            || (name.ends_with("_diverged_share") && *value > 0.0)
    })
}

impl WrittenCells {
    /// Lines about the cells that diverged or failed.
    pub fn remarks(&self, sweep: &Sweep) -> String {
        let mut text = String::new();
        if self.diverged > 0 {
            text += &format!("Diverged: {}\n", counted(self.diverged, "cell"));
        }
        if let Some((cell, why)) = &self.first_failure {
            let first = if self.failed == 1 { ":" } else { "; the first is" };
            let (failed, cell) = (counted(self.failed, "cell"), sweep.describe(*cell));
            text += &format!("Failed: {failed}{first} {cell}: {why}\n");
        }
        text
    }
}

/// `x.parquet` has its curves in `x.curves.parquet`.
fn curves_beside(table: &Path) -> PathBuf {
    let extension = table.extension().and_then(|e| e.to_str()).unwrap_or_default();
    table.with_extension(format!("curves.{extension}"))
}

/// The number of the cell, the keys that vary, the kept columns, and why a cell failed.
fn cell_table(sweep: &Sweep, rows: &[Row]) -> Table {
    let mut table = Table::default().counts("cell", rows.iter().map(|row| row.cell));
    for (at, key) in sweep.axes().iter().flat_map(|axis| &axis.keys).enumerate() {
        table = key_column(table, sweep, rows, at, key);
    }
    for (at, name) in sweep.columns().into_iter().enumerate() {
        table = table.numbers(name, rows.iter().map(|row| row.values[at]));
    }
    table.text("error", rows.iter().map(|row| row.error.clone().unwrap_or_default()))
}

/// The values of a key: counts, numbers or text, whatever all of its values are.
fn key_column(table: Table, sweep: &Sweep, rows: &[Row], at: usize, key: &KeyValues) -> Table {
    let values = || rows.iter().map(|row| sweep.settings(row.cell)[at].1.clone());
    let name = key.key.clone();
    match key.kind() {
        KeyKind::Counts => table.counts(name, values().map(|v| v.as_integer().map(|n| n as u64))),
        KeyKind::Numbers => table.numbers(name, values().map(|v| toclip_sweep::number(&v))),
        KeyKind::Text => table.text(name, values().map(|v| toclip_sweep::text(&v))),
    }
}

/// The points of all curves, one below the other.
fn curve_table(sweep: &Sweep, curves: &[(u64, Vec<CellCurve>)]) -> Table {
    let all = || curves.iter().flat_map(|(cell, own)| own.iter().map(move |curve| (*cell, curve)));
    let points =
        || all().flat_map(|(cell, curve)| (0..curve.times.len()).map(move |k| (cell, curve, k)));
    let what = if sweep.model { "loss" } else { "risk" };
    Table::default()
        .counts("cell", points().map(|(cell, ..)| cell))
        .text("method", points().map(|(_, curve, _)| curve.method.key()))
        .numbers("time", points().map(|(_, curve, k)| curve.times[k]))
        .numbers(what, points().map(|(_, curve, k)| curve.value[k]))
        .numbers("low", points().map(|(_, curve, k)| curve.low.get(k).copied()))
        .numbers("high", points().map(|(_, curve, k)| curve.high.get(k).copied()))
}
