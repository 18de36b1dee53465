//! The fixtures: one small log in each format, all of the same training.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::Write;
use std::path::PathBuf;

/// Logs that hold the norms of `truth.csv`.
pub const WITH_NORMS: [&str; 15] = [
    "log.jsonl",
    "concatenated.json",
    "trainer_state.json",
    "printed.txt",
    "wandb.csv",
    "lightning.csv",
    "megatron.log",
    "torchtitan.log",
    "llmc_main.log",
    "llmc_stdout.log",
    "fairseq.log",
    "events.simple_value",
    "events.tensor",
    "run.wandb",
    "truth.csv",
];

/// The bytes of a fixture.
pub fn bytes(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The bytes compressed with gzip.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

/// The bytes compressed with zstd.
pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// The text as PowerShell redirects it: UTF-16 with a byte order mark.
pub fn utf16(text: &str) -> Vec<u8> {
    format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect()
}
