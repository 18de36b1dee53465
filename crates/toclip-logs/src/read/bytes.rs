//! Bytes one after another, from a slice or a reader, and lines of bounded length.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result};

/// Bytes in order.
pub(super) trait ByteSource {
    /// The next byte, without consuming it.
    fn peek(&mut self) -> Option<u8>;
    /// Consumes the byte that was peeked.
    fn bump(&mut self);
}

impl ByteSource for &[u8] {
    fn peek(&mut self) -> Option<u8> {
        self.first().copied()
    }

    fn bump(&mut self) {
        *self = self.get(1..).unwrap_or_default();
    }
}

/// The bytes of a reader; a read error ends them and is kept.
pub(super) struct ByteReader<R> {
    reader: BufReader<R>,
    /// The line of the next byte, from 1.
    pub line: u64,
    /// Why reading stopped, if not at the end of the data.
    pub error: Option<Error>,
}

impl<R: Read> ByteReader<R> {
    pub fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(1 << 17, reader), line: 1, error: None }
    }

    #[cold]
    fn fill(&mut self) -> Option<u8> {
        if self.error.is_none() {
            self.error = fill(&mut self.reader).err();
        }
        self.reader.buffer().first().copied()
    }
}

impl<R: Read> ByteSource for ByteReader<R> {
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        match self.reader.buffer().first() {
            Some(byte) => Some(*byte),
            None => self.fill(),
        }
    }

    #[inline]
    fn bump(&mut self) {
        if let Some(byte) = self.reader.buffer().first() {
            self.line += u64::from(*byte == b'\n');
            self.reader.consume(1);
        }
    }
}

/// Fills an empty buffer; a read that is interrupted is repeated.
fn fill(reader: &mut BufReader<impl Read>) -> Result<()> {
    loop {
        match reader.fill_buf().map(|_| ()) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// A line, and how it ended.
pub(super) struct Line<'a> {
    pub text: &'a [u8],
    /// Whether a line break followed.
    pub complete: bool,
}

/// The lines of a reader.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    /// Also break at carriage returns, as progress bars use them.
    returns: bool,
    /// Lines returned so far.
    pub count: u64,
}

/// Longer lines are cut: they are not rows of a log.
const LONGEST: usize = 1 << 20;

impl<R: Read> Lines<R> {
    pub fn new(reader: R, returns: bool) -> Self {
        let reader = BufReader::with_capacity(1 << 18, reader);
        Self { reader, line: Vec::new(), returns, count: 0 }
    }

    /// The next line without its break.
    pub fn next(&mut self) -> Result<Option<Line<'_>>> {
        self.line.clear();
        let mut complete = false;
        while !complete && self.line.len() < LONGEST {
            fill(&mut self.reader)?;
            let data = self.reader.buffer();
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
        Ok(Some(Line { text, complete }))
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
