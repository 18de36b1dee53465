//! Compressed logs and UTF-16. Half of the inputs are given to the decoder; the others are compressed first.
#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, rest)) = bytes.split_first() else { return };
    let magic: [&[u8]; 4] = [b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd", b"\xff\xfe", b"\xfe\xff"];
    if kind < 128 {
        let damaged = [magic[usize::from(kind) % 4], rest].concat();
        return toclip_logs_fuzz::check(&damaged, None);
    }
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let packed = writer.write_all(rest).and_then(|()| writer.finish());
    toclip_logs_fuzz::check(&packed.unwrap_or_default(), None);
});
