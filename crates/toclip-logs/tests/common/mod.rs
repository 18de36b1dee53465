//! The fixtures: one small log in each format, all of the same training.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::PathBuf;

use toclip_logs::{Finding, Log};

/// Logs that hold the norms of `truth.csv`.
pub const WITH_NORMS: [&str; 14] = [
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
    "truth.csv",
];

/// The bytes of a fixture.
pub fn bytes(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// How many norms were NaN or infinite.
pub fn not_finite(log: &Log) -> u64 {
    let count = |finding: &Finding| match finding {
        Finding::NotFinite { count, .. } => Some(*count),
        _ => None,
    };
    log.findings.iter().find_map(count).unwrap_or(0)
}
