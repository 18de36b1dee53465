//! JSON and Python dictionaries, as logs really have them: `NaN`, single quotes, numbers in
//! quotation marks, `tensor(1.2)`, objects without a line between them, and ends cut off.
//!
//! A standard JSON parser refuses all of these, and `json.dumps` of Python writes a bare `NaN`
//! exactly where the interesting steps are; hence our own scanner. It keeps nothing but the
//! values of the columns that are wanted, so a log of any length needs the same memory.

use std::io::Read;

use crate::choose::Chooser;
use crate::row::number;
use crate::source::{Bytes, Source};
use crate::words::printable;
use crate::{Error, Finding, Result, Role};

/// Nesting beyond this is no log.
const DEEPEST: usize = 32;
/// Lists under these keys hold rows; other lists of objects are details of one row.
const ROWS: [&str; 7] = ["log_history", "history", "logs", "rows", "records", "entries", "data"];

/// A norm with more elements than this is no norm of one step.
const LONGEST_LIST: usize = 16;

/// Why an object ended before its closing brace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stop {
    /// Something stands there that cannot.
    Bad,
    /// The bytes ended.
    End,
}

type Scan = std::result::Result<(), Stop>;

/// The scanner's working memory, used again for every object.
#[derive(Default)]
pub(crate) struct Scanner {
    path: Vec<u8>,
    token: Vec<u8>,
    /// The object holds rows, so its own values are settings.
    container: bool,
    /// The name of a norm that is a long list: the log is columns, not rows.
    columns: Option<String>,
}

impl Scanner {
    /// Reads the object whose brace is next, and hands it on as a record.
    pub fn object(&mut self, source: &mut impl Source, sink: &mut Chooser) -> Scan {
        self.path.clear();
        self.container = false;
        let scan = self.inside(source, sink, 0, true);
        match scan {
            Err(_) => sink.discard(),
            Ok(()) if self.container => sink.end_settings(),
            Ok(()) => sink.end_record(),
        }
        scan
    }

    fn inside(
        &mut self,
        source: &mut impl Source,
        sink: &mut Chooser,
        depth: usize,
        keep: bool,
    ) -> Scan {
        if depth > DEEPEST {
            return Err(Stop::Bad);
        }
        source.bump();
        loop {
            match blank(source)? {
                b'}' => {
                    source.bump();
                    return Ok(());
                }
                b'"' | b'\'' => self.string(source)?,
                _ => return Err(Stop::Bad),
            }
            if blank(source)? != b':' {
                return Err(Stop::Bad);
            }
            source.bump();
            let mark = self.path.len();
            if mark > 0 {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(&self.token);
            self.value(source, sink, depth, keep)?;
            self.path.truncate(mark);
            match blank(source)? {
                b',' => source.bump(),
                b'}' => {}
                _ => return Err(Stop::Bad),
            }
        }
    }

    fn value(
        &mut self,
        source: &mut impl Source,
        sink: &mut Chooser,
        depth: usize,
        keep: bool,
    ) -> Scan {
        match blank(source)? {
            b'{' => self.inside(source, sink, depth + 1, keep),
            b'[' => self.list(source, sink, depth + 1, keep),
            b'"' | b'\'' => {
                self.string(source)?;
                if keep {
                    self.put(sink);
                }
                Ok(())
            }
            _ => {
                self.word(source)?;
                if self.token.is_empty() {
                    return Err(Stop::Bad);
                }
                let word: &[u8] = &self.token;
                let known = [&b"null"[..], b"None", b"true", b"false", b"True", b"False"];
                if source.peek() == Some(b'(') {
                    // tensor(1.2, device='cuda:0') and np.float64(1.2)
                    source.bump();
                    blank(source)?;
                    self.word(source)?;
                    while blank(source)? != b')' {
                        source.bump();
                        if source.peek() == Some(b'\n') {
                            return Err(Stop::Bad);
                        }
                    }
                    source.bump();
                } else if known.contains(&word) {
                    return Ok(());
                } else if number(word).is_none() {
                    return Err(Stop::Bad);
                }
                if keep {
                    self.put(sink);
                }
                Ok(())
            }
        }
    }

    fn list(
        &mut self,
        source: &mut impl Source,
        sink: &mut Chooser,
        depth: usize,
        keep: bool,
    ) -> Scan {
        if depth > DEEPEST {
            return Err(Stop::Bad);
        }
        source.bump();
        let rows = keep && ROWS.iter().any(|name| self.path.ends_with(name.as_bytes()));
        let mut first = true;
        let mut length = 0;
        loop {
            match blank(source)? {
                b']' => {
                    source.bump();
                    return Ok(());
                }
                b'{' if rows => {
                    if !self.container {
                        sink.end_settings();
                        self.container = true;
                    }
                    let outer = std::mem::take(&mut self.path);
                    self.inside(source, sink, depth + 1, true)?;
                    self.path = outer;
                    sink.end_record();
                }
                b'{' => self.inside(source, sink, depth + 1, false)?,
                // The first number speaks for the list, as in "lr": [1e-5].
                _ => self.value(source, sink, depth, keep && first)?,
            }
            first = false;
            length += 1;
            if keep && length == LONGEST_LIST {
                let name = printable(&self.path);
                let norm = sink.role(&name).is_some_and(|(role, _)| Role::ALL[role] == Role::Norm);
                self.columns = norm.then_some(name).or(self.columns.take());
            }
            match blank(source)? {
                b',' => source.bump(),
                b']' => {}
                _ => return Err(Stop::Bad),
            }
        }
    }

    fn put(&mut self, sink: &mut Chooser) {
        if let Some(id) = sink.column(&self.path)
            && let Some(value) = number(&self.token)
        {
            sink.put(id, value);
        }
    }

    /// A quoted string into the token: its start, if it is longer than any name or number.
    fn string(&mut self, source: &mut impl Source) -> Scan {
        let quote = source.peek().ok_or(Stop::End)?;
        source.bump();
        self.token.clear();
        loop {
            let mut byte = source.peek().ok_or(Stop::End)?;
            if byte == b'\n' {
                return Err(Stop::Bad);
            }
            source.bump();
            if byte == quote {
                return Ok(());
            }
            if byte == b'\\' {
                // Names and numbers have no escapes, except that some writers escape the slash.
                byte = source.peek().ok_or(Stop::End)?;
                source.bump();
            }
            if self.token.len() < 256 {
                self.token.push(byte);
            }
        }
    }

    fn word(&mut self, source: &mut impl Source) -> Scan {
        self.token.clear();
        loop {
            match source.peek().ok_or(Stop::End)? {
                b @ (b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'.' | b'+' | b'-' | b'_') => {
                    source.bump();
                    if self.token.len() >= 256 {
                        return Err(Stop::Bad);
                    }
                    self.token.push(b);
                }
                _ => return Ok(()),
            }
        }
    }
}

/// The next byte that is not blank.
fn blank(source: &mut impl Source) -> std::result::Result<u8, Stop> {
    loop {
        match source.peek() {
            None => return Err(Stop::End),
            Some(b' ' | b'\t' | b'\n' | b'\r') => source.bump(),
            Some(byte) => return Ok(byte),
        }
    }
}

/// Reads a whole log of objects: one, a list of them, one a line, or one after another.
pub(crate) fn read(reader: impl Read, sink: &mut Chooser) -> Result<Vec<Finding>> {
    let mut source = Bytes::new(reader);
    let mut scanner = Scanner::default();
    let (mut bad, mut first, mut joined, mut truncated) = (0, 0, 0, false);
    // Where the last object ended, to see whether the next stands on the same line.
    let mut ended = None;
    let mut noise = false;
    while let Some(byte) = source.peek() {
        match byte {
            b'{' => {
                joined += u64::from(ended == Some(source.line));
                let line = source.line;
                match scanner.object(&mut source, sink) {
                    Ok(()) => ended = Some(source.line),
                    Err(Stop::End) => truncated = true,
                    Err(Stop::Bad) => {
                        bad += 1;
                        first = if bad == 1 { line } else { first };
                        ended = None;
                        noise = true;
                    }
                }
            }
            b' ' | b'\t' | b'\r' => source.bump(),
            b'\n' => {
                noise = false;
                source.bump();
            }
            b'[' | b']' | b',' => {
                ended = None;
                source.bump();
            }
            _ => {
                // The rest of a garbled line is counted once.
                if !noise {
                    bad += 1;
                    first = if bad == 1 { source.line } else { first };
                    noise = true;
                }
                ended = None;
                source.bump();
            }
        }
    }
    if let Some(error) = source.error {
        return Err(error.into());
    }
    if let Some(name) = scanner.columns {
        return Err(Error::NotALog(format!(
            "`{name}` is one long list: write the log as a table (CSV) or as one object a step"
        )));
    }
    let mut findings = Vec::new();
    if joined > 0 {
        findings.push(Finding::Concatenated { count: joined });
    }
    if bad > 0 {
        findings.push(Finding::Unreadable { count: bad, first });
    }
    if truncated {
        findings.push(Finding::Truncated);
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Row};

    type Pair = (Option<f64>, Option<f64>);

    fn norms(text: &str) -> (Vec<Pair>, Vec<Finding>) {
        let (options, mut rows) = (Options::default(), Vec::new());
        let mut visit = |row: &Row| rows.push((row.step, row.norm));
        let mut sink = Chooser::new(&options, &mut visit);
        let findings = read(text.as_bytes(), &mut sink).unwrap();
        sink.finish().unwrap();
        (rows, findings)
    }

    #[test]
    fn what_no_json_parser_takes() {
        let text = "{'step': 1, 'grad_norm': '20.19', 'ok': True, 'x': None}\n\
                    {\"step\": 2, \"grad_norm\": NaN}{\"step\": 3, \"grad_norm\": -Infinity}\n\
                    {'step': 4, 'grad_norm': tensor(1.5, device='cuda:0')}\n\
                    {'step': 5, 'grad_norm': np.float64(2.5), }\n";
        let (rows, findings) = norms(text);
        assert_eq!(rows.len(), 5);
        assert_eq!(rows[0], (Some(1.0), Some(20.19)));
        assert!(rows[1].1.unwrap().is_nan());
        assert_eq!(rows[2].1, Some(f64::NEG_INFINITY));
        assert_eq!((rows[3].1, rows[4].1), (Some(1.5), Some(2.5)));
        assert_eq!(findings, [Finding::Concatenated { count: 1 }]);
    }

    #[test]
    fn cut_and_garbled_lines_cost_only_themselves() {
        let text = "{\"step\": 1, \"grad_norm\": 1.0}\n{\"step\": 2, \"grad_n\n\
                    {\"step\": 3, \"grad_norm\": 3.0}\n{\"step\": 4, \"grad_norm\": 4x}\n\
                    {\"step\": 5, \"grad_norm\": 5.0";
        let (rows, findings) = norms(text);
        assert_eq!(rows, [(Some(1.0), Some(1.0)), (Some(3.0), Some(3.0))]);
        assert_eq!(findings, [Finding::Unreadable { count: 2, first: 2 }, Finding::Truncated]);
    }

    #[test]
    fn nested_objects_are_one_row_and_lists_of_parameters_none() {
        let text = r#"{"step": 7, "train": {"grad_norm": 2.0}, "lr": [1e-3, 1e-4],
                       "layers": [{"grad_norm": 9.0}, {"grad_norm": 8.0}]}"#;
        assert_eq!(norms(text).0, [(Some(7.0), Some(2.0))]);
        let deep = format!("{}1", "[{\"a\":".repeat(100_000));
        assert!(norms(&deep).0.is_empty());
    }
}
