//! Claims checked by number.

use crate::report::{Claim, Verdict};

/// A claim that holds or fails.
pub fn check(paper: &str, measured: impl Into<String>, holds: bool) -> Claim {
    let verdict = if holds { Verdict::Holds } else { Verdict::Fails };
    Claim { paper: paper.into(), measured: measured.into(), verdict }
}

/// A claim of which it is known that the print is wrong: it differs if what was measured is what
/// the correction says, and fails if it is not even that.
pub fn differs(paper: &str, measured: impl Into<String>, as_corrected: bool) -> Claim {
    let verdict = if as_corrected { Verdict::Differs } else { Verdict::Fails };
    Claim { paper: paper.into(), measured: measured.into(), verdict }
}

/// Whether a number is within a share of another; NaN never is.
pub fn near(value: f64, target: f64, share: f64) -> bool {
    (value - target).abs() <= share * target.abs()
}

/// Three or four significant digits, as a person would write them.
pub fn short(x: f64) -> String {
    if x.is_infinite() {
        return if x > 0.0 { "∞".into() } else { "−∞".into() };
    }
    let size = x.abs();
    if x == 0.0 {
        "0".into()
    } else if (1e-3..1e5).contains(&size) {
        let decimals = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
        let text = format!("{x:.decimals$}");
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        }
    } else {
        format!("{x:.2e}")
    }
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

    #[test]
    fn numbers_are_short() {
        let said = [0.010754, 2.5286, 12.0, 0.0, 1236.7, 3e-9, f64::INFINITY].map(short);
        assert_eq!(said, ["0.01075", "2.529", "12", "0", "1237", "3.00e-9", "∞"]);
    }
}
