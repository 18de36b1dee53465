//! JSON and Python dictionaries as logs have them: `NaN`, single quotes, numbers in quotation
//! marks, `tensor(1.2)`, objects without a line break between them, and ends cut off.
//!
//! Standard JSON parsers refuse all of these, and Python's `json.dumps` writes a bare `NaN` exactly
//! at the interesting steps; hence this scanner. It keeps only the values of the columns in use, so
//! memory does not grow with the log.

use std::io::{BufRead, BufReader, Read};

use super::bytes::Bytes;
use super::columns::ColumnChooser;
use super::row::parse_number;
use crate::names::printable;
use crate::{Error, Result, Role};

/// Words that are neither numbers nor damage.
const CONSTANTS: [&[u8]; 6] = [b"null", b"None", b"true", b"false", b"True", b"False"];
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
    pub fn object(
        &mut self,
        source: &mut Bytes<impl BufRead>,
        chooser: &mut ColumnChooser,
    ) -> Scan {
        self.path.clear();
        self.container = false;
        let scan = Object { scanner: self, source, chooser }.inside(0, true);
        match scan {
            Err(_) => chooser.discard(),
            Ok(()) if self.container => chooser.end_settings(),
            Ok(()) => chooser.end_record(),
        }
        scan
    }
}

/// An object that is being read.
struct Object<'a, 'b, R> {
    scanner: &'a mut Scanner,
    source: &'a mut Bytes<R>,
    chooser: &'a mut ColumnChooser<'b>,
}

impl<R: BufRead> Object<'_, '_, R> {
    fn inside(&mut self, depth: usize, keep: bool) -> Scan {
        self.enter(depth)?;
        while self.next_byte()? != b'}' {
            self.string()?;
            if self.next_byte()? != b':' {
                return Err(Stop::Bad);
            }
            self.take()?;
            let mark = self.scanner.path.len();
            if mark > 0 {
                self.scanner.path.push(b'/');
            }
            self.scanner.path.extend_from_slice(&self.scanner.token);
            self.value(depth, keep)?;
            self.scanner.path.truncate(mark);
            self.separator(b'}')?;
        }
        self.take()
    }

    fn value(&mut self, depth: usize, keep: bool) -> Scan {
        let mut is_word = false;
        match self.next_byte()? {
            b'{' => return self.inside(depth + 1, keep),
            b'[' => return self.list(depth + 1, keep),
            b'"' | b'\'' => self.string()?,
            _ => {
                self.word()?;
                match self.peek()? {
                    b'(' if !self.scanner.token.is_empty() => self.call()?,
                    _ if CONSTANTS.contains(&&self.scanner.token[..]) => return Ok(()),
                    _ => is_word = true,
                }
            }
        }
        let value = parse_number(&self.scanner.token);
        if is_word && value.is_none() {
            return Err(Stop::Bad);
        }
        if keep
            && let Some(id) = self.chooser.column(&self.scanner.path)
            && let Some(value) = value
        {
            self.chooser.put(id, value);
        }
        Ok(())
    }

    /// The first argument of `tensor(1.2, device='cuda:0')` or `np.float64(1.2)`.
    fn call(&mut self) -> Scan {
        self.take()?;
        self.next_byte()?;
        self.word()?;
        while self.next_byte()? != b')' {
            self.take()?;
            if self.source.peek() == Some(b'\n') {
                return Err(Stop::Bad);
            }
        }
        self.take()
    }

    fn list(&mut self, depth: usize, keep: bool) -> Scan {
        self.enter(depth)?;
        let rows = keep && ROWS.iter().any(|name| self.scanner.path.ends_with(name.as_bytes()));
        for length in 1.. {
            match self.next_byte()? {
                b']' => break,
                b'{' if rows => {
                    if !self.scanner.container {
                        self.chooser.end_settings();
                        self.scanner.container = true;
                    }
                    let outer = std::mem::take(&mut self.scanner.path);
                    self.inside(depth + 1, true)?;
                    self.scanner.path = outer;
                    self.chooser.end_record();
                }
                // A list such as "lr": [1e-5] counts as its first number.
                byte => self.value(depth, keep && length == 1 && byte != b'{')?,
            }
            if keep && length == LONGEST_LIST {
                let name = printable(&self.scanner.path);
                if self.chooser.role(&name).is_some_and(|(role, _)| role == Role::Norm) {
                    self.scanner.long_list = Some(name);
                }
            }
            self.separator(b']')?;
        }
        self.take()
    }

    /// Reads a quoted string into the token; a long one is cut.
    fn string(&mut self) -> Scan {
        let quote = self.next_byte()?;
        if !matches!(quote, b'"' | b'\'') {
            return Err(Stop::Bad);
        }
        self.take()?;
        let token = &mut self.scanner.token;
        token.clear();
        let special = |byte| byte == quote || byte == b'\\' || byte == b'\n';
        loop {
            match self.source.take_until(special, token, LONGEST_TOKEN).ok_or(Stop::End)? {
                b'\n' => return Err(Stop::Bad),
                b'\\' => {
                    // Names and numbers have no escapes, except that some writers escape the slash.
                    self.source.bump(b'\\');
                    let byte = self.source.peek().ok_or(Stop::End)?;
                    self.source.bump(byte);
                    if token.len() < LONGEST_TOKEN {
                        token.push(byte);
                    }
                }
                quote => {
                    self.source.bump(quote);
                    return Ok(());
                }
            }
        }
    }

    /// Reads a number or a name into the token.
    fn word(&mut self) -> Scan {
        let token = &mut self.scanner.token;
        token.clear();
        let ends = |byte: u8| !(byte.is_ascii_alphanumeric() || b".+-_".contains(&byte));
        self.source.take_until(ends, token, LONGEST_TOKEN + 1).ok_or(Stop::End)?;
        if token.len() > LONGEST_TOKEN { Err(Stop::Bad) } else { Ok(()) }
    }

    /// Consumes an opening brace or bracket.
    fn enter(&mut self, depth: usize) -> Scan {
        if depth > DEEPEST {
            return Err(Stop::Bad);
        }
        self.take()
    }

    /// Consumes a comma, unless the closing byte is next.
    fn separator(&mut self, close: u8) -> Scan {
        match self.next_byte()? {
            b',' => self.take(),
            byte if byte == close => Ok(()),
            _ => Err(Stop::Bad),
        }
    }

    #[inline]
    fn peek(&mut self) -> Scan<u8> {
        self.source.peek().ok_or(Stop::End)
    }

    /// Consumes a byte.
    #[inline]
    fn take(&mut self) -> Scan {
        let byte = self.peek()?;
        self.source.bump(byte);
        Ok(())
    }

    /// The next byte that is not white space, without consuming it.
    #[inline]
    fn next_byte(&mut self) -> Scan<u8> {
        loop {
            match self.peek()? {
                byte @ (b' ' | b'\t' | b'\n' | b'\r') => self.source.bump(byte),
                byte => return Ok(byte),
            }
        }
    }
}

/// Reads a whole log of objects: a single one, a list, one per line, or one after another.
pub(super) fn read(reader: impl Read, chooser: &mut ColumnChooser) -> Result<()> {
    let mut source = Bytes::new(BufReader::with_capacity(1 << 17, reader));
    let mut scanner = Scanner::default();
    // The line on which the last object ended, to see whether the next starts on the same one.
    let mut ended = None;
    // The rest of a damaged line is counted once.
    let mut in_damage = false;
    while let Some(byte) = source.peek() {
        let line = source.line;
        let bad = match byte {
            b'{' => {
                chooser.damage.concatenated += u64::from(ended == Some(line));
                let scan = scanner.object(&mut source, chooser);
                ended = Some(source.line);
                chooser.damage.truncated |= scan == Err(Stop::End);
                scan == Err(Stop::Bad)
            }
            _ => {
                source.bump(byte);
                in_damage &= byte != b'\n';
                if !b" \t\r\n".contains(&byte) {
                    ended = None;
                }
                !in_damage && !b" \t\r\n[],".contains(&byte)
            }
        };
        if bad {
            chooser.damage.unreadable.add(line);
            (ended, in_damage) = (None, true);
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
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Finding, LogRow, ReadOptions};

    type Pair = (Option<f64>, Option<f64>);

    fn norms(text: &str) -> (Vec<Pair>, Vec<Finding>) {
        let (options, mut rows) = (ReadOptions::default(), Vec::new());
        let mut visit = |row: &LogRow| rows.push((row.step, row.norm));
        let mut sink = ColumnChooser::new(&options, &mut visit);
        read(text.as_bytes(), &mut sink).unwrap();
        let findings = sink.finish().unwrap().damage.findings();
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
