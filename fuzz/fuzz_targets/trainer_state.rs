//! Hugging Face `trainer_state.json`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| toclip_logs_fuzz::check(
    bytes,
    Some(toclip_logs::Format::TrainerState)
));
