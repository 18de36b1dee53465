//! Bytes one after another, from a slice or a reader, and lines of bounded length.

use std::io::Read;

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
    reader: R,
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
    /// The line of the next byte, from 1.
    pub line: u64,
    /// Why reading stopped, if not at the end of the data.
    pub error: Option<std::io::Error>,
}

impl<R: Read> ByteReader<R> {
    pub fn new(reader: R) -> Self {
        let buffer = vec![0; 1 << 17].into_boxed_slice();
        Self { reader, buffer, at: 0, end: 0, line: 1, error: None }
    }

    #[cold]
    fn fill(&mut self) -> bool {
        if self.error.is_none() {
            let read = read_some(&mut self.reader, &mut self.buffer);
            (self.at, self.end) = (0, *read.as_ref().unwrap_or(&0));
            self.error = read.err();
        }
        self.at < self.end
    }
}

impl<R: Read> ByteSource for ByteReader<R> {
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        if self.at == self.end && !self.fill() {
            return None;
        }
        Some(self.buffer[self.at])
    }

    #[inline]
    fn bump(&mut self) {
        if self.at < self.end {
            self.line += u64::from(self.buffer[self.at] == b'\n');
            self.at += 1;
        }
    }
}

/// One read, repeated if interrupted.
fn read_some(reader: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Reads until the buffer is full or the data ends; returns how many bytes were read.
pub(super) fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match read_some(reader, &mut buffer[length..])? {
            0 => break,
            n => length += n,
        }
    }
    Ok(length)
}

/// A line, and how it ended.
pub(super) struct Line<'a> {
    pub text: &'a [u8],
    /// Whether a line break followed.
    pub complete: bool,
}

/// The lines of a reader, in a buffer of bounded size.
pub(super) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    done: bool,
    /// Also break at carriage returns, as progress bars use them.
    returns: bool,
    /// Lines returned so far.
    pub count: u64,
}

/// Longer lines are cut: they are not rows of a log.
const LONGEST: usize = 1 << 20;

impl<R: Read> Lines<R> {
    pub fn new(reader: R, returns: bool) -> Self {
        Self { reader, buffer: vec![0; 1 << 18], at: 0, end: 0, done: false, returns, count: 0 }
    }

    /// The next line without its break.
    pub fn next(&mut self) -> std::io::Result<Option<Line<'_>>> {
        let mut searched = self.at;
        loop {
            let fresh = &self.buffer[searched..self.end];
            let found = match self.returns {
                true => memchr::memchr2(b'\n', b'\r', fresh),
                false => memchr::memchr(b'\n', fresh),
            };
            let (stop, complete) = match found {
                Some(i) => (searched + i, true),
                None if self.done || self.end - self.at >= LONGEST => (self.end, false),
                None => {
                    searched = self.more()?;
                    continue;
                }
            };
            if self.at == stop && !complete {
                return Ok(None);
            }
            let start = self.at;
            self.at = stop + usize::from(complete);
            self.count += 1;
            let mut text = &self.buffer[start..stop];
            if text.last() == Some(&b'\r') {
                text = &text[..text.len() - 1];
            }
            return Ok(Some(Line { text, complete }));
        }
    }

    /// Makes room, reads on, and returns where the new bytes start.
    fn more(&mut self) -> std::io::Result<usize> {
        self.buffer.copy_within(self.at..self.end, 0);
        self.end -= self.at;
        self.at = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize(2 * self.end, 0);
        }
        let from = self.end;
        let n = read_some(&mut self.reader, &mut self.buffer[from..])?;
        self.end += n;
        self.done = n == 0;
        Ok(from)
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
