//! Logs that are compressed (gzip, zstd) or in UTF-16 become plain bytes while they are read.
//!
//! The content decides, not the file name. Logs of running jobs end anywhere: a compressed stream
//! that breaks off gives what came before (except, in zstd, the last window: the decoder keeps it), and
//! the log is reported as truncated.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Cursor, Error, ErrorKind, Read, Result, copy, sink};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// How many bytes are examined.
const HEAD: u64 = 4;
/// The largest zstd window: it is kept in memory. `zstd --ultra` stays below it, `--long=27` does not.
const LARGEST_WINDOW: u64 = 64 << 20;

/// Plain bytes of a log.
pub(super) struct Unpacked<'a> {
    pub reader: Box<dyn Read + 'a>,
    /// Whether the compressed data turned out to be damaged or cut off.
    pub broken: Rc<Cell<bool>>,
}

/// Decompresses and decodes what `reader` gives, if it is compressed or in UTF-16.
pub(super) fn unpack<'a>(reader: impl Read + 'a) -> Result<Unpacked<'a>> {
    let broken = Rc::new(Cell::new(false));
    let (head, reader) = first_bytes(reader)?;
    let start = head.clone();
    let reader = Cursor::new(head).chain(reader);
    let plain: Box<dyn Read> = match start[..] {
        [0x1f, 0x8b, ..] => {
            Box::new(UntilBroken { reader: MultiGzDecoder::new(reader), broken: broken.clone() })
        }
        [0x28, 0xb5, 0x2f, 0xfd] => {
            Box::new(UntilBroken { reader: Zstd::new(reader), broken: broken.clone() })
        }
        _ => Box::new(reader),
    };
    // The byte order mark is no part of the text.
    let (mut head, plain) = first_bytes(plain)?;
    let (mark, unit): (usize, Option<ToUnit>) = match head[..] {
        [0xff, 0xfe, ..] => (2, Some(u16::from_le_bytes)),
        [0xfe, 0xff, ..] => (2, Some(u16::from_be_bytes)),
        [0xef, 0xbb, 0xbf, ..] => (3, None),
        _ => (0, None),
    };
    head.drain(..mark);
    let text = Cursor::new(head).chain(plain);
    let reader: Box<dyn Read> = match unit {
        Some(unit) => Box::new(Utf16::new(text, unit)),
        None => Box::new(text),
    };
    Ok(Unpacked { reader, broken })
}

/// The first bytes, and the reader of the rest.
fn first_bytes<R: Read>(mut reader: R) -> Result<(Vec<u8>, R)> {
    let mut head = Vec::new();
    reader.by_ref().take(HEAD).read_to_end(&mut head)?;
    Ok((head, reader))
}

/// Ends where decompression fails.
struct UntilBroken<R> {
    reader: R,
    broken: Rc<Cell<bool>>,
}

impl<R: Read> Read for UntilBroken<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.broken.get() {
            return Ok(0);
        }
        self.reader.read(buffer).or_else(|error| match error.kind() {
            ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof => {
                self.broken.set(true);
                Ok(0)
            }
            _ => Err(error),
        })
    }
}

/// The frames of a zstd stream, one after another.
struct Zstd<R> {
    source: BufReader<R>,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: Read> Zstd<R> {
    fn new(reader: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(LARGEST_WINDOW);
        Self { source: BufReader::with_capacity(1 << 16, reader), decoder, in_frame: false }
    }

    /// Starts the next frame; false at the end of the stream.
    fn next_frame(&mut self) -> Result<bool> {
        if self.source.fill_buf()?.is_empty() {
            return Ok(false);
        }
        match self.decoder.reset(&mut self.source) {
            Ok(()) => self.in_frame = true,
            // Parallel compressors write frames that hold only a length.
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                copy(&mut self.source.by_ref().take(length.into()), &mut sink())?;
            }
            Err(_) => return Err(ErrorKind::InvalidData.into()),
        }
        Ok(true)
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        while !buffer.is_empty() {
            if !self.in_frame && !self.next_frame()? {
                break;
            }
            if !self.in_frame {
                continue;
            }
            let count = self.decoder.read(buffer)?;
            if count > 0 {
                return Ok(count);
            }
            self.in_frame = !self.decoder.is_finished();
            if self.in_frame {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                // A read error of the source is not told from damage here.
                let decoded = self.decoder.decode_blocks(&mut self.source, one);
                decoded.map_err(|_| Error::from(ErrorKind::InvalidData))?;
            }
        }
        Ok(0)
    }
}

/// Makes a unit of UTF-16 from two bytes, in either order.
type ToUnit = fn([u8; 2]) -> u16;

/// UTF-16 as UTF-8. Lone surrogates become U+FFFD; half a character at the end is dropped.
struct Utf16<R> {
    source: BufReader<R>,
    unit: ToUnit,
    /// A high surrogate whose other half is in the next buffer.
    surrogate: Option<u16>,
    /// A byte whose other half is in the next buffer.
    odd: Option<u8>,
    text: Vec<u8>,
    at: usize,
}

impl<R: Read> Utf16<R> {
    fn new(reader: R, unit: ToUnit) -> Self {
        let source = BufReader::with_capacity(1 << 16, reader);
        Self { source, unit, surrogate: None, odd: None, text: Vec::new(), at: 0 }
    }

    /// Decodes the next buffer; false at the end.
    fn refill(&mut self) -> Result<bool> {
        self.text.clear();
        self.at = 0;
        let data = self.source.fill_buf()?;
        if data.is_empty() {
            return Ok(false);
        }
        let bytes = self.odd.take().into_iter().chain(data.iter().copied());
        let mut units: Vec<u16> = self.surrogate.take().into_iter().collect();
        let mut first = None;
        for byte in bytes {
            match first.take() {
                None => first = Some(byte),
                Some(half) => units.push((self.unit)([half, byte])),
            }
        }
        self.odd = first;
        self.surrogate = units.pop_if(|unit| (0xd800..0xdc00).contains(unit));
        let read = data.len();
        self.source.consume(read);
        for decoded in char::decode_utf16(units) {
            let character = decoded.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(true)
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        while self.at == self.text.len() {
            if !self.refill()? {
                return Ok(0);
            }
        }
        let count = (&self.text[self.at..]).read(buffer)?;
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn plain(bytes: &[u8]) -> (Vec<u8>, bool) {
        let mut unpacked = unpack(bytes).unwrap();
        let mut text = Vec::new();
        unpacked.reader.read_to_end(&mut text).unwrap();
        (text, unpacked.broken.get())
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        ruzstd::encoding::compress_to_vec(text, level)
    }

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(bytes).collect()
    }

    fn text() -> String {
        (0..20_000).map(|i| format!("{i},{}é😀\n", i * i)).collect()
    }

    #[test]
    fn what_was_packed_comes_back() {
        let text = text();
        let bytes = text.as_bytes();
        assert_eq!(plain(bytes), (bytes.to_vec(), false));
        assert_eq!(plain(&gzip(bytes)), (bytes.to_vec(), false));
        assert_eq!(plain(&zstd(bytes)), (bytes.to_vec(), false));
        assert_eq!(plain(&[b"\xef\xbb\xbf", bytes].concat()), (bytes.to_vec(), false));
        assert_eq!(plain(&utf16(&text, u16::to_le_bytes)), (bytes.to_vec(), false));
        assert_eq!(plain(&utf16(&text, u16::to_be_bytes)), (bytes.to_vec(), false));
        assert_eq!(plain(&gzip(&utf16(&text, u16::to_le_bytes))), (bytes.to_vec(), false));
    }

    #[test]
    fn members_and_frames_follow_each_other() {
        for pack in [gzip, zstd] {
            let twice = [pack(b"step,norm\n"), pack(b"1,2\n")].concat();
            assert_eq!(plain(&twice), (b"step,norm\n1,2\n".to_vec(), false));
        }
        let skipped = b"\x50\x2a\x4d\x18\x03\0\0\0abc";
        let frames = [&zstd(b"1,")[..], skipped, &zstd(b"2")].concat();
        assert_eq!(plain(&frames), (b"1,2".to_vec(), false));
    }

    #[test]
    fn a_cut_stream_gives_what_came_before() {
        let text = text();
        for (pack, least) in [(gzip as fn(&[u8]) -> Vec<u8>, text.len() / 2), (zstd, 0)] {
            let packed = pack(text.as_bytes());
            for end in [5, packed.len() / 2, packed.len() * 9 / 10, packed.len() - 1] {
                let (left, broken) = plain(&packed[..end]);
                assert!(text.as_bytes().starts_with(&left) && broken, "cut at {end}");
                assert!(end < packed.len() * 9 / 10 || left.len() >= least, "{}", left.len());
            }
        }
    }

    #[test]
    fn half_a_character_is_dropped() {
        let mut bytes = utf16("1,😀", u16::to_le_bytes);
        bytes.truncate(bytes.len() - 2);
        assert_eq!(plain(&bytes).0, b"1,");
        bytes.truncate(bytes.len() - 1);
        assert_eq!(plain(&bytes).0, b"1,");
    }
}
