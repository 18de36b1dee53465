//! Files with settings beside a log.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| toclip_logs_fuzz::check_beside(bytes));
