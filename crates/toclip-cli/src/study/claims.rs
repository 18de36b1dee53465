//! Claims checked by number. The paper's words are in `report_text.toml`, by the name of the claim.

use crate::report::{Claim, Verdict};

/// A claim that holds or fails.
pub fn check(name: &str, measured: impl Into<String>, holds: bool) -> Claim {
    let verdict = if holds { Verdict::Holds } else { Verdict::Fails };
    Claim { paper: name.into(), measured: measured.into(), verdict }
}

/// A claim that is known to be printed wrong: it differs if the measurement is as corrected, and fails
/// otherwise.
pub fn differs(name: &str, measured: impl Into<String>, as_corrected: bool) -> Claim {
    let verdict = if as_corrected { Verdict::Differs } else { Verdict::Fails };
    Claim { paper: name.into(), measured: measured.into(), verdict }
}

/// A claim that holds, or else differs if the numbers decide against the print and fails if they do not.
pub fn check_or_differs(name: &str, measured: String, holds: bool, decided: bool) -> Claim {
    if holds { check(name, measured, true) } else { differs(name, measured, decided) }
}

/// Whether a number is within a share of another; NaN never is.
pub fn near(value: f64, target: f64, share: f64) -> bool {
    (value - target).abs() <= share * target.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_can_fail() {
        assert_eq!(check("p", "m", true).verdict, Verdict::Holds);
        assert_eq!(check("p", "m", false).verdict, Verdict::Fails);
        assert_eq!(differs("p", "m", true).verdict, Verdict::Differs);
        assert_eq!(differs("p", "m", false).verdict, Verdict::Fails);
        assert!(near(1.04, 1.0, 0.05) && !near(1.06, 1.0, 0.05) && !near(f64::NAN, 1.0, 9.0));
    }
}
