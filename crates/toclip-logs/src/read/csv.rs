//! CSV: W&B exports, Lightning's sparse `metrics.csv`, or a bare list of norms.
//!
//! Only the columns in use are parsed: a line is scanned up to the last of them. Line breaks inside
//! quoted cells do not occur in tables of numbers and are not supported.

use std::collections::HashSet;
use std::io::Read;

use super::bytes::{Line, Lines};
use super::columns::{ColumnChooser, ColumnId};
use super::file_damage::FileDamage;
use super::role::ROLES;
use super::row::parse_number;
use crate::{LogRow, Result};

/// Reads a table.
pub(super) fn read(reader: impl Read, chooser: &mut ColumnChooser) -> Result<()> {
    let mut lines = Lines::new(reader, false);
    let Some(header) = header(&mut lines)? else { return Ok(()) };
    let delimiter = delimiter(&header);
    let names: Vec<&[u8]> = Cells { rest: Some(&header), delimiter }.collect();
    let headless = names.iter().all(|name| cell_number(name, delimiter).is_some());
    let column = |(i, name): (usize, &&[u8])| match (headless, names.len()) {
        // Columns without names are numbered; a single one can only be the norm.
        (true, 1) => chooser.column(b"norm"),
        (true, _) => chooser.column((i + 1).to_string().as_bytes()),
        (false, _) => chooser.column(name),
    };
    let ids: Vec<Option<ColumnId>> = names.iter().enumerate().map(column).collect();
    let chosen = chooser.decide_by_header().map(|id| id.map(ColumnId::Candidate));
    let use_of = |id: ColumnId| {
        let role = chosen.iter().position(|chosen| *chosen == Some(id)).map(Use::Role);
        role.or_else(|| chooser.is_layer(id).map(Use::Layer))
    };
    let mut seen = HashSet::new();
    let wanted = ids.iter().enumerate().filter_map(|(column, id)| {
        // Where two columns have the same name, the first is used.
        Some((column, use_of((*id)?)?)).filter(|(_, what)| seen.insert(*what))
    });
    let wanted: Vec<(usize, Use)> = wanted.collect();
    let columns = names.len();
    let table = Table { delimiter, columns, wanted };
    if headless {
        table.line(&Line { text: &header, complete: true, number: 1 }, chooser);
    }
    while let Some(line) = lines.next()? {
        // A table that was continued has its header again.
        if line.text == header && !headless || line.text.is_empty() {
            continue;
        }
        table.line(&line, chooser);
    }
    Ok(())
}

/// The first line that is neither blank nor a comment.
fn header<R: Read>(lines: &mut Lines<R>) -> Result<Option<Vec<u8>>> {
    while let Some(line) = lines.next()? {
        if !line.text.trim_ascii().is_empty() && line.text[0] != b'#' {
            return Ok(Some(line.text.to_vec()));
        }
    }
    Ok(None)
}

/// The most frequent separator of a header.
pub(super) fn delimiter(header: &[u8]) -> u8 {
    let count = |d: &u8| memchr::memchr_iter(*d, header).count();
    // The last maximum wins. Between semicolons, commas may be decimal.
    let separators = [b',', b'\t', b';'].into_iter().filter(|d| count(d) > 0);
    separators.max_by_key(count).unwrap_or(b',')
}

/// Parses a cell; between semicolons a number may have a decimal comma.
pub(super) fn cell_number(cell: &[u8], delimiter: u8) -> Option<f64> {
    parse_number(cell).or_else(|| decimal_comma(cell).filter(|_| delimiter == b';'))
}

/// The cells of a line, without quotation marks.
pub(super) struct Cells<'a> {
    pub rest: Option<&'a [u8]>,
    pub delimiter: u8,
}

impl<'a> Iterator for Cells<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let text = self.rest?;
        let quoted = text.trim_ascii_start().strip_prefix(b"\"").and_then(|inner| {
            let close = memchr::memchr(b'"', inner)?;
            Some((&inner[..close], &inner[close + 1..]))
        });
        let after = quoted.map_or(text, |(_, after)| after);
        let end = memchr::memchr(self.delimiter, after);
        self.rest = end.map(|end| &after[end + 1..]);
        Some(
            quoted.map_or_else(|| text[..end.unwrap_or(text.len())].trim_ascii(), |(cell, _)| cell),
        )
    }
}

/// What a column is used as.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Use {
    Role(usize),
    Layer(u32),
}

struct Table {
    delimiter: u8,
    columns: usize,
    /// The columns in use, in their order.
    wanted: Vec<(usize, Use)>,
}

impl Table {
    /// Parses a cell into `value`; false if it is neither a number nor empty.
    #[inline]
    fn set(&self, value: &mut Option<f64>, cell: &[u8], damage: &mut FileDamage) -> bool {
        let cell = cell.trim_ascii();
        if cell.is_empty() {
            return true;
        }
        *value = parse_number(cell);
        if value.is_some() || matches!(cell, b"null" | b"None" | b"NA" | b"N/A" | b"-") {
            return true;
        }
        if self.delimiter == b';' {
            *value = decimal_comma(cell);
            damage.decimal_comma |= value.is_some();
        }
        value.is_some()
    }

    fn line(&self, line: &Line, chooser: &mut ColumnChooser) {
        let (mut values, mut layers) = ([None; ROLES.len()], Vec::new());
        let mut cells = Cells { rest: Some(line.text), delimiter: self.delimiter };
        let (mut readable, mut whole, mut next) = (true, true, 0);
        for &(column, what) in &self.wanted {
            let cell = cells.nth(column - next);
            whole &= cell.is_some();
            let mut value = None;
            readable &= cell.is_some_and(|cell| self.set(&mut value, cell, &mut chooser.damage));
            match (what, value) {
                (Use::Role(role), value) => values[role] = value,
                (Use::Layer(layer), Some(norm)) => layers.push((layer, norm)),
                (Use::Layer(_), None) => {}
            }
            next = column + 1;
        }
        if !line.complete {
            // The last cell may be cut; a line with too few cells certainly is.
            whole &= next + cells.count() == self.columns;
            if !whole || next == self.columns {
                chooser.damage.truncated = true;
                return;
            }
        }
        let row = LogRow::new(values, layers);
        if !readable {
            chooser.damage.unreadable.add(line.number);
            if row.norm.is_none() && row.loss.is_none() && row.layers.is_empty() {
                return;
            }
        }
        chooser.row(row);
    }
}

/// Parses a number with a decimal comma.
fn decimal_comma(cell: &[u8]) -> Option<f64> {
    let comma = memchr::memchr(b',', cell)?;
    let mut with_point = cell.to_vec();
    with_point[comma] = b'.';
    parse_number(&with_point)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Finding, ReadOptions};

    fn rows(text: &str) -> (Vec<LogRow>, Vec<Finding>) {
        let (options, mut rows) = (ReadOptions::default(), Vec::new());
        // Steps without numbers are passed on too, for those who look for the end of a run.
        let mut visit = |row: &LogRow| rows.extend((row.norm.or(row.loss)).map(|_| row.clone()));
        let mut sink = ColumnChooser::new(&options, &mut visit);
        read(text.as_bytes(), &mut sink).unwrap();
        let findings = sink.finish().unwrap().damage.findings();
        (rows, findings)
    }

    fn norms(text: &str) -> Vec<(Option<f64>, Option<f64>)> {
        rows(text).0.iter().map(|r| (r.step, r.norm)).collect()
    }

    #[test]
    fn wandb_with_minimum_and_maximum() {
        let text = "\"Step\",\"r1 - train/grad_norm\",\"r1 - train/grad_norm__MIN\"\n\
                    \"10\",\"1.5\",\"1.4\"\n\"20\",\"\",\"\"\n\"30\",2.5,2.5\n";
        assert_eq!(norms(text), [(Some(10.0), Some(1.5)), (Some(30.0), Some(2.5))]);
    }

    #[test]
    fn lightning_with_sparse_cells() {
        let text = "epoch,grad_2.0_norm_total,lr-Adam,step,train_loss,val_loss\n\
                    0,1.5,,9,,\n0,,,9,0.7,\n0,,,9,,0.9\n,,0.001,10,,\n0,2.5,,19,,\n";
        let (read, findings) = rows(text);
        assert!(findings.is_empty());
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].norm, read[0].loss, read[0].step), (Some(1.5), Some(0.7), Some(9.0)));
        assert_eq!(read[1].norm, Some(2.5));
    }

    #[test]
    fn bare_numbers_other_separators_and_headers_again() {
        assert_eq!(norms("1.5\n2.5\n"), [(None, Some(1.5)), (None, Some(2.5))]);
        let again = "step\tgnorm\n1\t2\nstep\tgnorm\n2\t3\n";
        assert_eq!(norms(again), [(Some(1.0), Some(2.0)), (Some(2.0), Some(3.0))]);
        assert_eq!(norms("step;gnorm;x\r\n1;nan;\r\n")[0].0, Some(1.0));
    }

    #[test]
    fn decimal_commas_between_semicolons() {
        let (read, findings) = rows("step;grad_norm;x\n1;1,5;0\n2;\"2,25e-1\";0\n3;1.000,5;0\n");
        let norms: Vec<_> = read.iter().filter_map(|r| r.norm).collect();
        assert_eq!(norms, [1.5, 0.225]);
        assert_eq!(findings, [Finding::Unreadable { count: 1, first: 4 }, Finding::DecimalComma]);
        let mut visit = |row: &LogRow| assert_eq!((row.norm, row.loss), (Some(1.5), Some(0.25)));
        let text = "grad_norm;loss\n1,5;0,25\n1,5;0,25\n";
        let summary = crate::read(text.as_bytes(), &ReadOptions::default(), &mut visit).unwrap();
        assert_eq!((summary.format, summary.norms), (crate::Format::Csv, 2));
        let options = ReadOptions { norm: Some("2".into()), ..ReadOptions::default() };
        let headless = "1;1,5;0,25\n2;1,5;0,25\n";
        let mut visit = |row: &LogRow| assert_eq!(row.norm, Some(1.5));
        assert_eq!(crate::read(headless.as_bytes(), &options, &mut visit).unwrap().norms, 2);
    }

    #[test]
    fn bad_and_cut_lines() {
        let (read, findings) = rows("step,grad_norm,x\n1,2,3\n2,oops,3\n3\n4,5,6\n5,6");
        let norms: Vec<_> = read.iter().filter_map(|r| r.norm).collect();
        assert_eq!(norms, [2.0, 5.0]);
        assert_eq!(findings, [Finding::Unreadable { count: 2, first: 3 }, Finding::Truncated]);
        // The last cell of an unfinished line may be 0.5 of 0.55; one before it may not.
        assert_eq!(norms_of("grad_norm,step\n1.5,1\n2.5,2"), [1.5]);
        assert_eq!(norms_of("step,grad_norm,x\n1,1.5,1\n2,2.5,2"), [1.5, 2.5]);
    }

    fn norms_of(text: &str) -> Vec<f64> {
        norms(text).iter().filter_map(|r| r.1).collect()
    }
}
