//! The format of a log, detected from its first bytes and not from its file name.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::csv::{Cells, cell_number, delimiter};
use super::layer_names::layer_of;
use super::role::{Role, role_of};
use super::row::parse_number;
use super::tensorboard::masked_crc;
use super::{mlflow, wandb};
use crate::names::by_name;
use crate::{Error, Result};

/// A supported format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Format {
    /// `trainer_state.json` of the Hugging Face trainer.
    TrainerState,
    /// JSON objects, one per line or one after another.
    Jsonl,
    /// A table, such as W&B export, Lightning `metrics.csv`.
    Csv,
    /// A TensorBoard event file.
    TensorBoard,
    /// The record of a W&B run, `run-*.wandb`.
    Wandb,
    /// Metrics in the MLflow file store.
    Mlflow,
    /// The text log of Megatron.
    Megatron,
    /// The text log of torchtitan.
    Torchtitan,
    /// The text log of llm.c.
    LlmC,
    /// The text log of nanoGPT, which has no norm.
    NanoGpt,
    /// The text log of DeepSpeed, which has no norm.
    DeepSpeed,
    /// Dictionaries printed by the Hugging Face trainer.
    Printed,
    /// Other text with names before numbers.
    Text,
}

/// All formats with their names for options and for people.
const FORMATS: [(Format, &str, &str); 13] = [
    (Format::TrainerState, "trainer-state", "Hugging Face trainer_state.json"),
    (Format::Jsonl, "jsonl", "JSON lines"),
    (Format::Csv, "csv", "CSV"),
    (Format::TensorBoard, "tensorboard", "TensorBoard"),
    (Format::Wandb, "wandb", "W&B"),
    (Format::Mlflow, "mlflow", "MLflow"),
    (Format::Megatron, "megatron", "Megatron"),
    (Format::Torchtitan, "torchtitan", "torchtitan"),
    (Format::LlmC, "llm.c", "llm.c"),
    (Format::NanoGpt, "nanogpt", "nanoGPT"),
    (Format::DeepSpeed, "deepspeed", "DeepSpeed"),
    (Format::Printed, "printed", "printed dictionaries"),
    (Format::Text, "text", "text"),
];

impl Format {
    /// All formats.
    pub fn all() -> [Format; 13] {
        FORMATS.map(|(format, ..)| format)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FORMATS[*self as usize].2)
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        by_name("format", name, &FORMATS)
    }
}

/// Detects the format from the first bytes of a log.
pub(super) fn detect(head: &[u8]) -> Result<Format> {
    if head.is_empty() {
        return Err(Error::Empty);
    }
    let frame = head.len() >= 12
        && head[..8] != [0; 8]
        && head[8..12] == masked_crc(&head[..8]).to_le_bytes();
    let early = &head[..head.len().min(64)];
    if frame || memchr::memmem::find(early, b"brain.Event:").is_some() {
        return Ok(Format::TensorBoard);
    }
    if head.starts_with(wandb::MAGIC) {
        return Ok(Format::Wandb);
    }
    let packed: [(&[u8], &str); 4] = [
        (b"PK\x03\x04", "a zip archive: unpack it first"),
        (b"\xfd7zXZ", "compressed with xz: unpack it first"),
        (b"PAR1", "Parquet: convert it to CSV first"),
        (b"\x89HDF", "HDF5: convert it to CSV first"),
    ];
    for (magic, what) in packed {
        if head.starts_with(magic) {
            return Err(Error::NotALog(format!("the file is {what}")));
        }
    }
    let odd = head.iter().filter(|b| **b < 9 || (14..27).contains(*b)).count();
    if odd * 50 > head.len() {
        return Err(Error::NotALog(
            "the file is binary, but neither a TensorBoard event file nor a W&B run; other supported \
             logs are: trainer_state.json, JSON lines, CSV, MLflow, Megatron, torchtitan, llm.c"
                .into(),
        ));
    }
    let text = head.trim_ascii_start();
    if text.is_empty() {
        return Err(Error::Empty);
    }
    if mlflow::is_metric(text) {
        return Ok(Format::Mlflow);
    }
    Ok(objects(text).or_else(|| table(text)).unwrap_or_else(|| lines(text)))
}

fn objects(text: &[u8]) -> Option<Format> {
    let mut rest = text;
    if rest[0] == b'[' {
        rest = rest[1..].trim_ascii_start();
    }
    let inner = rest.strip_prefix(b"{")?.trim_ascii_start();
    match inner.first() {
        Some(b'"' | b'}') if memchr::memmem::find(text, b"\"log_history\"").is_some() => {
            Some(Format::TrainerState)
        }
        Some(b'"' | b'}') | None => Some(Format::Jsonl),
        Some(b'\'') => Some(Format::Printed),
        _ => None,
    }
}

/// A table has a header with a known column name, or lines with as many numbers as the header.
fn table(text: &[u8]) -> Option<Format> {
    let mut lines = text
        .split(|b| *b == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty() && line[0] != b'#');
    let header = lines.next()?;
    let delimiter = delimiter(header);
    let cells = |line| Cells { rest: Some(line), delimiter };
    let columns = cells(header).count();
    let known = |c: &[u8]| {
        let name = std::str::from_utf8(c).unwrap_or_default();
        role_of(name).is_some() || layer_of(name).is_some()
    };
    let named = columns > 1 && cells(header).any(known);
    let prose = cells(header).any(|c| memchr::memmem::find(c, b": ").is_some());
    let (mut rows, mut good, mut numeric) = (0, 0, true);
    for line in lines.take(8) {
        rows += 1;
        let same = cells(line).count() == columns;
        let numbers = cells(line).filter(|c| c.is_empty() || cell_number(c, delimiter).is_some());
        let numbers = numbers.count();
        numeric &= same && numbers == columns;
        good += usize::from(same && 2 * numbers >= columns);
    }
    // Lines may be damaged: one good line under a known name is enough.
    let table = match (columns, rows) {
        (1, rows) => {
            let norm = std::str::from_utf8(header).ok().and_then(role_of);
            let named = norm.is_some_and(|(role, _)| role == Role::Norm);
            parse_number(header).is_some() || (named && rows > 0 && numeric)
        }
        (_, 0) => named && !prose,
        _ => (named && good > 0) || numeric,
    };
    table.then_some(Format::Csv)
}

fn lines(text: &[u8]) -> Format {
    let has = |what: &str| memchr::memmem::find(text, what.as_bytes()).is_some();
    if has("grad norm:") || (has("iteration ") && has("lm loss:")) {
        Format::Megatron
    } else if has("{'loss'") || has("'grad_norm'") || has("{'eval_loss'") {
        Format::Printed
    } else if has(":log_dist]") {
        Format::DeepSpeed
    } else if has("grad_norm:") && has("step:") {
        Format::Torchtitan
    } else if has(" trl:") || has("| norm ") || (text.starts_with(b"s:0 ") && has("tel:")) {
        Format::LlmC
    } else if has("iter ") && has(": loss ") {
        Format::NanoGpt
    } else if has("deepspeed") || has("DeepSpeed") || has("logging.py") {
        Format::DeepSpeed
    } else {
        Format::Text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_content() {
        for (text, format) in [
            ("{\n \"best_metric\": null,\n \"log_history\": [", Format::TrainerState),
            ("{\"step\": 1}\n", Format::Jsonl),
            ("[{\"step\": 1}", Format::Jsonl),
            ("{'loss': 1.0, 'grad_norm': 2.0}", Format::Printed),
            ("step,grad_norm\n1,2\n", Format::Csv),
            ("\"Step\",\"a - train/grad_norm\"\n\"1\",\"2\"\n", Format::Csv),
            ("1.5\n2.5\n", Format::Csv),
            ("grad_norm\n1.5\n2.5\n", Format::Csv),
            ("grad_norm\nhello\n2.5\n", Format::Text),
            ("a\tb\n1\t2\n", Format::Csv),
            (" iteration 1/ 10 | lm loss: 1.0 | grad norm: 2.0 |\n", Format::Megatron),
            ("step:  1  loss:  2.0  grad_norm:  1.0\n", Format::Torchtitan),
            ("s:0 tel:11.0\ns:1 trl:10.9 lr:0.0 norm:1.0\n", Format::LlmC),
            ("iter 0: loss 10.9, time 100ms, mfu -100%\n", Format::NanoGpt),
            ("[2023-01-01] [INFO] [logging.py:96:log_dist] step=10\n", Format::DeepSpeed),
            ("1794797868837 1.5 0\n1794797868844 2.5 1\n", Format::Mlflow),
            ("hello\nworld\n", Format::Text),
        ] {
            assert_eq!(detect(text.as_bytes()).unwrap(), format, "{text}");
        }
        for (bytes, says) in [
            (&b""[..], "empty"),
            (b"  \n ", "empty"),
            (b"PK\x03\x04abc", "zip archive"),
            (&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 0][..], "binary"),
        ] {
            assert!(detect(bytes).unwrap_err().to_string().contains(says), "{bytes:?}");
        }
        assert!("excel".parse::<Format>().unwrap_err().to_string().contains("jsonl"));
    }
}
