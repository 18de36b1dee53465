//! What must hold for the reading of any bytes.

use toclip_logs::{Format, Options, load};

/// Reads the bytes; panics if the reading breaks a promise.
pub fn check(bytes: &[u8], format: Option<Format>) {
    let options = Options { format, ..Options::default() };
    match load(bytes, &options) {
        Ok(log) => {
            assert!(!log.points.is_empty());
            assert!(log.points.windows(2).all(|w| w[0].step < w[1].step));
            assert!(log.points.iter().all(|p| p.norm.is_finite() && p.norm >= 0.0));
            log.findings.iter().for_each(|f| assert!(!f.sentence().is_empty()));
        }
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
}
