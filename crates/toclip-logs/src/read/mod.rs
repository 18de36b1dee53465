//! One pass over a log of any format.

mod bytes;
mod columns;
mod csv;
mod decompress;
mod file_damage;
mod format;
mod json;
mod layer_names;
mod mlflow;
mod requested_columns;
mod role;
mod row;
mod row_joiner;
mod settings;
mod tensorboard;
mod text;
mod wandb;

use std::io::{Cursor, Read};
use std::path::Path;

use serde::Serialize;

pub use columns::LogColumn;
pub use format::Format;
pub use role::Role;
pub use row::LogRow;
pub(crate) use settings::RunSettings;
pub use settings::SettingSources;

use crate::names::list;
use crate::{Error, Finding, Hint, OptimizerKind, Result};
use columns::{ChosenColumns, ColumnChooser};
use decompress::{Unpacked, unpack};
use layer_names::layer_of;
use role::role_of;
pub(crate) use settings::optimizer_kind;

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

/// How a log was read: its format, columns and settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReadSummary {
    /// The format.
    pub format: Format,
    /// The columns used, and the alternatives.
    pub columns: Vec<LogColumn>,
    /// The layers whose gradient norms the log has: [`LogRow::layers`] has their places in this list.
    /// Empty if there are more than 512.
    pub layers: Vec<String>,
    /// Whether the norm is the root of the sum of squares over the layers, because the log has no
    /// norm of the whole gradient.
    pub combined: bool,
    /// Damage to the files.
    pub findings: Vec<Finding>,
    /// Rows read.
    pub rows: u64,
    /// Rows with a gradient norm.
    pub norms: u64,
    /// The clipping threshold, if the log or a file next to it has it; infinite if the run is set not
    /// to clip.
    pub clip: Option<f64>,
    /// The global batch size, if the log or a file next to it has it.
    pub batch_size: Option<f64>,
    /// The number of samples per worker and accumulation step, if that is given.
    pub micro_batch_size: Option<f64>,
    /// The kind of the optimizer, if the log or a file next to it names it.
    pub optimizer: Option<OptimizerKind>,
    /// Where threshold, batch size and optimizer were found.
    pub sources: SettingSources,
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
    visit: &mut dyn FnMut(&LogRow),
) -> Result<ReadSummary> {
    let reader: Box<dyn Read> = Box::new(reader);
    read_joined(std::iter::once(Ok(reader)), options, &RunSettings::default(), visit)
}

/// Reads several files as one log, each opened when the one before it has been read. Empty ones are
/// skipped: a job that did not start leaves them.
pub(crate) fn read_joined<'a>(
    readers: impl Iterator<Item = Result<Box<dyn Read + 'a>>>,
    options: &ReadOptions,
    nearby: &RunSettings,
    visit: &mut dyn FnMut(&LogRow),
) -> Result<ReadSummary> {
    summarise(options, nearby, visit, |chooser| {
        let mut first = None;
        for reader in readers {
            match read_part(reader?, options.format, chooser) {
                Err(Error::Empty) => {}
                format => first = first.or(Some(format?)),
            }
        }
        first.ok_or(Error::Empty)
    })
}

/// Reads the metrics of an MLflow run, each from the file of its own.
pub(crate) fn read_metrics(
    metrics: &[(&str, &Path)],
    options: &ReadOptions,
    nearby: &RunSettings,
    progress: &mut dyn FnMut(u64),
    visit: &mut dyn FnMut(&LogRow),
) -> Result<ReadSummary> {
    summarise(options, nearby, visit, |chooser| {
        mlflow::read_run(metrics, chooser, progress)?;
        Ok(Format::Mlflow)
    })
}

/// Whether a name is that of a gradient norm, of a layer or of all.
pub(crate) fn is_norm(name: &str) -> bool {
    layer_of(name).is_some() || role_of(name).is_some_and(|(role, _)| role == Role::Norm)
}

/// Reads one file into the chooser.
fn read_part(
    reader: impl Read,
    format: Option<Format>,
    chooser: &mut ColumnChooser,
) -> Result<Format> {
    let Unpacked { mut reader, broken } = unpack(reader)?;
    let mut head = Vec::new();
    reader.by_ref().take(HEAD).read_to_end(&mut head)?;
    if head.is_empty() && broken.get() {
        return Err(Error::NotALog("the file is compressed, but damaged or cut off".into()));
    }
    let format = match format {
        Some(_) if head.is_empty() => return Err(Error::Empty),
        Some(format) => format,
        None => format::detect(&head)?,
    };
    let reader = Cursor::new(head).chain(reader);
    match format {
        Format::TrainerState | Format::Jsonl => json::read(reader, chooser)?,
        Format::Csv => csv::read(reader, chooser)?,
        Format::TensorBoard => tensorboard::read(reader, chooser)?,
        Format::Wandb => wandb::read(reader, chooser)?,
        Format::Mlflow => mlflow::read(reader, chooser)?,
        _ => text::read(reader, chooser)?,
    }
    chooser.damage.truncated |= broken.get();
    Ok(format)
}

/// Passes on the rows that `read_into` reads, and summarises them. Settings that the log does not have
/// come from files next to it.
fn summarise(
    options: &ReadOptions,
    nearby: &RunSettings,
    visit: &mut dyn FnMut(&LogRow),
    read_into: impl FnOnce(&mut ColumnChooser) -> Result<Format>,
) -> Result<ReadSummary> {
    let (mut rows, mut norms) = (0, 0);
    let mut count_and_visit = |row: &LogRow| {
        rows += u64::from(row.norm.is_some() || row.loss.is_some());
        norms += u64::from(row.norm.is_some());
        visit(row);
    };
    let mut chooser = ColumnChooser::new(options, &mut count_and_visit);
    let format = read_into(&mut chooser)?;
    let ChosenColumns { columns, layers, combined, mut settings, names, damage } =
        chooser.finish()?;
    let findings = damage.findings();
    if norms == 0 {
        return Err(no_norm(format, &columns, &names, findings.first()));
    }
    settings.extend(nearby);
    let (clip, clip_source) = settings.clip().unzip();
    let (batch_size, batch_size_source) = settings.batch_size().unzip();
    let (optimizer, optimizer_source) =
        settings.optimizer().or_else(|| optimizer_of_rate(&columns)).unzip();
    let sources = SettingSources {
        clip: clip_source,
        batch_size: batch_size_source,
        optimizer: optimizer_source,
    };
    Ok(ReadSummary {
        format,
        columns,
        layers,
        combined,
        findings,
        rows,
        norms,
        clip,
        batch_size,
        micro_batch_size: settings.micro_batch_size(),
        optimizer,
        sources,
    })
}

/// Lightning names the column of the learning rate after the optimizer: `lr-AdamW`.
fn optimizer_of_rate(columns: &[LogColumn]) -> Option<(OptimizerKind, String)> {
    let rate = columns.iter().find(|column| column.role == Role::LearningRate)?;
    let kind = optimizer_kind(&rate.name)?;
    Some((kind, format!("the column `{}`", rate.name)))
}

fn no_norm(
    format: Format,
    columns: &[LogColumn],
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
