//! One pass over a log of any format.

use std::io::{Cursor, Read};

use serde::Serialize;

use crate::choose::{Chooser, Column};
use crate::format::{Format, detect};
use crate::source::fill;
use crate::words::list;
use crate::{Error, Finding, Result, Role, Row, csv, events, objects, text};

/// How much of a log is looked at to find its format.
const HEAD: usize = 1 << 16;

/// What the user knows better than the names say. Nothing needs to be given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The format; found from the content unless given.
    pub format: Option<Format>,
    /// The column of the gradient norm.
    pub norm: Option<String>,
    /// The column of the step.
    pub step: Option<String>,
    /// The column of the loss.
    pub loss: Option<String>,
    /// The column of the learning rate.
    pub learning_rate: Option<String>,
    /// Divide the norms by the loss scale of the log.
    pub unscale: bool,
}

/// What was read, and how.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reading {
    /// The format.
    pub format: Format,
    /// The columns taken, and what else could have been.
    pub columns: Vec<Column>,
    /// What is wrong with the log as a file.
    pub findings: Vec<Finding>,
    /// Rows handed on.
    pub rows: u64,
    /// Rows with a gradient norm.
    pub norms: u64,
    /// A clipping threshold that the log names.
    pub clip: Option<f64>,
    /// A global batch size that the log names.
    pub batch_size: Option<f64>,
}

impl Reading {
    /// The column taken for a role.
    pub fn column(&self, role: Role) -> Option<&Column> {
        self.columns.iter().find(|c| c.role == role)
    }
}

/// Reads a log in one pass and bounded memory, and hands each row to `visit`.
///
/// ```
/// let log = "step,train/grad_norm,train/loss\n1,2.5,0.9\n2,1.5,0.8\n";
/// let mut norms = Vec::new();
/// let reading = toclip_logs::read(log.as_bytes(), &Default::default(), &mut |row| {
///     norms.extend(row.norm);
/// })?;
/// assert_eq!(norms, [2.5, 1.5]);
/// assert_eq!(reading.format, toclip_logs::Format::Csv);
/// # Ok::<(), toclip_logs::Error>(())
/// ```
///
/// # Errors
///
/// If the log cannot be read, is no log, has no gradient norm, or lacks a column that was asked
/// for.
pub fn read(
    mut reader: impl Read,
    options: &Options,
    visit: &mut dyn FnMut(&Row),
) -> Result<Reading> {
    let mut head = vec![0; HEAD];
    let mut got = 0;
    while got < HEAD {
        match fill(&mut reader, &mut head[got..])? {
            0 => break,
            n => got += n,
        }
    }
    head.truncate(got);
    let format = match options.format {
        Some(_) if head.is_empty() => return Err(Error::Empty),
        Some(format) => format,
        None => detect(&head)?,
    };
    let whole = Cursor::new(head).chain(reader);
    let (mut rows, mut norms) = (0, 0);
    let mut counted = |row: &Row| {
        rows += 1;
        norms += u64::from(row.norm.is_some());
        visit(row);
    };
    let mut chooser = Chooser::new(options, &mut counted);
    let findings = match format {
        Format::TrainerState | Format::Jsonl => objects::read(whole, &mut chooser)?,
        Format::Csv => csv::read(whole, &mut chooser)?,
        Format::TensorBoard => events::read(whole, &mut chooser)?,
        _ => text::read(whole, &mut chooser)?,
    };
    let (columns, settings, names) = chooser.finish()?;
    if norms == 0 {
        let mut why = no_norm(format, &columns, &names);
        // What is wrong with the file may be why.
        if let Some(finding) = findings.first() {
            why = format!("{} Besides, {why}", finding.sentence());
        }
        return Err(Error::NoNorm { format, why });
    }
    let positive = |x: Option<f64>| x.filter(|x| x.is_finite() && *x > 0.0);
    Ok(Reading {
        format,
        columns,
        findings,
        rows,
        norms,
        clip: positive(settings.clip),
        batch_size: positive(settings.batch_size),
    })
}

fn no_norm(format: Format, columns: &[Column], names: &[String]) -> String {
    let how = match format {
        Format::NanoGpt => {
            "nanoGPT prints the loss but not the norm. Keep what clip_grad_norm_ returns and print \
             it with the loss"
        }
        Format::DeepSpeed => {
            "DeepSpeed does not log it. Log engine.get_global_grad_norm() after each step"
        }
        _ => {
            "log what torch.nn.utils.clip_grad_norm_ returns, which is the norm before clipping \
             (use max_norm=float('inf') to measure without clipping)"
        }
    };
    if let Some(column) = columns.iter().find(|c| c.role == Role::Norm) {
        return format!("the column `{}` has no numbers; {how}", column.name);
    }
    match names.is_empty() {
        true => format!("no named numbers were found; {how}"),
        false => format!(
            "no column has such a name (there are {}). If one is the norm, say so with --norm; else {how}",
            list(names)
        ),
    }
}
