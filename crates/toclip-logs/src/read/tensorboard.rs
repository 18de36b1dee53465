//! TensorBoard event files: TFRecord frames with masked CRC-32C, and the few fields of the
//! protocol buffers in them that hold scalars, as `simple_value` (PyTorch) or `tensor` (TF 2).

use std::io::{BufReader, Read};

use prost::Message;

use super::columns::{ColumnChooser, ColumnId};
use crate::Result;

/// Larger records hold images or graphs and are skipped.
const LARGEST: u64 = 16 << 20;

/// The checksum of TFRecord: CRC-32C, rotated and shifted.
pub(super) fn masked_crc(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Reads an event file.
pub(super) fn read(reader: impl Read, chooser: &mut ColumnChooser) -> Result<()> {
    let mut reader = BufReader::new(reader);
    chooser.fix_step("step");
    let step = chooser.column(b"step");
    let mut at = 0u64;
    let mut data = Vec::new();
    loop {
        read_up_to(&mut reader, 12, &mut data)?;
        let (Some(length), Some(crc)) = (data.first_chunk(), data.get(8..12)) else {
            chooser.damage.truncated |= !data.is_empty();
            break;
        };
        if masked_crc(length).to_le_bytes() != crc {
            chooser.damage.checksums.add(at);
            chooser.damage.stopped = true;
            break;
        }
        let length = u64::from_le_bytes(*length);
        let rest = length.saturating_add(4);
        let read = match length > LARGEST {
            true => std::io::copy(&mut reader.by_ref().take(rest), &mut std::io::sink())?,
            false => read_up_to(&mut reader, rest, &mut data)?,
        };
        if read < rest {
            chooser.damage.truncated = true;
            break;
        }
        if length <= LARGEST {
            let (payload, crc) = data.split_at(length as usize);
            if masked_crc(payload).to_le_bytes() != crc {
                chooser.damage.checksums.add(at);
            } else if event(payload, step, chooser).is_none() {
                chooser.damage.unreadable_records.add(at);
                chooser.discard();
            }
        }
        at = at.saturating_add(length).saturating_add(16);
    }
    Ok(())
}

fn read_up_to(reader: &mut impl Read, length: u64, data: &mut Vec<u8>) -> Result<u64> {
    data.clear();
    Ok(reader.by_ref().take(length).read_to_end(data)? as u64)
}

// The few fields of TensorFlow's messages that hold scalars.

#[derive(prost::Message)]
struct Event {
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(message, optional, tag = "5")]
    summary: Option<Summary>,
}

#[derive(prost::Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    values: Vec<SummaryValue>,
}

#[derive(prost::Message)]
struct SummaryValue {
    #[prost(bytes = "vec", tag = "1")]
    tag: Vec<u8>,
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
    #[prost(message, optional, tag = "8")]
    tensor: Option<Tensor>,
}

#[derive(prost::Message)]
struct Tensor {
    #[prost(int32, tag = "1")]
    dtype: i32,
    #[prost(bytes = "vec", tag = "4")]
    content: Vec<u8>,
    #[prost(float, repeated, tag = "5")]
    floats: Vec<f32>,
    #[prost(double, repeated, tag = "6")]
    doubles: Vec<f64>,
    #[prost(int64, repeated, tag = "7")]
    ints: Vec<i64>,
    #[prost(int64, repeated, tag = "10")]
    longs: Vec<i64>,
}

/// Passes the scalars of an event on as a record; `None` if the bytes are not an event.
fn event(payload: &[u8], step_column: Option<ColumnId>, chooser: &mut ColumnChooser) -> Option<()> {
    let event = Event::decode(payload).ok()?;
    let mut any = false;
    for value in event.summary.unwrap_or_default().values {
        // A tag called `step` is not the step of the event.
        let column = if value.tag == b"step" { None } else { chooser.column(&value.tag) };
        let tensor = value.tensor.and_then(|tensor| tensor.first());
        if let (Some(number), Some(column)) = (tensor.or(value.simple_value.map(f64::from)), column)
        {
            chooser.put(column, number);
            any = true;
        }
    }
    if any {
        if let Some(column) = step_column {
            chooser.put(column, event.step as f64);
        }
        chooser.end_record();
    }
    Some(())
}

impl Tensor {
    /// The first element.
    fn first(&self) -> Option<f64> {
        let content = &self.content;
        let float = self.floats.first().map(|x| f64::from(*x)).or(self.doubles.first().copied());
        let int = self.ints.first().or(self.longs.first()).map(|x| *x as f64);
        float.or(int).or_else(|| match self.dtype {
            // DT_FLOAT, DT_DOUBLE, DT_INT32, DT_INT64
            1 => Some(f64::from(f32::from_le_bytes(*content.first_chunk()?))),
            2 => Some(f64::from_le_bytes(*content.first_chunk()?)),
            3 => Some(f64::from(i32::from_le_bytes(*content.first_chunk()?))),
            9 => Some(i64::from_le_bytes(*content.first_chunk()?) as f64),
            _ => None,
        })
    }
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
    fn other_bytes_are_refused() {
        for bytes in [&[0xff; 11][..], &[0x0a, 0x05, 0x00], &[0x0f], &[0x22, 0x01]] {
            assert!(Tensor::decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
