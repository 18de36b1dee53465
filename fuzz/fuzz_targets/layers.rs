//! Tables with the gradient norms of layers.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let header = b"step,grad_2.0_norm/a,grad_2.0_norm/a.0,b.0.grad_norm,grad/c/norm,loss\n";
    toclip_logs_fuzz::check(&[header, bytes].concat(), Some(toclip_logs::Format::Csv));
});
