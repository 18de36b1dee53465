//! Bytes one after another, from a slice or a reader, and lines of bounded length.

use std::io::Read;

/// Bytes in order.
pub(crate) trait Source {
    /// The next byte, without taking it.
    fn peek(&mut self) -> Option<u8>;
    /// Takes the byte that was peeked.
    fn bump(&mut self);
}

impl Source for &[u8] {
    fn peek(&mut self) -> Option<u8> {
        self.first().copied()
    }

    fn bump(&mut self) {
        *self = self.get(1..).unwrap_or_default();
    }
}

/// Bytes of a reader; what the reader said last is kept for the end.
pub(crate) struct Bytes<R> {
    reader: R,
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
    /// The line the next byte stands in, from 1.
    pub line: u64,
    /// Why the bytes ended, if not because there were no more.
    pub error: Option<std::io::Error>,
}

impl<R: Read> Bytes<R> {
    pub fn new(reader: R) -> Self {
        let buffer = vec![0; 1 << 17].into_boxed_slice();
        Self { reader, buffer, at: 0, end: 0, line: 1, error: None }
    }

    #[cold]
    fn fill(&mut self) -> bool {
        if self.error.is_some() {
            return false;
        }
        match fill(&mut self.reader, &mut self.buffer) {
            Ok(n) => {
                (self.at, self.end) = (0, n);
                n > 0
            }
            Err(error) => {
                self.error = Some(error);
                false
            }
        }
    }
}

impl<R: Read> Source for Bytes<R> {
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

/// One read that does not stop for interruptions.
pub(crate) fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// A line, and how it ended.
pub(crate) struct Line<'a> {
    pub text: &'a [u8],
    /// Whether a line break followed.
    pub complete: bool,
}

/// Lines of a reader in a buffer that does not grow without end.
pub(crate) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    done: bool,
    /// Also break at a carriage return, as progress bars do.
    returns: bool,
    /// Lines handed out so far.
    pub count: u64,
}

/// Longer lines are no rows of a log: they are cut here.
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

    /// Makes room, reads on, and says from where there is something new.
    fn more(&mut self) -> std::io::Result<usize> {
        self.buffer.copy_within(self.at..self.end, 0);
        self.end -= self.at;
        self.at = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize(2 * self.end, 0);
        }
        let from = self.end;
        let n = fill(&mut self.reader, &mut self.buffer[from..])?;
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
