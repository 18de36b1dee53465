//! The factors for every row of a table, read, computed and written in blocks.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use csv::StringRecord;
use rayon::prelude::*;
use serde_json::Value;
use toclip::Factors;
use toclip::noise::Family;

use super::batch_and_rule::{self, BatchAndRule};
use super::{json_point, with_factors};
use crate::arguments::{count, family, object};
use crate::output::files::{Destination, wrote};
use crate::output::interrupt::{self, EXIT_INTERRUPTED, INTERRUPTED};
use crate::output::{Table, tell};
use toclip_words::counted;

/// The columns that a table must have.
const REQUIRED: [&str; 4] = ["family", "params", "r", "c"];
/// Rows in memory at a time.
const BLOCK: usize = 8192;
/// Rows that a thread takes at a time. They share the noise distributions they name: making one may
/// cost more than evaluating it.
const CHUNK: usize = 512;

/// Evaluates the table at `path`; reports bad rows by their line and leaves them out.
pub fn run(path: &Path, out: Option<&Path>, as_json: bool) -> Result<ExitCode> {
    interrupt::listen(None)?;
    let name = path.display();
    let reader = csv::ReaderBuilder::new().flexible(true).from_path(path);
    let mut reader = reader.with_context(|| format!("cannot read {name}"))?;
    let columns = Columns::new(reader.headers().with_context(|| format!("cannot read {name}"))?)
        .with_context(|| name.to_string())?;
    let mut writer = Writer { out: Destination::new(out)?, columns: &columns, as_json, rows: 0 };
    let mut bad = 0u64;
    loop {
        let block = read_block(&mut reader).with_context(|| format!("cannot read {name}"))?;
        if block.is_empty() {
            break;
        }
        let factors: Vec<Result<Factors>> =
            block.par_chunks(CHUNK).flat_map_iter(|chunk| columns.evaluate(chunk)).collect();
        // An unfinished file is deleted when it is dropped.
        if INTERRUPTED.load(Ordering::Relaxed) {
            return Ok(ExitCode::from(EXIT_INTERRUPTED));
        }
        let mut done = Vec::with_capacity(block.len());
        for (row, factors) in block.iter().zip(factors) {
            match (&row.record, factors) {
                (Ok(record), Ok(factors)) => done.push((record, factors)),
                (_, Err(error)) => {
                    bad += 1;
                    tell!("{name}:{}: {error:#}", row.line);
                }
                (Err(_), Ok(_)) => {}
            }
        }
        writer.write(&done)?;
    }
    let rows = writer.finish()?;
    if bad > 0 {
        let (rows, bad) = (counted(rows, "row"), counted(bad, "invalid row"));
        tell!("{name}: evaluated {rows}, skipped {bad}");
        return Ok(ExitCode::FAILURE);
    }
    if let Some(out) = out {
        tell!("{} ({})", wrote(out), counted(rows, "row"));
    }
    Ok(ExitCode::SUCCESS)
}

/// A row and its line in the file.
struct Row {
    line: u64,
    record: Result<StringRecord, csv::Error>,
}

/// The next rows, at most [`BLOCK`]. A line that is not UTF-8 is one bad row; a read error ends
/// the command.
fn read_block(reader: &mut csv::Reader<impl Read>) -> Result<Vec<Row>> {
    let mut block = Vec::new();
    while block.len() < BLOCK {
        let line = reader.position().line();
        let mut record = StringRecord::new();
        match reader.read_record(&mut record) {
            Ok(false) => break,
            Ok(true) => {
                let line = record.position().map_or(line, csv::Position::line);
                block.push(Row { line, record: Ok(record) });
            }
            Err(error) if error.is_io_error() => return Err(error.into()),
            Err(error) => block.push(Row { line, record: Err(error) }),
        }
    }
    Ok(block)
}

/// Where the columns are.
struct Columns {
    required: [usize; 4],
    /// Those that describe batches, if there are any.
    batch_and_rule: [Option<usize>; 4],
}

impl Columns {
    fn new(header: &StringRecord) -> Result<Self> {
        let column = |wanted: &str| {
            header.iter().position(|h| h.trim().trim_start_matches('\u{feff}') == wanted)
        };
        let [Some(family), Some(params), Some(r), Some(c)] = REQUIRED.map(column) else {
            let found = header.iter().collect::<Vec<_>>().join(",");
            bail!("the first line must name the columns family,params,r,c; it is `{found}`");
        };
        Ok(Columns {
            required: [family, params, r, c],
            batch_and_rule: batch_and_rule::COLUMNS.map(column),
        })
    }

    /// All columns that are read, by their names.
    fn named(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let optional = batch_and_rule::COLUMNS.into_iter().zip(self.batch_and_rule);
        let optional = optional.filter_map(|(name, i)| i.map(|i| (name, i)));
        REQUIRED.into_iter().zip(self.required).chain(optional)
    }

    fn evaluate(&self, rows: &[Row]) -> Vec<Result<Factors>> {
        let mut families = HashMap::new();
        let rows = rows.iter().map(|row| match &row.record {
            Ok(_) if INTERRUPTED.load(Ordering::Relaxed) => bail!("interrupted"),
            Ok(record) => self.factors(record, &mut families),
            Err(_) => bail!("the line is not UTF-8"),
        });
        rows.collect()
    }

    fn factors<'a>(
        &self,
        record: &'a StringRecord,
        families: &mut HashMap<(&'a str, &'a str), Family>,
    ) -> Result<Factors> {
        if let Some((name, _)) = self.named().find(|(_, i)| *i >= record.len()) {
            bail!("the row ends before the column `{name}`");
        }
        let [name, params, r, c] = self.required.map(|i| &record[i]);
        let batch_and_rule =
            BatchAndRule::from_cells(self.batch_and_rule.map(|i| i.map(|i| &record[i])))?;
        let number = |text: &str, name: &str| match text.trim() {
            "none" if name == "c" => Ok(f64::INFINITY),
            text => text.parse().ok().with_context(|| format!("{name} = `{text}` is not a number")),
        };
        let (r, c) = (number(r, "r")?, number(c, "c")?);
        let key = (name.trim(), params);
        let family = match families.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(family(key.0, object(params).context("params")?)?),
        };
        Ok(Factors::new(batch_and_rule.step(&*family)?, r, c)?)
    }
}

/// Writes rows as CSV or as a JSON array.
struct Writer<'a> {
    out: Destination,
    columns: &'a Columns,
    as_json: bool,
    rows: u64,
}

impl Writer<'_> {
    fn write(&mut self, rows: &[(&StringRecord, Factors)]) -> Result<()> {
        if self.as_json {
            let mut text = String::new();
            for (record, factors) in rows {
                text.push_str(if self.rows == 0 { "[\n  " } else { ",\n  " });
                let row = serde_json::to_string_pretty(&self.object(record, factors))?;
                text.push_str(&row.replace('\n', "\n  "));
                self.rows += 1;
            }
            return Ok(self.out.write_all(text.as_bytes())?);
        }
        // A block without a valid row has nothing to write, not even the header.
        if rows.is_empty() { Ok(()) } else { self.write_csv(rows) }
    }

    fn write_csv(&mut self, rows: &[(&StringRecord, Factors)]) -> Result<()> {
        let text = |table: Table, (name, i): (&'static str, usize)| {
            table.text(name, rows.iter().map(|(record, _)| record[i].to_owned()))
        };
        let table = self.columns.named().fold(Table::default(), text);
        let factors: Vec<Factors> = rows.iter().map(|(_, factors)| *factors).collect();
        with_factors(table, &factors).write_csv(&mut self.out, self.rows == 0)?;
        self.rows += rows.len() as u64;
        Ok(())
    }

    fn object(&self, record: &StringRecord, factors: &Factors) -> serde_json::Map<String, Value> {
        let mut map = json_point(factors);
        for (name, i) in self.columns.named() {
            let cell = &record[i];
            let value = match name {
                "r" | "c" => continue,
                "params" => serde_json::from_str(cell).unwrap_or_default(),
                "batch" | "outputs" => count::<1>(cell).map_or(Value::Null, Into::into),
                "rule" => cell.trim().into(),
                _ => cell.into(),
            };
            map.insert(name.into(), value);
        }
        map
    }

    /// The number of rows that were written.
    fn finish(mut self) -> Result<u64> {
        match (self.as_json, self.rows) {
            (true, 0) => writeln!(self.out, "[]")?,
            (true, _) => writeln!(self.out, "\n]")?,
            (false, 0) => self.write_csv(&[])?,
            (false, _) => {}
        }
        self.out.finish()?;
        Ok(self.rows)
    }
}
