//! JSON and Python dictionaries as logs have them: `NaN`, single quotes, numbers in quotation
//! marks, `tensor(1.2)`, objects without a line break between them, and ends cut off.
//!
//! Standard JSON parsers refuse all of these, and Python's `json.dumps` writes a bare `NaN` exactly
//! at the interesting steps; hence this scanner. It keeps only the values of the columns in use, so
//! memory does not grow with the log.

use std::io::Read;

use super::bytes::{ByteReader, ByteSource};
use super::columns::ColumnChooser;
use super::damage::Damage;
use super::row::parse_number;
use crate::names::printable;
use crate::{Error, Result, Role};

/// Deeper nesting is not a log.
const DEEPEST: usize = 32;
/// Lists under these keys hold rows; other lists of objects are details of one row.
const ROWS: [&str; 7] = ["log_history", "history", "logs", "rows", "records", "entries", "data"];
/// A longer list is not the norm of one step.
const LONGEST_LIST: usize = 16;
/// Strings are cut to this length, and longer words are refused.
const LONGEST_TOKEN: usize = 256;

/// Why an object ended before its closing brace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stop {
    /// A syntax error.
    Bad,
    /// The end of the data.
    End,
}

type Scan<T = ()> = std::result::Result<T, Stop>;

/// The scanner's working memory, reused for every object.
#[derive(Default)]
pub(super) struct Scanner {
    path: Vec<u8>,
    token: Vec<u8>,
    /// The object holds rows, so its own values are settings.
    container: bool,
    /// The name of a norm that is a long list: the log has columns, not rows.
    long_list: Option<String>,
}

impl Scanner {
    /// Reads the object that starts at the next byte, and passes it on as a record.
    pub fn object(&mut self, source: &mut impl ByteSource, chooser: &mut ColumnChooser) -> Scan {
        self.path.clear();
        self.container = false;
        let scan = self.inside(source, chooser, 0, true);
        match scan {
            Err(_) => chooser.discard(),
            Ok(()) if self.container => chooser.end_settings(),
            Ok(()) => chooser.end_record(),
        }
        scan
    }

    fn inside(
        &mut self,
        source: &mut impl ByteSource,
        chooser: &mut ColumnChooser,
        depth: usize,
        keep: bool,
    ) -> Scan {
        enter(source, depth)?;
        loop {
            match next_byte(source)? {
                b'}' => {
                    source.bump();
                    return Ok(());
                }
                b'"' | b'\'' => self.string(source)?,
                _ => return Err(Stop::Bad),
            }
            if next_byte(source)? != b':' {
                return Err(Stop::Bad);
            }
            source.bump();
            let mark = self.path.len();
            if mark > 0 {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(&self.token);
            self.value(source, chooser, depth, keep)?;
            self.path.truncate(mark);
            separator(source, b'}')?;
        }
    }

    fn value(
        &mut self,
        source: &mut impl ByteSource,
        chooser: &mut ColumnChooser,
        depth: usize,
        keep: bool,
    ) -> Scan {
        match next_byte(source)? {
            b'{' => return self.inside(source, chooser, depth + 1, keep),
            b'[' => return self.list(source, chooser, depth + 1, keep),
            b'"' | b'\'' => self.string(source)?,
            _ => {
                self.word(source)?;
                let word: &[u8] = &self.token;
                if word.is_empty() {
                    return Err(Stop::Bad);
                } else if source.peek() == Some(b'(') {
                    // tensor(1.2, device='cuda:0') and np.float64(1.2)
                    source.bump();
                    next_byte(source)?;
                    self.word(source)?;
                    while next_byte(source)? != b')' {
                        source.bump();
                        if source.peek() == Some(b'\n') {
                            return Err(Stop::Bad);
                        }
                    }
                    source.bump();
                } else if matches!(
                    word,
                    b"null" | b"None" | b"true" | b"false" | b"True" | b"False"
                ) {
                    return Ok(());
                } else if parse_number(word).is_none() {
                    return Err(Stop::Bad);
                }
            }
        }
        if keep
            && let Some(id) = chooser.column(&self.path)
            && let Some(value) = parse_number(&self.token)
        {
            chooser.put(id, value);
        }
        Ok(())
    }

    fn list(
        &mut self,
        source: &mut impl ByteSource,
        chooser: &mut ColumnChooser,
        depth: usize,
        keep: bool,
    ) -> Scan {
        enter(source, depth)?;
        let rows = keep && ROWS.iter().any(|name| self.path.ends_with(name.as_bytes()));
        let mut length = 0;
        loop {
            match next_byte(source)? {
                b']' => {
                    source.bump();
                    return Ok(());
                }
                b'{' if rows => {
                    if !self.container {
                        chooser.end_settings();
                        self.container = true;
                    }
                    let outer = std::mem::take(&mut self.path);
                    self.inside(source, chooser, depth + 1, true)?;
                    self.path = outer;
                    chooser.end_record();
                }
                b'{' => self.inside(source, chooser, depth + 1, false)?,
                // Of a list such as "lr": [1e-5] the first number is used.
                _ => self.value(source, chooser, depth, keep && length == 0)?,
            }
            length += 1;
            if keep && length == LONGEST_LIST {
                let name = printable(&self.path);
                if chooser.role(&name).is_some_and(|(role, _)| role == Role::Norm) {
                    self.long_list = Some(name);
                }
            }
            separator(source, b']')?;
        }
    }

    /// Reads a quoted string into the token; a long one is cut.
    fn string(&mut self, source: &mut impl ByteSource) -> Scan {
        let quote = take(source)?;
        self.token.clear();
        loop {
            if source.peek() == Some(b'\n') {
                return Err(Stop::Bad);
            }
            let mut byte = take(source)?;
            if byte == quote {
                return Ok(());
            }
            if byte == b'\\' {
                // Names and numbers have no escapes, except that some writers escape the slash.
                byte = take(source)?;
            }
            if self.token.len() < LONGEST_TOKEN {
                self.token.push(byte);
            }
        }
    }

    fn word(&mut self, source: &mut impl ByteSource) -> Scan {
        self.token.clear();
        loop {
            match source.peek().ok_or(Stop::End)? {
                b @ (b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'.' | b'+' | b'-' | b'_') => {
                    source.bump();
                    if self.token.len() >= LONGEST_TOKEN {
                        return Err(Stop::Bad);
                    }
                    self.token.push(b);
                }
                _ => return Ok(()),
            }
        }
    }
}

/// Consumes an opening brace or bracket.
fn enter(source: &mut impl ByteSource, depth: usize) -> Scan {
    if depth > DEEPEST {
        return Err(Stop::Bad);
    }
    source.bump();
    Ok(())
}

/// Consumes a comma, unless the closing byte is next.
fn separator(source: &mut impl ByteSource, close: u8) -> Scan {
    match next_byte(source)? {
        b',' => source.bump(),
        byte if byte == close => {}
        _ => return Err(Stop::Bad),
    }
    Ok(())
}

/// Consumes a byte.
fn take(source: &mut impl ByteSource) -> Scan<u8> {
    let byte = source.peek().ok_or(Stop::End)?;
    source.bump();
    Ok(byte)
}

/// The next byte that is not white space.
fn next_byte(source: &mut impl ByteSource) -> Scan<u8> {
    loop {
        match source.peek().ok_or(Stop::End)? {
            b' ' | b'\t' | b'\n' | b'\r' => source.bump(),
            byte => return Ok(byte),
        }
    }
}

/// Reads a whole log of objects: a single one, a list, one per line, or one after another.
pub(super) fn read(reader: impl Read, chooser: &mut ColumnChooser) -> Result<Damage> {
    let mut source = ByteReader::new(reader);
    let mut scanner = Scanner::default();
    let mut damage = Damage::default();
    // The line on which the last object ended, to see whether the next starts on the same one.
    let mut ended = None;
    // The rest of a damaged line is counted once.
    let mut in_damage = false;
    while let Some(byte) = source.peek() {
        let line = source.line;
        if byte == b'{' {
            damage.concatenated += u64::from(ended == Some(line));
            let scan = scanner.object(&mut source, chooser);
            match scan {
                Ok(()) => ended = Some(source.line),
                Err(Stop::End) => damage.truncated = true,
                Err(Stop::Bad) => {
                    damage.unreadable.add(line);
                    (ended, in_damage) = (None, true);
                }
            }
            continue;
        }
        source.bump();
        match byte {
            b' ' | b'\t' | b'\r' => {}
            b'\n' => in_damage = false,
            b'[' | b']' | b',' => ended = None,
            _ => {
                if !in_damage {
                    damage.unreadable.add(line);
                }
                (ended, in_damage) = (None, true);
            }
        }
    }
    if let Some(error) = source.error {
        return Err(error.into());
    }
    if let Some(name) = scanner.long_list {
        return Err(Error::NotALog(format!(
            "`{name}` is one long list: write the log as CSV or as one JSON object per step"
        )));
    }
    Ok(damage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Finding, ReadOptions, Row};

    type Pair = (Option<f64>, Option<f64>);

    fn norms(text: &str) -> (Vec<Pair>, Vec<Finding>) {
        let (options, mut rows) = (ReadOptions::default(), Vec::new());
        let mut visit = |row: &Row| rows.push((row.step, row.norm));
        let mut sink = ColumnChooser::new(&options, &mut visit);
        let findings = read(text.as_bytes(), &mut sink).unwrap().findings();
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
