//! Checks that hold for any bytes.

use toclip_logs::{AdviceOptions, Format, Framework, ReadOptions, advise, load};

/// Reads the bytes and asks for advice; panics if the result is not as documented.
pub fn check(bytes: &[u8], format: Option<Format>) {
    check_with(bytes, &ReadOptions { format, ..ReadOptions::default() });
}

fn check_with(bytes: &[u8], options: &ReadOptions) {
    match load(bytes, options) {
        Ok(log) => {
            assert!(!log.points.is_empty() || !log.non_finite.is_empty());
            assert!(log.points.windows(2).all(|w| w[0].step < w[1].step));
            assert!(log.points.iter().all(|p| p.norm.is_finite() && p.norm >= 0.0));
            log.findings.iter().for_each(|f| assert!(!f.sentence().is_empty()));
            assert!(log.summary.columns.iter().all(|c| !c.name.contains(char::is_control)));
            match advise(&log, &AdviceOptions::default()) {
                Ok(advice) => {
                    assert!(!advice.verdict(Framework::of(&log)).headline.is_empty());
                }
                Err(error) => panic!("no advice: {error}"),
            }
            if !options.unscale && log.points.iter().any(|p| p.loss_scale > 0.0) {
                check_with(bytes, &ReadOptions { unscale: true, ..options.clone() });
            }
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control), "{error:?}"),
    }
}
