//! W&B runs.
//!
//! As with TensorBoard, mutations get the right checksums (but one in sixteen).
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|bytes: &[u8]| toclip_logs_fuzz::check(bytes, Some(toclip_logs::Format::Wandb)));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let size = fuzzer_mutate(data, size, max_size);
    if seed % 16 > 0 {
        seal(&mut data[..size]);
    }
    size
});

/// Puts the right checksums into the fragments; a length that is too large is made to fit.
fn seal(data: &mut [u8]) {
    const BLOCK: usize = 1 << 15;
    for (i, block) in data.chunks_mut(BLOCK).enumerate() {
        let mut rest = block.get_mut(if i == 0 { 7 } else { 0 }..).unwrap_or_default();
        while let Some((head, body)) = rest.split_at_mut_checked(7) {
            let length = usize::from(u16::from_le_bytes([head[4], head[5]])).min(body.len());
            head[4..6].copy_from_slice(&(length as u16).to_le_bytes());
            head[6] = head[6].wrapping_sub(1) % 4 + 1;
            let (payload, after) = body.split_at_mut(length);
            let mut crc = flate2::Crc::new();
            crc.update(&head[6..]);
            crc.update(payload);
            head[..4].copy_from_slice(&crc.sum().to_le_bytes());
            rest = after;
        }
    }
}
