//! W&B's own files, `run-*.wandb`: the log format of LevelDB with the CRC-32 of zlib, and in it
//! protocol buffers, from which only the history and the configuration are read.
//!
//! A file is a sequence of blocks of 32 KiB. A record that does not fit is split into fragments, so
//! damage costs at most the records of one block.

use std::io::{BufReader, Read};

use flate2::Crc;
use prost::Message;

use super::columns::ColumnChooser;
use super::row::parse_number;
use crate::Result;

/// The first bytes of a file: its name, a number, the version.
pub(super) const MAGIC: &[u8] = b":W&B\xe1\xbe\0";

const BLOCK: usize = 1 << 15;
/// Bytes before each fragment: checksum, length, type.
const HEADER: usize = 7;
/// Larger records hold tables or media and are skipped.
const LARGEST: usize = 16 << 20;

// Types of fragments; those in the middle of a record are 3.
const FULL: u8 = 1;
const FIRST: u8 = 2;
const LAST: u8 = 4;

/// Reads a file.
pub(super) fn read(reader: impl Read, chooser: &mut ColumnChooser) -> Result<()> {
    let mut reader = BufReader::with_capacity(1 << 17, reader);
    let (mut block, mut record) = (Vec::with_capacity(BLOCK), Vec::new());
    let mut at = 0u64;
    // The record has begun, and its fragments were all in order.
    let mut open = false;
    loop {
        block.clear();
        reader.by_ref().take(BLOCK as u64).read_to_end(&mut block)?;
        let last = block.len() < BLOCK;
        let mut from = if at == 0 { MAGIC.len() } else { 0 };
        while let Some(header) = block.get(from..from + HEADER) {
            let length = usize::from(u16::from_le_bytes([header[4], header[5]]));
            let kind = header[6];
            if kind == 0 && length == 0 {
                // The rest of the block was left empty.
                break;
            }
            let Some(data) = block.get(from + HEADER..from + HEADER + length) else {
                open = false;
                match last {
                    true => chooser.damage.truncated = true,
                    false => chooser.damage.checksums.add(at + from as u64),
                }
                from = block.len();
                break;
            };
            let mut crc = Crc::new();
            crc.update(&header[6..]);
            crc.update(data);
            let start = at + from as u64;
            from += HEADER + length;
            if crc.sum().to_le_bytes() != header[..4] {
                chooser.damage.checksums.add(start);
                open = false;
                continue;
            }
            if kind == FULL || kind == FIRST {
                record.clear();
                open = true;
            }
            open &= record.len() + length <= LARGEST && matches!(kind, FULL..=LAST);
            if open {
                record.extend_from_slice(data);
            }
            if open && (kind == FULL || kind == LAST) {
                open = false;
                if decode(&record, chooser).is_none() {
                    chooser.damage.unreadable_records.add(start);
                    chooser.discard();
                }
            }
        }
        if last {
            let rest = block.get(from..).unwrap_or_default();
            chooser.damage.truncated |= open || rest.iter().any(|byte| *byte != 0);
            return Ok(());
        }
        at += BLOCK as u64;
    }
}

// The few fields of W&B's messages that are read.

#[derive(prost::Message)]
struct Record {
    #[prost(message, optional, tag = "2")]
    history: Option<History>,
    #[prost(message, optional, tag = "5")]
    config: Option<Config>,
    #[prost(message, optional, tag = "17")]
    run: Option<Run>,
}

#[derive(prost::Message)]
struct History {
    #[prost(message, repeated, tag = "1")]
    items: Vec<Item>,
    #[prost(message, optional, tag = "2")]
    step: Option<Step>,
}

#[derive(prost::Message)]
struct Step {
    #[prost(int64, tag = "1")]
    number: i64,
}

#[derive(prost::Message)]
struct Config {
    #[prost(message, repeated, tag = "1")]
    updates: Vec<Item>,
}

#[derive(prost::Message)]
struct Run {
    #[prost(message, optional, tag = "4")]
    config: Option<Config>,
}

/// A name and a value, in one of several ways: versions of W&B differ.
#[derive(prost::Message)]
struct Item {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    nested_key: Vec<Vec<u8>>,
    #[prost(sint64, optional, tag = "5")]
    integer: Option<i64>,
    #[prost(double, optional, tag = "6")]
    number: Option<f64>,
    #[prost(bytes = "vec", tag = "16")]
    json: Vec<u8>,
}

impl Item {
    fn name(&self) -> Vec<u8> {
        match self.key.is_empty() {
            true => self.nested_key.join(&b'/'),
            false => self.key.clone(),
        }
    }

    /// The value, if it is a number. W&B writes NaN with and without quotation marks.
    fn value(&self) -> Option<f64> {
        let json = self.json.trim_ascii();
        let bare = json.strip_prefix(b"\"").and_then(|json| json.strip_suffix(b"\""));
        let number = self.number.or(self.integer.map(|i| i as f64));
        number.or_else(|| parse_number(bare.unwrap_or(json)))
    }
}

/// Passes a record on; `None` if the bytes are not a record.
fn decode(bytes: &[u8], chooser: &mut ColumnChooser) -> Option<()> {
    let record = Record::decode(bytes).ok()?;
    let configs = [record.config, record.run.and_then(|run| run.config)];
    for item in configs.into_iter().flatten().flat_map(|config| config.updates) {
        let name = String::from_utf8_lossy(&item.name()).into_owned();
        if let Ok(value) = serde_json::from_slice(&item.json) {
            chooser.found.put_json(&name, &value, "the run's configuration");
        }
    }
    let Some(history) = record.history else { return Some(()) };
    let mut has_step = false;
    for item in &history.items {
        let name = item.name();
        has_step |= name == b"_step";
        if let Some(value) = item.value()
            && let Some(column) = chooser.column(&name)
        {
            chooser.put(column, value);
        }
    }
    if !has_step
        && let Some(step) = history.step
        && let Some(column) = chooser.column(b"_step")
    {
        chooser.put(column, step.number as f64);
    }
    chooser.end_record();
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Finding, Format, LogRow, ReadOptions};

    #[test]
    fn numbers_in_every_version() {
        let item = |json: &str| Item { json: json.into(), ..Item::default() };
        assert_eq!(item("1.5").value(), Some(1.5));
        assert!(item("NaN").value().unwrap().is_nan() && item("\"NaN\"").value().unwrap().is_nan());
        assert_eq!(item("-Infinity").value(), Some(f64::NEG_INFINITY));
        assert_eq!(item("[1, 2]").value(), None);
        assert_eq!(Item { number: Some(2.5), ..Item::default() }.value(), Some(2.5));
        assert_eq!(Item { integer: Some(-3), ..Item::default() }.value(), Some(-3.0));
    }

    /// A file with these records.
    fn file(records: &[Record]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        for record in records {
            let (mut rest, mut first) = (&record.encode_to_vec()[..], true);
            while first || !rest.is_empty() {
                let mut left = BLOCK - file.len() % BLOCK;
                if left < HEADER {
                    file.resize(file.len() + left, 0);
                    left = BLOCK;
                }
                let (data, after) = rest.split_at(rest.len().min(left - HEADER));
                let kind = match (first, after.is_empty()) {
                    (true, true) => FULL,
                    (true, false) => FIRST,
                    (false, false) => 3,
                    (false, true) => LAST,
                };
                let mut crc = Crc::new();
                crc.update(&[kind]);
                crc.update(data);
                file.extend(crc.sum().to_le_bytes());
                file.extend((data.len() as u16).to_le_bytes());
                file.push(kind);
                file.extend(data);
                (rest, first) = (after, false);
            }
        }
        file
    }

    fn history(step: i64, filler: usize) -> Record {
        let item = |key: &str, json: String| Item {
            key: key.into(),
            json: json.into(),
            ..Item::default()
        };
        let items = vec![
            item("grad_norm", format!("{}.5", step)),
            item("text", format!("\"{}\"", "x".repeat(filler))),
        ];
        let history = Some(History { items, step: Some(Step { number: step }) });
        Record { history, ..Record::default() }
    }

    fn norms(bytes: &[u8]) -> (Vec<(f64, f64)>, Vec<Finding>) {
        let mut rows = Vec::new();
        let options = ReadOptions { format: Some(Format::Wandb), ..ReadOptions::default() };
        let visit = &mut |row: &LogRow| rows.extend(row.step.zip(row.norm));
        let summary = crate::read(bytes, &options, visit).unwrap();
        (rows, summary.findings)
    }

    #[test]
    fn records_longer_than_a_block() {
        let lengths = [10, 40_000, 3, 100_000, 32_700, 32_650, 5, 0, 9];
        let records: Vec<Record> =
            lengths.iter().enumerate().map(|(i, length)| history(i as i64, *length)).collect();
        let bytes = file(&records);
        let all: Vec<(f64, f64)> = (0..9).map(|i| (f64::from(i), f64::from(i) + 0.5)).collect();
        assert_eq!(norms(&bytes), (all.clone(), vec![]));
        // A damaged fragment costs its record.
        let mut damaged = bytes.clone();
        damaged[2 * BLOCK + 100] ^= 1;
        let (rows, findings) = norms(&damaged);
        assert_eq!(rows, [&all[..3], &all[4..]].concat());
        assert!(matches!(findings[..], [Finding::WrongChecksum { count: 1, stopped: false, .. }]));
        for end in [bytes.len() - 1, bytes.len() - 80, 3 * BLOCK, 3 * BLOCK + 5] {
            let (rows, findings) = norms(&bytes[..end]);
            assert!(all.starts_with(&rows), "{end}");
            assert_eq!(findings, [Finding::Truncated], "{end}");
        }
    }
}
