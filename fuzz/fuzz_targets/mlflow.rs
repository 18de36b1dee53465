//! Metrics of the MLflow file store, one file or several.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    toclip_logs_fuzz::check(bytes, Some(toclip_logs::Format::Mlflow));
    toclip_logs_fuzz::check_run(bytes);
});
