//! One pass over a log of any format.

mod bytes;
mod columns;
mod csv;
mod damage;
mod format;
mod json;
mod layers;
mod packed;
mod role;
mod row;
mod tensorboard;
mod text;

use std::io::{Cursor, Read};

use serde::Serialize;

pub use columns::Column;
pub use format::Format;
pub use role::Role;
pub use row::Row;

use crate::names::list;
use crate::{Error, Finding, Hint, Result};
use columns::{Choice, ColumnChooser};
use packed::{Unpacked, unpack};

/// How many bytes are examined to detect the format.
const HEAD: u64 = 1 << 16;

/// How to read a log. Everything is detected unless given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadOptions {
    /// The format.
    pub format: Option<Format>,
    /// The column of the gradient norm.
    pub norm: Option<String>,
    /// The column of the step.
    pub step: Option<String>,
    /// The column of the loss.
    pub loss: Option<String>,
    /// The column of the learning rate.
    pub learning_rate: Option<String>,
    /// Divide the norms by the loss scale in the log.
    pub unscale: bool,
}

/// What was read, and how.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReadSummary {
    /// The format.
    pub format: Format,
    /// The columns used, and the alternatives.
    pub columns: Vec<Column>,
    /// The layers whose gradient norms the log has: [`Row::layers`] has their places in this list.
    /// Empty if there are more than 512.
    pub layers: Vec<String>,
    /// Whether the norm is the root of the sum of squares over the layers, because the log has no
    /// norm of the whole gradient.
    pub combined: bool,
    /// What is wrong with the log as a file.
    pub findings: Vec<Finding>,
    /// Rows read.
    pub rows: u64,
    /// Rows with a gradient norm.
    pub norms: u64,
    /// The clipping threshold, if the log has it.
    pub clip: Option<f64>,
    /// The global batch size, if the log has it.
    pub batch_size: Option<f64>,
}

/// Reads a log in one pass and bounded memory, and passes each row to `visit`.
///
/// ```
/// let log = "step,train/grad_norm,train/loss\n1,2.5,0.9\n2,1.5,0.8\n";
/// let mut norms = Vec::new();
/// let summary = toclip_logs::read(log.as_bytes(), &Default::default(), &mut |row| {
///     norms.extend(row.norm);
/// })?;
/// assert_eq!(norms, [2.5, 1.5]);
/// assert_eq!(summary.format, toclip_logs::Format::Csv);
/// # Ok::<(), toclip_logs::Error>(())
/// ```
///
/// # Errors
///
/// If the log cannot be read, is not a log, has no gradient norm, or lacks a column named in
/// `options`.
pub fn read(
    reader: impl Read,
    options: &ReadOptions,
    visit: &mut dyn FnMut(&Row),
) -> Result<ReadSummary> {
    let Unpacked { mut reader, broken } = unpack(reader)?;
    let mut head = Vec::new();
    reader.by_ref().take(HEAD).read_to_end(&mut head)?;
    if head.is_empty() && broken.get() {
        return Err(Error::NotALog("the file is compressed, but damaged or cut off".into()));
    }
    let format = match options.format {
        Some(_) if head.is_empty() => return Err(Error::Empty),
        Some(format) => format,
        None => format::detect(&head)?,
    };
    let reader = Cursor::new(head).chain(reader);
    let (mut rows, mut norms) = (0, 0);
    let mut count_and_visit = |row: &Row| {
        rows += 1;
        norms += u64::from(row.norm.is_some());
        visit(row);
    };
    let mut chooser = ColumnChooser::new(options, &mut count_and_visit);
    let mut damage = match format {
        Format::TrainerState | Format::Jsonl => json::read(reader, &mut chooser)?,
        Format::Csv => csv::read(reader, &mut chooser)?,
        Format::TensorBoard => tensorboard::read(reader, &mut chooser)?,
        _ => text::read(reader, &mut chooser)?,
    };
    damage.truncated |= broken.get();
    let findings = damage.findings();
    let Choice { columns, layers, combined, settings, names } = chooser.finish()?;
    if norms == 0 {
        return Err(no_norm(format, &columns, &names, findings.first()));
    }
    let positive = |x: Option<f64>| x.filter(|x| x.is_finite() && *x > 0.0);
    let (clip, batch_size) = (positive(settings.clip), positive(settings.batch_size));
    Ok(ReadSummary { format, columns, layers, combined, findings, rows, norms, clip, batch_size })
}

fn no_norm(
    format: Format,
    columns: &[Column],
    names: &[String],
    damage: Option<&Finding>,
) -> Error {
    let how = match format {
        Format::NanoGpt => {
            "nanoGPT prints the loss only: print what clip_grad_norm_ returns along with it"
        }
        Format::DeepSpeed => {
            "DeepSpeed does not log it: log engine.get_global_grad_norm() after each step"
        }
        _ => {
            "Log what torch.nn.utils.clip_grad_norm_ returns, which is the norm before clipping (use \
             max_norm=float('inf') to measure without clipping)"
        }
    };
    let (why, hint) = match columns.iter().find(|c| c.role == Role::Norm) {
        Some(column) => (format!("the column `{}` has no numbers. {how}", column.name), None),
        None if names.is_empty() => (format!("no named numbers were found. {how}"), None),
        None => {
            let names = list(names);
            let why = format!("no column name looks like one ({names}). {how}, or name the column");
            (why, Some(Hint::NormColumn))
        }
    };
    // Damage to the file may be the cause.
    let damage = damage.map_or(String::new(), |finding| format!("{} Also, ", finding.sentence()));
    Error::NoNorm { format, why: damage + &why, hint }
}
