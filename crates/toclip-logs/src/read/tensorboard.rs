//! TensorBoard event files: TFRecord frames with masked CRC-32C, and the few fields of the
//! protocol buffers in them that hold scalars, as `simple_value` (PyTorch) or `tensor` (TF 2).

use std::io::Read;

use super::bytes::read_full;
use super::columns::ColumnChooser;
use super::damage::Damage;
use crate::Result;

/// Larger records hold images or graphs and are skipped.
const LARGEST: u64 = 16 << 20;

/// The checksum of TFRecord: CRC-32C, rotated and shifted.
pub(super) fn masked_crc(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Reads an event file.
pub(super) fn read(mut reader: impl Read, chooser: &mut ColumnChooser) -> Result<Damage> {
    chooser.fix_step("step");
    let step = chooser.column(b"step");
    let mut damage = Damage::default();
    let mut at = 0u64;
    let mut data = Vec::new();
    loop {
        let mut head = [0; 12];
        let read = read_full(&mut reader, &mut head)?;
        if read < head.len() {
            damage.truncated = read > 0;
            break;
        }
        let [a, b, c, d, e, f, g, h, crc @ ..] = head;
        let length = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        if masked_crc(&head[..8]) != u32::from_le_bytes(crc) {
            damage.checksums.add(at);
            damage.stopped = true;
            break;
        }
        if length > LARGEST {
            let skip = length.saturating_add(4);
            let skipped = std::io::copy(&mut reader.by_ref().take(skip), &mut std::io::sink())?;
            damage.truncated = skipped < skip;
        } else {
            data.resize(length as usize + 4, 0);
            damage.truncated = read_full(&mut reader, &mut data)? < data.len();
        }
        if damage.truncated {
            break;
        }
        if length <= LARGEST {
            let (payload, crc) = data.split_at(length as usize);
            if masked_crc(payload).to_le_bytes() != crc {
                damage.checksums.add(at);
            } else if event(payload, step, chooser).is_none() {
                damage.unreadable.add(at);
                chooser.discard();
            }
        }
        at = at.saturating_add(length).saturating_add(16);
    }
    Ok(damage)
}

/// One field of a protocol buffer: its number and value.
enum Field<'a> {
    Varint(u64),
    /// Four or eight bytes.
    Fixed(&'a [u8]),
    Bytes(&'a [u8]),
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

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// The next field; `Some(None)` at the end, `None` if the bytes are not a message.
    fn next(&mut self) -> Option<Option<(u64, Field<'a>)>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let key = self.varint()?;
        let field = match key & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed(self.take(8)?),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Field::Bytes(self.take(length)?)
            }
            5 => Field::Fixed(self.take(4)?),
            _ => return None,
        };
        Some(Some((key >> 3, field)))
    }
}

/// `Event { wall_time = 1, step = 2, summary = 5 }`
fn event(payload: &[u8], step_column: Option<u32>, chooser: &mut ColumnChooser) -> Option<()> {
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
            any |= scalar(value, chooser)?;
        }
    }
    if any {
        if let Some(column) = step_column {
            chooser.put(column, step as f64);
        }
        chooser.end_record();
    }
    Some(())
}

/// `Summary.Value { tag = 1, simple_value = 2, tensor = 8 }`; true if its column is in use.
fn scalar(value: &[u8], chooser: &mut ColumnChooser) -> Option<bool> {
    let (mut tag, mut number) = (&[][..], None);
    let mut fields = Fields(value);
    while let Some((field, value)) = fields.next()? {
        match (field, value) {
            (1, Field::Bytes(bytes)) => tag = bytes,
            (2, Field::Fixed(bits)) => number = first_f32(bits),
            (8, Field::Bytes(bytes)) => number = tensor(bytes)?.or(number),
            _ => {}
        }
    }
    // A tag called `step` is not the step of the event.
    let column = if tag == b"step" { None } else { chooser.column(tag) };
    let (Some(number), Some(column)) = (number, column) else { return Some(false) };
    chooser.put(column, number);
    Some(true)
}

/// The first element of `TensorProto { dtype = 1, tensor_content = 4, float_val = 5, … }`.
fn tensor(message: &[u8]) -> Option<Option<f64>> {
    let (mut kind, mut content, mut value) = (0, &[][..], None);
    let mut fields = Fields(message);
    while let Some((number, field)) = fields.next()? {
        let first = match (number, field) {
            (5, Field::Bytes(bytes) | Field::Fixed(bytes)) => first_f32(bytes),
            (6, Field::Bytes(bytes) | Field::Fixed(bytes)) => first_f64(bytes),
            (7 | 10, Field::Varint(int)) => Some(int as i64 as f64),
            (7 | 10, Field::Bytes(packed)) => Some(Fields(packed).varint()? as i64 as f64),
            (1, Field::Varint(dtype)) => {
                kind = dtype;
                None
            }
            (4, Field::Bytes(bytes)) => {
                content = bytes;
                None
            }
            _ => None,
        };
        value = value.or(first);
    }
    // DT_FLOAT = 1, DT_DOUBLE = 2, DT_INT32 = 3, DT_INT64 = 9
    let content = || match kind {
        1 => first_f32(content),
        2 => first_f64(content),
        3 => Some(f64::from(i32::from_le_bytes(*content.first_chunk()?))),
        9 => Some(i64::from_le_bytes(*content.first_chunk()?) as f64),
        _ => None,
    };
    Some(value.or_else(content))
}

fn first_f32(bytes: &[u8]) -> Option<f64> {
    Some(f64::from(f32::from_le_bytes(*bytes.first_chunk()?)))
}

fn first_f64(bytes: &[u8]) -> Option<f64> {
    Some(f64::from_le_bytes(*bytes.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_tfrecord() {
        // CRC-32C of "123456789" is 0xe3069283 (RFC 3720); the mask is TensorFlow's.
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(masked_crc(b"123456789"), 0xc78a_b0e5);
    }

    #[test]
    fn messages_that_are_none_are_refused() {
        assert!(Fields(&[0xff; 11]).varint().is_none());
        assert!(Fields(&[0x0a, 0x05, 0x00]).next().is_none());
        assert!(Fields(&[0x0f]).next().is_none());
        assert!(tensor(&[0x22, 0x01]).is_none());
    }
}
