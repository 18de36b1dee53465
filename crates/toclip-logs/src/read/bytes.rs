//! Bytes one after another, and lines of bounded length.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result};

/// The bytes of a reader; a read error ends them and is kept.
pub(super) struct Bytes<R> {
    reader: R,
    /// The line of the next byte, from 1.
    pub line: u64,
    /// Why reading stopped, if not at the end of the data.
    pub error: Option<Error>,
}

impl<R: BufRead> Bytes<R> {
    pub fn new(reader: R) -> Self {
        Self { reader, line: 1, error: None }
    }

    /// The next byte, without consuming it.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        loop {
            match self.reader.fill_buf() {
                Ok(data) => return data.first().copied(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.error = Some(error);
                    return None;
                }
            }
        }
    }

    /// Consumes the bytes before the first for which `stop` is true, and appends them to `text` as long
    /// as that is shorter than `longest`. Returns the byte at which it stopped; it must stop at line
    /// breaks.
    #[inline]
    pub fn take_until(
        &mut self,
        stop: impl Fn(u8) -> bool,
        text: &mut Vec<u8>,
        longest: usize,
    ) -> Option<u8> {
        loop {
            self.peek()?;
            let data = self.reader.fill_buf().ok()?;
            let end = data.iter().position(|byte| stop(*byte));
            let run = &data[..end.unwrap_or(data.len())];
            let room = longest.saturating_sub(text.len());
            text.extend_from_slice(&run[..run.len().min(room)]);
            let next = end.map(|end| data[end]);
            let length = run.len();
            self.reader.consume(length);
            if next.is_some() {
                return next;
            }
        }
    }

    /// Consumes the byte that was peeked.
    #[inline]
    pub fn bump(&mut self, byte: u8) {
        self.line += u64::from(byte == b'\n');
        self.reader.consume(1);
    }
}

/// A line, and how it ended.
pub(super) struct Line<'a> {
    pub text: &'a [u8],
    /// Whether a line break followed.
    pub complete: bool,
    /// Its number, from 1.
    pub number: u64,
}

/// The lines of a reader.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    /// Also break at carriage returns, as progress bars use them.
    returns: bool,
    count: u64,
}

/// Longer lines are cut: they are not rows of a log.
const LONGEST: usize = 1 << 20;

impl<R: Read> Lines<R> {
    pub fn new(reader: R, returns: bool) -> Self {
        Self::with_capacity(1 << 18, reader, returns)
    }

    /// With a buffer of this many bytes.
    pub fn with_capacity(bytes: usize, reader: R, returns: bool) -> Self {
        let reader = BufReader::with_capacity(bytes, reader);
        Self { reader, line: Vec::new(), returns, count: 0 }
    }

    /// The next line without its break.
    pub fn next(&mut self) -> Result<Option<Line<'_>>> {
        self.line.clear();
        let mut complete = false;
        while !complete && self.line.len() < LONGEST {
            let data = match self.reader.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                data => data?,
            };
            let end = match self.returns {
                true => memchr::memchr2(b'\n', b'\r', data),
                false => memchr::memchr(b'\n', data),
            };
            let length = end.unwrap_or(data.len());
            self.line.extend_from_slice(&data[..length]);
            complete = end.is_some();
            if length == 0 && !complete {
                break;
            }
            self.reader.consume(length + usize::from(complete));
        }
        if self.line.is_empty() && !complete {
            return Ok(None);
        }
        self.count += 1;
        let text = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        Ok(Some(Line { text, complete, number: self.count }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], returns: bool) -> Vec<(Vec<u8>, bool)> {
        let mut lines = Lines::new(text, returns);
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((line.text.to_vec(), line.complete));
        }
        all
    }

    #[test]
    fn lines_end_as_on_every_system() {
        let read = lines(b"a\r\nb\n\nc", false);
        let texts: Vec<&[u8]> = read.iter().map(|l| &l.0[..]).collect();
        assert_eq!(texts, [&b"a"[..], b"b", b"", b"c"]);
        assert!(!read[3].1 && read[2].1);
        assert_eq!(lines(b" 1%\r 2%\n", true).len(), 2);
        assert_eq!(lines(b"", true).len(), 0);
    }

    #[test]
    fn a_line_without_end_does_not_fill_memory() {
        let long = vec![b'x'; 5 << 20];
        let read = lines(&long, false);
        assert!(read.iter().all(|l| l.0.len() <= 2 * LONGEST));
        assert_eq!(read.iter().map(|l| l.0.len()).sum::<usize>(), long.len());
    }
}
