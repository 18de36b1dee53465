//! TensorBoard event files.
//!
//! Nothing damaged at random has the right checksums, so every mutation is sealed again (but one in
//! sixteen): otherwise no damage would ever get past the frames.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|bytes: &[u8]| toclip_logs_fuzz::check(bytes, Some(toclip_logs::Format::TensorBoard)));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let size = fuzzer_mutate(data, size, max_size);
    if seed % 16 > 0 {
        seal(&mut data[..size]);
    }
    size
});

/// Puts the right checksums into a chain of frames; a length that is too large is made to fit.
fn seal(mut rest: &mut [u8]) {
    while let Some((head, body)) = rest.split_at_mut_checked(12) {
        let Some(room) = body.len().checked_sub(4) else { return };
        let claimed = u64::from_le_bytes([
            head[0], head[1], head[2], head[3], head[4], head[5], head[6], head[7],
        ]);
        let length = usize::try_from(claimed).unwrap_or(room).min(room);
        let (length_bytes, crc) = head.split_at_mut(8);
        length_bytes.copy_from_slice(&(length as u64).to_le_bytes());
        crc.copy_from_slice(&masked(length_bytes));
        let (payload, after) = body.split_at_mut(length);
        let (crc, after) = after.split_at_mut(4);
        crc.copy_from_slice(&masked(payload));
        rest = after;
    }
}

/// The checksum of TFRecord.
fn masked(data: &[u8]) -> [u8; 4] {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}
