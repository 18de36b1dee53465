//! The factors for every row of a table.

use super::{
    json_point,
    noise_args::from_parts,
    rule::{self, Words},
};
use crate::output::files;
use crate::output::tell;
use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;
use toclip::noise::Family;
use toclip::{Factors, Step};

/// The columns that a table has.
pub const GIVEN: [&str; 4] = ["family", "params", "r", "c"];
/// The columns that are computed.
pub const COMPUTED: [&str; 5] = ["mu", "m2", "nu", "csc", "ccc"];

/// The computed columns of one point, 17 significant digits; empty where not defined.
pub fn values(at: &Factors) -> [String; 5] {
    let defined = |x: toclip::Result<f64>| x.map_or(String::new(), digits);
    [digits(at.mu), digits(at.m2), defined(at.nu()), defined(at.csc()), defined(at.ccc())]
}

fn digits(x: f64) -> String {
    format!("{x:.16e}")
}

/// Reads the table, writes the result, and reports bad rows by their line.
pub fn run(path: &Path, out: Option<&Path>, as_json: bool) -> Result<ExitCode> {
    let name = path.display();
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_path(path)
        .with_context(|| format!("cannot read {name}"))?;
    let header = reader.headers().with_context(|| format!("cannot read {name}"))?.clone();
    let column = |wanted: &str| {
        header.iter().position(|h| h.trim().trim_start_matches('\u{feff}') == wanted)
    };
    let (Some(family), Some(params), Some(r), Some(c)) =
        (column("family"), column("params"), column("r"), column("c"))
    else {
        let found = header.iter().collect::<Vec<_>>().join(",");
        bail!("{name}: the first line must name the columns family,params,r,c; it says `{found}`");
    };
    let columns = [family, params, r, c];
    let mut rows = Rows { batch: rule::COLUMNS.map(column), ..Rows::default() };
    let mut record = csv::StringRecord::new();
    let mut bad = 0usize;
    loop {
        let line = reader.position().line();
        match reader.read_record(&mut record) {
            Ok(false) => break,
            Ok(true) => {
                let line = record.position().map_or(line, csv::Position::line);
                if let Err(error) = rows.add(&record, columns) {
                    bad += 1;
                    tell!("{name}:{line}: {error:#}");
                }
            }
            Err(error) => {
                // A line that is not UTF-8 is one bad row; a disk that fails is the end.
                if error.is_io_error() {
                    return Err(error).with_context(|| format!("cannot read {name}"));
                }
                bad += 1;
                tell!("{name}:{line}: {error}");
            }
        }
    }
    rows.write(out, as_json)?;
    if bad > 0 {
        tell!("{name}: {} rows done, {bad} bad", rows.done.len());
        return Ok(ExitCode::FAILURE);
    }
    if let Some(out) = out {
        tell!("wrote {} ({} rows)", out.display(), rows.done.len());
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Default)]
struct Rows {
    /// What was read, word for word, and what was computed.
    done: Vec<(Vec<String>, Factors)>,
    /// Where the columns are that say how samples are clipped, if there are any.
    batch: [Option<usize>; 3],
    /// Tables ask the same law many times, and making one may cost more than asking it.
    laws: HashMap<(String, String), Family>,
}

impl Rows {
    fn add(&mut self, record: &csv::StringRecord, columns: [usize; 4]) -> Result<()> {
        let named = columns.into_iter().zip(GIVEN);
        let batch = self.batch.into_iter().zip(rule::COLUMNS);
        let batch = batch.filter_map(|(i, name)| i.map(|i| (i, name)));
        let mut fields = Vec::new();
        for (i, name) in named.chain(batch) {
            let Some(text) = record.get(i) else {
                bail!("there is no column `{name}`: the row has {} columns", record.len());
            };
            fields.push(text.to_string());
        }
        let words = self.batch.map(|i| i.and_then(|i| record.get(i)));
        let batch = Words::from_columns(words)?.batch()?;
        let number = |text: &str, name: &str| {
            text.trim()
                .parse::<f64>()
                .map_err(|_| anyhow::anyhow!("{name} = `{text}` is not a number"))
        };
        let (r, c) = (number(&fields[2], "r")?, number(&fields[3], "c")?);
        let key = (fields[0].trim().to_string(), fields[1].clone());
        let law = match self.laws.get(&key) {
            Some(law) => law,
            None => {
                let law = law(&key.0, &key.1)?;
                // A table in which every row has a law of its own must not keep them all.
                if self.laws.len() >= 1000 {
                    self.laws.clear();
                }
                self.laws.entry(key).or_insert(law)
            }
        };
        let at = Factors::new(Step::new(law).with_batch(batch)?, r, c)?;
        self.done.push((fields, at));
        Ok(())
    }

    fn write(&self, out: Option<&Path>, as_json: bool) -> Result<()> {
        let text = if as_json { self.json()? } else { self.csv()? };
        match out {
            Some(path) => files::write(path, &text),
            None => {
                crate::output::terminal::print(format_args!("{}", String::from_utf8(text)?));
                Ok(())
            }
        }
    }

    fn csv(&self) -> Result<Vec<u8>> {
        let mut out = csv::Writer::from_writer(Vec::new());
        let batch = self.batch.into_iter().zip(rule::COLUMNS);
        let batch = batch.filter_map(|(i, name)| i.map(|_| name));
        out.write_record(GIVEN.into_iter().chain(batch).chain(COMPUTED))?;
        for (fields, at) in &self.done {
            out.write_record(fields.iter().cloned().chain(values(at)))?;
        }
        Ok(out.into_inner()?)
    }

    fn json(&self) -> Result<Vec<u8>> {
        let row = |(fields, at): &(Vec<String>, Factors)| {
            let mut map = json_point(at);
            map.insert("family".into(), fields[0].clone().into());
            let params = serde_json::from_str::<serde_json::Value>(&fields[1]).unwrap_or_default();
            map.insert("params".into(), params);
            let batch = self.batch.into_iter().zip(rule::COLUMNS).filter(|(i, _)| i.is_some());
            for (text, (_, name)) in fields[GIVEN.len()..].iter().zip(batch) {
                let whole = rule::whole(text).map_or(text.trim().into(), Into::into);
                map.insert(name.into(), whole);
            }
            map
        };
        let mut text = serde_json::to_vec_pretty(&self.done.iter().map(row).collect::<Vec<_>>())?;
        text.push(b'\n');
        Ok(text)
    }
}

fn law(family: &str, params: &str) -> Result<Family> {
    let text = if params.trim().is_empty() { "{}" } else { params };
    let map = serde_json::from_str(text)
        .with_context(|| format!("params must be a JSON object, not `{params}`"))?;
    if !Family::NAMES.contains(&family) {
        bail!("there is no noise family `{family}`; there are {}", Family::NAMES.join(", "));
    }
    from_parts(family, map)
}
