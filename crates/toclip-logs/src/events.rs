//! TensorBoard event files: TFRecord frames with masked CRC-32C, and the few fields of the
//! protocol buffers inside that hold scalars, as `simple_value` (PyTorch) or `tensor` (TF 2).

use std::io::Read;

use crate::choose::Chooser;
use crate::source::fill;
use crate::{Finding, Result};

/// Larger records hold pictures or graphs: they are passed over.
const LARGEST: u64 = 16 << 20;

/// The checksum of TFRecord: CRC-32C, rotated and shifted.
pub(crate) fn masked(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Reads an event file.
pub(crate) fn read(mut reader: impl Read, sink: &mut Chooser) -> Result<Vec<Finding>> {
    sink.fix_step("step");
    let step = sink.column(b"step");
    let (mut at, mut wrong, mut first) = (0u64, 0, 0);
    let (mut stopped, mut cut) = (false, false);
    let mut unreadable = (0, 0);
    let mut data = Vec::new();
    loop {
        let mut head = [0; 12];
        let got = read_full(&mut reader, &mut head)?;
        if got < head.len() {
            cut = got > 0;
            break;
        }
        let [a, b, c, d, e, f, g, h, crc @ ..] = head;
        let length = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        if masked(&head[..8]) != u32::from_le_bytes(crc) {
            (wrong, stopped) = (wrong + 1, true);
            first = if wrong == 1 { at } else { first };
            break;
        }
        if length > LARGEST {
            let skip = length.saturating_add(4);
            let skipped = std::io::copy(&mut reader.by_ref().take(skip), &mut std::io::sink())?;
            cut = skipped < skip;
            if cut {
                break;
            }
        } else {
            data.resize(length as usize + 4, 0);
            if read_full(&mut reader, &mut data)? < data.len() {
                cut = true;
                break;
            }
            let (payload, crc) = data.split_at(length as usize);
            if masked(payload).to_le_bytes() != crc {
                wrong += 1;
                first = if wrong == 1 { at } else { first };
            } else if event(payload, step, sink).is_none() {
                unreadable.0 += 1;
                unreadable.1 = if unreadable.0 == 1 { at } else { unreadable.1 };
                sink.discard();
            }
        }
        at = at.saturating_add(length).saturating_add(16);
    }
    let mut findings = Vec::new();
    if wrong > 0 {
        findings.push(Finding::WrongChecksum { count: wrong, first, stopped });
    }
    if unreadable.0 > 0 {
        findings.push(Finding::Unreadable { count: unreadable.0, first: unreadable.1 });
    }
    if cut {
        findings.push(Finding::Truncated);
    }
    Ok(findings)
}

fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match fill(reader, &mut buffer[got..])? {
            0 => break,
            n => got += n,
        }
    }
    Ok(got)
}

/// One field of a protocol buffer: its number and value.
enum Field<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// The next field; `Some(None)` at the end, `None` if the bytes are no message.
    fn next(&mut self) -> Option<Option<(u64, Field<'a>)>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let key = self.varint()?;
        let field = match key & 7 {
            0 => Field::Varint(self.varint()?),
            1 => {
                let (value, rest) = self.0.split_first_chunk()?;
                self.0 = rest;
                Field::Fixed64(*value)
            }
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Field::Bytes(bytes)
            }
            5 => {
                let (value, rest) = self.0.split_first_chunk()?;
                self.0 = rest;
                Field::Fixed32(*value)
            }
            _ => return None,
        };
        Some(Some((key >> 3, field)))
    }
}

/// `Event { wall_time = 1, step = 2, summary = 5 }`
fn event(payload: &[u8], step_column: Option<u32>, sink: &mut Chooser) -> Option<()> {
    let (mut step, mut summary) = (0i64, None);
    let mut fields = Fields(payload);
    while let Some((number, field)) = fields.next()? {
        match (number, field) {
            (2, Field::Varint(value)) => step = value as i64,
            (5, Field::Bytes(bytes)) => summary = Some(bytes),
            _ => {}
        }
    }
    let mut values = Fields(summary.unwrap_or_default());
    let mut any = false;
    while let Some((number, field)) = values.next()? {
        if let (1, Field::Bytes(value)) = (number, field) {
            any |= scalar(value, sink)?;
        }
    }
    if any {
        if let Some(column) = step_column {
            sink.put(column, step as f64);
        }
        sink.end_record();
    }
    Some(())
}

/// `Summary.Value { tag = 1, simple_value = 2, tensor = 8 }`; true if it was a column of ours.
fn scalar(value: &[u8], sink: &mut Chooser) -> Option<bool> {
    let (mut tag, mut number) = (&[][..], None);
    let mut fields = Fields(value);
    while let Some((field, value)) = fields.next()? {
        match (field, value) {
            (1, Field::Bytes(bytes)) => tag = bytes,
            (2, Field::Fixed32(bits)) => number = Some(f64::from(f32::from_le_bytes(bits))),
            (8, Field::Bytes(bytes)) => number = tensor(bytes)?.or(number),
            _ => {}
        }
    }
    // The step of the event is called so, and no tag is mistaken for it.
    let column = if tag == b"step" { None } else { sink.column(tag) };
    let (Some(number), Some(column)) = (number, column) else { return Some(false) };
    sink.put(column, number);
    Some(true)
}

/// `TensorProto { dtype = 1, tensor_content = 4, float_val = 5, double_val = 6, … }`, its first
/// element.
fn tensor(message: &[u8]) -> Option<Option<f64>> {
    let (mut kind, mut content, mut value) = (0, &[][..], None);
    let f32_of = |bytes: &[u8]| Some(f64::from(f32::from_le_bytes(*bytes.first_chunk()?)));
    let f64_of = |bytes: &[u8]| Some(f64::from_le_bytes(*bytes.first_chunk()?));
    let mut fields = Fields(message);
    while let Some((number, field)) = fields.next()? {
        let first = match (number, field) {
            (1, Field::Varint(dtype)) => {
                kind = dtype;
                None
            }
            (4, Field::Bytes(bytes)) => {
                content = bytes;
                None
            }
            (5, Field::Bytes(packed)) => f32_of(packed),
            (5, Field::Fixed32(bits)) => f32_of(&bits),
            (6, Field::Bytes(packed)) => f64_of(packed),
            (6, Field::Fixed64(bits)) => f64_of(&bits),
            (7 | 10, Field::Varint(int)) => Some(int as i64 as f64),
            (7 | 10, Field::Bytes(packed)) => Some(Fields(packed).varint()? as i64 as f64),
            _ => None,
        };
        value = value.or(first);
    }
    // DT_FLOAT = 1, DT_DOUBLE = 2, DT_INT32 = 3, DT_INT64 = 9
    let content = || match kind {
        1 => f32_of(content),
        2 => f64_of(content),
        3 => Some(f64::from(i32::from_le_bytes(*content.first_chunk()?))),
        9 => Some(i64::from_le_bytes(*content.first_chunk()?) as f64),
        _ => None,
    };
    Some(value.or_else(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_tfrecord() {
        // CRC-32C of "123456789" is 0xe3069283 (RFC 3720); the mask is TensorFlow's.
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(masked(b"123456789"), 0xc78a_b0e5);
    }

    #[test]
    fn messages_that_are_none_are_refused() {
        assert!(Fields(&[0xff; 11]).varint().is_none());
        assert!(Fields(&[0x0a, 0x05, 0x00]).next().is_none());
        assert!(Fields(&[0x0f]).next().is_none());
        assert!(tensor(&[0x22, 0x01]).is_none());
    }
}
