//! CSV: W&B exports, Lightning's sparse `metrics.csv`, or a bare list of norms.
//!
//! Only the columns that are wanted are looked at: a line is walked to the last of them, and the
//! other cells are never made into numbers. Cells with line breaks inside do not occur in tables
//! of numbers and are not supported.

use std::io::Read;

use crate::choose::Chooser;
use crate::row::number;
use crate::source::Lines;
use crate::{Finding, Result, Row};

/// Reads a table.
pub(crate) fn read(reader: impl Read, sink: &mut Chooser) -> Result<Vec<Finding>> {
    let mut lines = Lines::new(reader, false);
    let mut findings = Vec::new();
    let Some(header) = first(&mut lines)? else { return Ok(findings) };
    let delimiter = delimiter(&header);
    let mut cells = Vec::new();
    split(&header, delimiter, &mut cells);
    let names: Vec<Vec<u8>> = cells.iter().map(|c| c.to_vec()).collect();
    let headless = names.iter().all(|name| number(name).is_some());
    let mut ids = Vec::new();
    for (i, name) in names.iter().enumerate() {
        // Without names, columns have numbers; one alone can only be the norm.
        let name = match (headless, names.len()) {
            (true, 1) => b"norm".to_vec(),
            (true, _) => (i + 1).to_string().into_bytes(),
            (false, _) => name.clone(),
        };
        ids.push(sink.column(&name));
    }
    let chosen = sink.decide_by_header();
    // The column at which each role stands, in the order of the columns.
    let mut wanted: Vec<(usize, usize)> = (0..chosen.len())
        .filter_map(|role| {
            let id = chosen[role]?;
            ids.iter().position(|other| *other == Some(id)).map(|column| (column, role))
        })
        .collect();
    wanted.sort_unstable();
    let table = Table { delimiter, columns: names.len(), wanted };
    let mut bad = Bad::default();
    if headless {
        table.line(&header, 1, true, sink, &mut bad);
    }
    loop {
        let at = lines.count + 1;
        let Some(line) = lines.next()? else { break };
        // A table that was continued carries its header again.
        if line.text == header && !headless || line.text.is_empty() {
            continue;
        }
        table.line(line.text, at, line.complete, sink, &mut bad);
    }
    if bad.count > 0 {
        findings.push(Finding::Unreadable { count: bad.count, first: bad.first });
    }
    if bad.comma {
        findings.push(Finding::DecimalComma);
    }
    if bad.cut {
        findings.push(Finding::Truncated);
    }
    Ok(findings)
}

/// The first line that is neither blank nor a comment.
fn first<R: Read>(lines: &mut Lines<R>) -> Result<Option<Vec<u8>>> {
    while let Some(line) = lines.next()? {
        let text = line.text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line.text);
        if !text.trim_ascii().is_empty() && text[0] != b'#' {
            return Ok(Some(text.to_vec()));
        }
    }
    Ok(None)
}

/// The separator that the header has most of.
pub(crate) fn delimiter(header: &[u8]) -> u8 {
    let count = |d: &u8| memchr::memchr_iter(*d, header).count();
    let (mut best, mut most) = (b',', 0);
    for d in [b',', b'\t', b';'] {
        if count(&d) > most {
            (best, most) = (d, count(&d));
        }
    }
    best
}

/// The cells of a line, with quotation marks taken off.
pub(crate) fn split<'a>(line: &'a [u8], delimiter: u8, cells: &mut Vec<&'a [u8]>) {
    cells.clear();
    let mut rest = line;
    loop {
        let trimmed = rest.trim_ascii_start();
        if trimmed.first() == Some(&b'"')
            && let Some(close) = memchr::memchr(b'"', &trimmed[1..])
        {
            cells.push(&trimmed[1..1 + close]);
            let after = &trimmed[close + 2..];
            match memchr::memchr(delimiter, after) {
                Some(i) => rest = &after[i + 1..],
                None => return,
            }
            continue;
        }
        match memchr::memchr(delimiter, rest) {
            Some(i) => {
                cells.push(rest[..i].trim_ascii());
                rest = &rest[i + 1..];
            }
            None => {
                cells.push(rest.trim_ascii());
                return;
            }
        }
    }
}

#[derive(Default)]
struct Bad {
    count: u64,
    first: u64,
    cut: bool,
    /// Numbers with a decimal comma were read.
    comma: bool,
}

impl Bad {
    fn add(&mut self, line: u64) {
        self.count += 1;
        if self.count == 1 {
            self.first = line;
        }
    }
}

struct Table {
    delimiter: u8,
    columns: usize,
    wanted: Vec<(usize, usize)>,
}

impl Table {
    /// Puts a cell into its field; between semicolons a comma is a decimal one.
    #[inline]
    fn set(&self, field: &mut Option<f64>, cell: &[u8], bad: &mut Bad) -> bool {
        if set(field, cell) {
            return true;
        }
        if self.delimiter == b';' {
            *field = decimal_comma(cell);
            bad.comma |= field.is_some();
        }
        field.is_some()
    }

    fn line(&self, line: &[u8], at: u64, complete: bool, sink: &mut Chooser, bad: &mut Bad) {
        let mut row = Row::default();
        let (mut readable, mut whole) = (true, false);
        if memchr::memchr(b'"', line).is_some() {
            let mut cells = Vec::new();
            split(line, self.delimiter, &mut cells);
            whole = cells.len() == self.columns;
            let fields = row.fields_mut();
            for &(column, role) in &self.wanted {
                match cells.get(column) {
                    Some(cell) => readable &= self.set(fields[role], cell, bad),
                    None => readable = false,
                }
            }
        } else {
            let fields = row.fields_mut();
            let mut ends = memchr::memchr_iter(self.delimiter, line);
            let (mut start, mut at_column) = (0, 0);
            for &(column, role) in &self.wanted {
                if column > at_column {
                    match ends.nth(column - at_column - 1) {
                        Some(end) => start = end + 1,
                        None => {
                            readable = false;
                            break;
                        }
                    }
                }
                let end = ends.next();
                let cell = &line[start..end.unwrap_or(line.len())];
                readable &= self.set(fields[role], cell, bad);
                match end {
                    Some(end) => (start, at_column) = (end + 1, column + 1),
                    None => {
                        whole = column + 1 == self.columns;
                        // No cell is left for the columns after this one.
                        at_column = usize::MAX;
                        readable &= self.wanted.last().is_some_and(|last| last.0 == column);
                        break;
                    }
                }
            }
            if !complete && at_column != usize::MAX {
                whole = at_column + ends.count() + 1 == self.columns;
            }
        }
        if !complete {
            // The last cell may be cut; a line with too few certainly is.
            let last = self.wanted.last().is_some_and(|last| last.0 + 1 == self.columns);
            if !whole || last {
                bad.cut = true;
                return;
            }
        }
        if !readable {
            bad.add(at);
            if row.norm.is_none() && row.loss.is_none() {
                return;
            }
        }
        sink.row(row);
    }
}

/// Puts a cell into its field; false if it is no number and not empty.
#[inline]
fn set(field: &mut Option<f64>, cell: &[u8]) -> bool {
    let cell = cell.trim_ascii();
    if cell.is_empty() {
        return true;
    }
    *field = number(cell);
    field.is_some() || matches!(cell, b"null" | b"None" | b"NA" | b"N/A" | b"-" | b"null\r")
}

/// A number with a comma where others have a point.
fn decimal_comma(cell: &[u8]) -> Option<f64> {
    let comma = memchr::memchr(b',', cell)?;
    let mut with_point = cell.to_vec();
    with_point[comma] = b'.';
    number(&with_point)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    fn rows(text: &str) -> (Vec<Row>, Vec<Finding>) {
        let (options, mut rows) = (Options::default(), Vec::new());
        let mut visit = |row: &Row| rows.push(*row);
        let mut sink = Chooser::new(&options, &mut visit);
        let findings = read(text.as_bytes(), &mut sink).unwrap();
        sink.finish().unwrap();
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
